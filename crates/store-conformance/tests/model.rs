//! The model itself passes the suite: with the machine's clock, as the databases do, and with one that stands still.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{Clock, ManualClock, SystemClock, TimerId, Timestamp};
use store::{OperationId, Store};
use store_conformance::Fixture;
use store_testing::Model;

struct InMemory {
    model: Arc<Model>,
    clock: Option<Arc<ManualClock>>,
}

impl InMemory {
    fn with_the_machines_clock() -> Self {
        Self { model: Arc::new(Model::new(Arc::new(SystemClock::default()), 4)), clock: None }
    }

    fn with_a_manual_clock() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_800_000_000_000_000)));
        Self { model: Arc::new(Model::new(Arc::clone(&clock) as Arc<dyn Clock>, 4)), clock: Some(clock) }
    }
}

#[async_trait]
impl Fixture for InMemory {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::clone(&self.model) as Arc<dyn Store>
    }

    fn clock(&self) -> Option<Arc<ManualClock>> {
        self.clock.clone()
    }

    async fn another_process(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(self.model.another_process()))
    }

    async fn spoil(&self, id: TimerId) -> bool {
        self.model.spoil(id);
        true
    }

    async fn spoil_summary(&self, id: TimerId) -> bool {
        self.model.spoil_summary(id);
        true
    }

    async fn spoil_options(&self, id: TimerId) -> bool {
        self.model.spoil_options(id);
        true
    }

    async fn spoil_operation(&self, id: OperationId) -> bool {
        self.model.spoil_operation(id);
        true
    }
}

mod by_the_machines_clock {
    use super::*;
    store_conformance::suite!(InMemory::with_the_machines_clock());
}

mod by_a_manual_clock {
    use super::*;
    store_conformance::suite!(InMemory::with_a_manual_clock());
}
