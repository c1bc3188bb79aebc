use std::{collections::HashMap, sync::Arc, time::Duration};

use domain::{Clock, Shard, TimerId, Timestamp};
use store::{DueEntry, DueStore, ShardCursor, StoreResult};

use crate::{membership::Membership, shared_window::SharedWindow};

/// How much one sweep reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Depth {
    /// How many of the oldest entries, over all shards that are held.
    oldest: usize,
    /// How many entries a page has that goes on where the last one stopped, and how many pages there are of those.
    page: usize,
    pages: usize,
}

/// Entries that are due are missing in memory: the sweep brings them in.
const DEEP: Depth = Depth { oldest: 16_384, page: 16_384, pages: 3 };

/// Everything due is in memory, but for what a lost nudge should have told of. A deep sweep would read a long backlog again every
/// second, which costs the database a third of what firing costs.
const SHALLOW: Depth = Depth { oldest: 1_024, page: 4_096, pages: 1 };

/// Where a sweep that met a long backlog goes on.
#[derive(Debug, Default)]
pub struct SweepPosition(Vec<ShardCursor>);

/// Finds what the window has missed.
pub struct Sweeper {
    store: Arc<dyn DueStore>,
    clock: Arc<dyn Clock>,
    membership: Arc<Membership>,
    window: Arc<SharedWindow>,
    interval: Duration,
}

impl Sweeper {
    pub fn new(
        store: &Arc<dyn DueStore>,
        clock: &Arc<dyn Clock>,
        membership: &Arc<Membership>,
        window: &Arc<SharedWindow>,
        interval: Duration,
    ) -> Self {
        Self {
            store: Arc::clone(store),
            clock: Arc::clone(clock),
            membership: Arc::clone(membership),
            window: Arc::clone(window),
            interval,
        }
    }

    /// How often to call [`sweep_once`](Self::sweep_once).
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// Looks in the store for pending timers that should have fired, and takes in those that the window does not know.
    /// Returns how many that were. Costs little when there are none.
    ///
    /// In a long backlog each sweep looks at the oldest, which are the next to fire, and then goes on where the last one
    /// stopped: nothing stays hidden behind a destination that hangs.
    pub async fn sweep_once(&self, position: &mut SweepPosition) -> StoreResult<usize> {
        let now = self.clock.now();
        let mut depth = if self.window.with(|window| window.begin_sweep(now)) { SHALLOW } else { DEEP };
        let held = self.membership.shard_leases();
        let oldest = held.iter().map(|shard_lease| ShardCursor { shard: shard_lease.shard, after: None }).collect();
        let (mut repaired, mut rest) = self.sweep_page(oldest, now, depth.oldest).await?;
        if repaired > 0 {
            // Where one nudge was lost, more may be.
            depth = DEEP;
        }
        if !rest.is_empty() && !position.0.is_empty() {
            rest = std::mem::take(&mut position.0);
        }
        for _ in 0..depth.pages {
            let found;
            (found, rest) = self.sweep_page(rest, now, depth.page).await?;
            repaired += found;
        }
        position.0 = rest;
        if repaired > 0 {
            metrics::counter!("timer_sweep_repaired_total").increment(repaired as u64);
        }
        if self.window.with(|window| window.look_again()) || repaired > 0 {
            self.window.wake();
        }
        Ok(repaired)
    }

    /// One page. Returns how many of it were unknown, and where to go on.
    async fn sweep_page(&self, from: Vec<ShardCursor>, now: Timestamp, entries: usize) -> StoreResult<(usize, Vec<ShardCursor>)> {
        if from.is_empty() {
            return Ok((0, from));
        }
        // At least one of each shard: of more shards than entries a sweep would read nothing.
        let limit = (entries / from.len()).max(1);
        let entries = self.store.due(&from, now, limit).await?;
        Ok((self.take_in(&entries), full_pages(&entries, limit, self.store.shards())))
    }

    fn take_in(&self, entries: &[DueEntry]) -> usize {
        self.window.with(|window| entries.iter().filter(|entry| window.find(**entry)).count())
    }
}

/// The shards whose page was full, each with its last entry.
fn full_pages(entries: &[DueEntry], limit: usize, shards: u16) -> Vec<ShardCursor> {
    let mut pages: HashMap<Shard, (usize, (Timestamp, TimerId))> = HashMap::new();
    for entry in entries {
        let page = pages.entry(entry.id.shard(shards)).or_insert((0, (entry.at, entry.id)));
        *page = (page.0 + 1, page.1.max((entry.at, entry.id)));
    }
    let full = pages.into_iter().filter(|(_, (count, _))| *count >= limit);
    let mut cursors: Vec<_> = full.map(|(shard, (_, last))| ShardCursor { shard, after: Some(last) }).collect();
    cursors.sort_unstable_by_key(|cursor| cursor.shard);
    cursors
}
