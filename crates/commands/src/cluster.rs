use store::Cluster;

use crate::{CommandError, Commands, call};

impl Commands {
    /// Who shares the work, who holds what, and whether anything is late.
    pub async fn cluster(&self) -> Result<Cluster, CommandError> {
        self.check_administrator()?;
        Ok(call::reading(self.stores.health.cluster()).await?)
    }
}
