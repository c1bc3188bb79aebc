use std::time::Duration;

use domain::Timestamp;

use crate::Commands;

/// A database that does not answer a ping within this time counts as unavailable.
const PING_TIME_MAX: Duration = Duration::from_secs(3);

/// The health of the service, as far as its store is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    pub database: bool,
    pub at: Timestamp,
}

impl Commands {
    /// Pings the store; answers in time even when the store hangs.
    pub async fn health(&self) -> Health {
        let database = match tokio::time::timeout(PING_TIME_MAX, self.stores.health.ping()).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the store did not answer a ping");
                false
            }
            Err(_) => {
                tracing::warn!("the store did not answer a ping within {PING_TIME_MAX:?}");
                false
            }
        };
        Health { database, at: self.clock.now() }
    }
}
