use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use domain::{Clock, Event, Shard, Span};
use store::{DueStore, Settlement, StoreResult};

use crate::membership::Membership;

/// What is removed at once while timers fire: little, so that a purge never holds them up, but twice what has finished meanwhile, so
/// that it keeps up and gains ground.
const BATCH_MIN: usize = 100;
const BATCH_MAX: usize = 2_000;
const OF_WHAT_FINISHED: usize = 2;
const BETWEEN_BATCHES: Duration = Duration::from_millis(50);
/// What is removed at once while nothing fires. Still little: a create or a timer that becomes due waits for it. The pause after it
/// is as long as it took, so that the store is free half of the time; one that took very long says nothing of the next.
const IDLE_BATCH: usize = 250;
const IDLE_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Removes timers that finished longer ago than they are retained.
pub struct Retention {
    store: Arc<dyn DueStore>,
    clock: Arc<dyn Clock>,
    membership: Arc<Membership>,
    retention: Span,
    /// How many timers have finished here since the last purge.
    finished: AtomicUsize,
}

impl Retention {
    pub fn new(store: &Arc<dyn DueStore>, clock: &Arc<dyn Clock>, membership: &Arc<Membership>, retention: Span) -> Self {
        Self {
            store: Arc::clone(store),
            clock: Arc::clone(clock),
            membership: Arc::clone(membership),
            retention,
            finished: AtomicUsize::new(0),
        }
    }

    /// Whether it is for this node to remove what is old.
    pub fn is_purger(&self) -> bool {
        self.membership.holds_shard(Shard(0))
    }

    /// Counts the timers that have finished with these settlements.
    pub fn settled(&self, settlements: &[Settlement]) {
        let is_final = |settlement: &&Settlement| settlement.next.event() != Event::Retry;
        self.finished.fetch_add(settlements.iter().filter(is_final).count(), Ordering::Relaxed);
    }

    /// Removes some of the timers that finished longer ago than they are retained. Returns how long to wait before the next batch,
    /// or `None` when there is no more.
    pub async fn purge_once(&self) -> StoreResult<Option<Duration>> {
        let before = self.clock.now().saturating_sub(self.retention);
        // On each of the other nodes about as many have finished.
        let finished = self.finished.swap(0, Ordering::Relaxed).saturating_mul(self.membership.members());
        // What other nodes fire is not known here: only a node alone knows that nothing does.
        let is_idle = finished == 0 && self.membership.members() <= 1;
        let limit = if is_idle { IDLE_BATCH } else { finished.saturating_mul(OF_WHAT_FINISHED).clamp(BATCH_MIN, BATCH_MAX) };
        let began = tokio::time::Instant::now();
        let purged = self.store.purge(before, limit).await?;
        metrics::counter!("timer_purged_total").increment(purged as u64);
        let pause = if is_idle { began.elapsed().min(IDLE_PAUSE_MAX) } else { BETWEEN_BATCHES };
        Ok((purged >= limit).then_some(pause))
    }
}
