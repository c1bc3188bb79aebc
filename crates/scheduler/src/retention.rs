use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use domain::{Clock, Event, Shard, Span};
use store::{DueStore, Settlement, StoreResult};
use tokio::time::Instant;

use crate::{membership::Membership, purge_pace::PurgePace};

/// Removes timers that finished longer ago than they are retained.
pub struct Retention {
    store: Arc<dyn DueStore>,
    clock: Arc<dyn Clock>,
    membership: Arc<Membership>,
    retention: Span,
    /// How many timers have finished here since the last purge.
    finished: AtomicUsize,
    pace: Mutex<PurgePace>,
}

impl Retention {
    pub fn new(store: &Arc<dyn DueStore>, clock: &Arc<dyn Clock>, membership: &Arc<Membership>, retention: Span) -> Self {
        Self {
            store: Arc::clone(store),
            clock: Arc::clone(clock),
            membership: Arc::clone(membership),
            retention,
            finished: AtomicUsize::new(0),
            pace: Mutex::default(),
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
        let began = Instant::now();
        let page = self.pace().page(finished, began);
        let purged = self.store.purge(before, page.limit).await.inspect_err(|_| self.pace().failed())?;
        metrics::counter!("timer_purged_total").increment(purged as u64);
        Ok((purged >= page.limit).then(|| self.pace().pause(page, began.elapsed())))
    }

    fn pace(&self) -> MutexGuard<'_, PurgePace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
