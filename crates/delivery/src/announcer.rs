use async_trait::async_trait;
use domain::Timer;

use crate::Failure;

/// Publishes the events of timers that were scheduled through a broker.
#[async_trait]
pub trait Announcer: Send + Sync {
    /// Publishes the event of this timer, whose attempt has this number (1 for the first). Ok once the broker has it for good:
    /// the timer is done then, and nobody will publish it again.
    async fn announce(&self, timer: &Timer, attempt: u32) -> Result<(), Failure>;
}
