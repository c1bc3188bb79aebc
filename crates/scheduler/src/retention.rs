use std::sync::atomic::Ordering;

use domain::Shard;
use store::StoreResult;

use crate::Scheduler;

/// What is removed at once: little, so that a purge never holds up what fires, but twice what has finished meanwhile, so that it
/// keeps up and gains ground.
const BATCH_MIN: usize = 100;
const BATCH_MAX: usize = 2_000;
const OF_WHAT_FINISHED: usize = 2;

impl Scheduler {
    /// Whether it is for this node to remove what is old.
    pub fn is_purger(&self) -> bool {
        self.held_shards().holds_shard(Shard(0))
    }

    /// Removes some of the timers that finished longer ago than they are kept. Returns whether there is more.
    pub async fn purge_once(&self) -> StoreResult<bool> {
        let before = self.now().saturating_sub(self.config.retention);
        // The others have finished about as many each.
        let finished = self.finished.swap(0, Ordering::Relaxed).saturating_mul(self.members.load(Ordering::Relaxed));
        let limit = finished.saturating_mul(OF_WHAT_FINISHED).clamp(BATCH_MIN, BATCH_MAX);
        let purged = self.store.purge(before, limit).await?;
        metrics::counter!("timer_purged_total").increment(purged as u64);
        Ok(purged >= limit)
    }
}
