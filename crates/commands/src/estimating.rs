//! A store that counts wrong and says that it may, for tests.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use store::{Count, Decorator, Filter, StoreResult};
use store_testing::{Faulty, Model};

pub(crate) struct Estimating {
    inner: Arc<Faulty<Model>>,
    timers: u64,
    /// How long each count was allowed to take.
    budgets: Mutex<Vec<Duration>>,
}

impl Estimating {
    pub(crate) fn new(inner: Arc<Faulty<Model>>, timers: u64) -> Self {
        Self { inner, timers, budgets: Mutex::default() }
    }

    pub(crate) fn budgets(&self) -> Vec<Duration> {
        self.budgets.lock().unwrap().clone()
    }
}

impl Decorator for Estimating {
    type Inner = Faulty<Model>;

    fn inner(&self) -> &Faulty<Model> {
        &self.inner
    }

    /// Takes all the time that it has.
    async fn count(&self, _: &Filter, budget: Duration) -> StoreResult<Count> {
        self.budgets.lock().unwrap().push(budget);
        tokio::time::sleep(budget).await;
        Ok(Count::about(self.timers))
    }
}
