use std::{sync::Arc, time::Duration};

use domain::Clock;

use crate::exit::Failure;

const PAUSE: Duration = Duration::from_secs(1);

/// Why a database is not open.
pub enum NotOpen {
    /// It may come up: it is often started together with this service.
    Yet(Failure),
    /// Waiting would not help.
    Ever(Failure),
}

/// How long a database is tried again that is not open yet.
pub struct OpenDeadline<'a> {
    clock: &'a Arc<dyn Clock>,
    end: Duration,
}

impl<'a> OpenDeadline<'a> {
    pub fn new(clock: &'a Arc<dyn Clock>, limit: Duration) -> Self {
        Self { clock, end: clock.monotonic() + limit }
    }

    /// Waits a moment, after which the database is to be tried again; fails if that is no use or has taken too long.
    pub async fn wait(&self, reason: NotOpen) -> Result<(), Failure> {
        match reason {
            NotOpen::Yet(failure) if self.clock.monotonic() < self.end => {
                tracing::warn!("{failure} Waiting for it.");
                tokio::time::sleep(PAUSE).await;
                Ok(())
            }
            NotOpen::Yet(failure) | NotOpen::Ever(failure) => Err(failure),
        }
    }
}
