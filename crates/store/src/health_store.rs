use async_trait::async_trait;

use crate::{Cluster, StoreResult};

/// The state of the store itself, for operators: whether it answers, whether it takes writes, and how its cluster is.
///
/// [`Store`](crate::Store) states what holds for every call.
#[async_trait]
pub trait HealthStore: Send + Sync {
    /// Asks the database to answer, nothing more.
    async fn ping(&self) -> StoreResult<()>;

    /// Writes something that no reader sees and that leaves nothing behind, to find out whether the store takes writes again after
    /// [`StoreError::Full`](crate::StoreError::Full).
    async fn probe(&self) -> StoreResult<()> {
        self.ping().await
    }

    /// Which nodes live, which shards they hold, and whether anything is late.
    async fn cluster(&self) -> StoreResult<Cluster>;
}
