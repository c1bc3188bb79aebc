use std::time::Duration;

use domain::Timestamp;

use crate::Commands;

/// A database that has not answered by then counts as away.
const PING_TIME_MAX: Duration = Duration::from_secs(3);

/// How the service is, as far as its store goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    pub database: bool,
    pub at: Timestamp,
}

impl Commands {
    /// Asks the store for a sign of life; answers in time even when the store hangs.
    pub async fn health(&self) -> Health {
        let database = match tokio::time::timeout(PING_TIME_MAX, self.stores.health.ping()).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the store gives no sign of life");
                false
            }
            Err(_) => {
                tracing::warn!("the store gives no sign of life within {PING_TIME_MAX:?}");
                false
            }
        };
        Health { database, at: self.clock.now() }
    }
}
