use std::sync::Arc;

use store::{Claimed, DueStore, StoreResult};

use crate::{membership::Membership, shared_window::SharedWindow};

/// How many claims are taken over at once.
const BATCH_MAX: usize = 1024;

/// Looks for claims that no node will settle.
pub struct Recovery {
    store: Arc<dyn DueStore>,
    membership: Arc<Membership>,
    window: Arc<SharedWindow>,
}

impl Recovery {
    pub fn new(store: &Arc<dyn DueStore>, membership: &Arc<Membership>, window: &Arc<SharedWindow>) -> Self {
        Self { store: Arc::clone(store), membership: Arc::clone(membership), window: Arc::clone(window) }
    }

    /// Claims in the shards of this node that were left by a dead owner, or by a delivery that vanished. What is being delivered
    /// here is not among them, however long it takes.
    pub async fn expired_once(&self) -> StoreResult<Vec<Claimed>> {
        let shard_leases = self.membership.shard_leases();
        if shard_leases.is_empty() {
            return Ok(Vec::new());
        }
        let mut expired = self.store.expired_claims(&shard_leases, BATCH_MAX).await?;
        self.window.with(|window| expired.retain(|claimed| !window.is_known(&claimed.entry)));
        metrics::counter!("timer_recovered_total").increment(expired.len() as u64);
        Ok(expired)
    }
}
