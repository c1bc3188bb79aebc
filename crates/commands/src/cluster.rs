use store::Cluster;

use crate::{CommandError, Commands, ShardMove, call};

impl Commands {
    /// The members, the shards that they own, and whether any timer is overdue.
    pub async fn cluster(&self) -> Result<Cluster, CommandError> {
        self.check_administrator()?;
        let cluster = call::reading(self.stores.health.cluster()).await?;
        self.stats.shard_moves.observe(&cluster);
        Ok(cluster)
    }

    /// The latest acquisitions of shards that this process has seen, the latest first.
    pub fn shard_moves(&self) -> Result<Vec<ShardMove>, CommandError> {
        self.check_administrator()?;
        Ok(self.stats.shard_moves.latest())
    }
}
