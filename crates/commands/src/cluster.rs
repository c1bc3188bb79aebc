use store::Cluster;

use crate::{CommandError, Commands, call};

impl Commands {
    /// The members, the shards that they own, and whether any timer is overdue.
    pub async fn cluster(&self) -> Result<Cluster, CommandError> {
        self.check_administrator()?;
        Ok(call::reading(self.stores.health.cluster()).await?)
    }
}
