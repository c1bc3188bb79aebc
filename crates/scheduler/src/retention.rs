use store::StoreResult;

use crate::Scheduler;

/// Small, so that a purge never holds up what fires.
const BATCH_MAX: usize = 500;

impl Scheduler {
    /// Removes some of the timers that finished longer ago than they are kept. Returns whether there is more.
    pub async fn purge_once(&self) -> StoreResult<bool> {
        let before = self.now().saturating_sub(self.config.retention);
        let purged = self.store.purge(before, BATCH_MAX).await?;
        metrics::counter!("timer_purged_total").increment(purged as u64);
        Ok(purged >= BATCH_MAX)
    }
}
