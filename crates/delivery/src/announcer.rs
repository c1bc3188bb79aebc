//! The sender of events: what a broker must do for it, and the sender that has a broker do it.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{Callback, CallbackKind, Invalid, Namespace, Timer, TraceContext};

use crate::{Failure, Outcome, Prepared, Sender, answer::Answer, call::Call};

/// Publishes the events of timers that were scheduled through a broker.
#[async_trait]
pub trait Announcer: Send + Sync {
    /// Publishes the event of this timer, whose attempt has this number (1 for the first). Ok once the broker has stored it:
    /// the timer is done then, and its event is not published again. Its readers go on with `trace`, if there is one.
    async fn announce(&self, timer: &Timer, attempt: u32, trace: Option<&TraceContext>) -> Result<(), Failure>;
}

pub struct EventSender(Arc<dyn Announcer>);

impl EventSender {
    pub fn new(announcer: Arc<dyn Announcer>) -> Self {
        Self(announcer)
    }
}

#[async_trait]
impl Sender for EventSender {
    fn kind(&self) -> CallbackKind {
        CallbackKind::Event
    }

    fn check(&self, _: &Namespace, _: &Callback) -> Result<(), Invalid> {
        Ok(())
    }

    async fn prepare(&self, _: &Timer) -> Prepared {
        Prepared::default()
    }

    async fn send(&self, call: &Call<'_>, _: Prepared) -> Answer {
        Outcome::from(self.0.announce(call.timer, call.attempt, call.trace).await).into()
    }
}
