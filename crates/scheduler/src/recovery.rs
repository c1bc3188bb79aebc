use store::{Claimed, StoreResult};

use crate::Scheduler;

/// How many claims are taken over at once.
const BATCH_MAX: usize = 1024;

impl Scheduler {
    /// Claims in our shards that nobody will settle: left by a dead owner, or by a delivery that vanished. What is being
    /// delivered here is not among them, however long it takes.
    pub async fn expired_once(&self) -> StoreResult<Vec<Claimed>> {
        let shard_leases = self.shard_leases();
        if shard_leases.is_empty() {
            return Ok(Vec::new());
        }
        let mut expired = self.store.expired_claims(&shard_leases, BATCH_MAX).await?;
        let window = self.window();
        expired.retain(|claimed| !window.is_known(&claimed.entry));
        metrics::counter!("timer_recovered_total").increment(expired.len() as u64);
        Ok(expired)
    }
}
