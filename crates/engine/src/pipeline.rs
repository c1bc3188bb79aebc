use std::sync::Arc;

use delivery::{Attempted, Deliverer, NamespaceRules};
use domain::{Clock, Span, Timer};
use scheduler::Scheduler;
use store::{DueStore, HealthStore, TimerStore};

use crate::{Heartbeats, PipelineMetrics};

/// Makes calls.
pub trait Deliver: Send + Sync + 'static {
    type Prepared: Send;

    /// Waits until the call can go out.
    fn prepare(&self, timer: &Timer) -> impl Future<Output = Self::Prepared> + Send;

    /// Makes the attempt with this number (1 for the first), and says how it ended.
    fn attempt(&self, timer: &Timer, attempt: u32, prepared: Self::Prepared) -> impl Future<Output = Attempted> + Send;
}

impl Deliver for Deliverer {
    type Prepared = delivery::Prepared;

    async fn prepare(&self, timer: &Timer) -> Self::Prepared {
        Self::prepare(self, timer).await
    }

    async fn attempt(&self, timer: &Timer, attempt: u32, prepared: Self::Prepared) -> Attempted {
        Self::attempt(self, timer, attempt, prepared).await
    }
}

pub struct Pipeline<D = Deliverer> {
    pub scheduler: Arc<Scheduler>,
    pub deliverer: Arc<D>,
    pub store: Arc<dyn DueStore>,
    /// Where timers are registered that tell of the end of others.
    pub timers: Arc<dyn TimerStore>,
    /// Tells whether a store that refuses results takes other writes.
    pub health: Arc<dyn HealthStore>,
    pub clock: Arc<dyn Clock>,
    pub overdue_window: Option<Span>,
    /// How long after an attempt the next one may start.
    pub retry_interval_min: Span,
    pub namespaces: Arc<NamespaceRules>,
    /// What stands before the id of a timer in the address of its page, for log lines; `None` where people open no such address.
    pub timer_page: Option<Arc<str>>,
    pub metrics: PipelineMetrics,
    pub heartbeats: Heartbeats,
}
