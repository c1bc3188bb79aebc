use std::{
    future::Future,
    io::Write,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use domain::{ManualClock, TimerId, Timestamp};
use store::{OperationId, Store};

/// The timeout of a behaviour: on any store the slowest takes a few seconds.
pub const BEHAVIOUR_SECONDS_MAX: u64 = 60;

/// An empty database for one behaviour.
#[async_trait]
pub trait Fixture: Send + Sync + 'static {
    /// Opens the database as a starting process would, migrations included. The first call finds it empty; later ones find the
    /// same data. It may always be called again once the earlier handles are dropped.
    async fn open(&self) -> Arc<dyn Store>;

    /// Whether `open` may also be called while earlier handles are in use, and concurrently.
    fn reopens(&self) -> bool {
        true
    }

    /// The database's clock, if it is one that stands still until it is moved.
    fn clock(&self) -> Option<Arc<ManualClock>> {
        None
    }

    /// The same database as another process would open it, while `store` is in use. `None` where only one process can.
    async fn another_process(&self) -> Option<Arc<dyn Store>> {
        None
    }

    /// Damages the stored callback of a timer (`callback_config = '{'`), so that it cannot be read any more. `false`
    /// when this store has no way to do so.
    async fn spoil(&self, id: TimerId) -> bool {
        let _ = id;
        false
    }

    /// Damages what a list shows of a timer (`correlation_id = ''`). `false` when this store has no way to do so.
    async fn spoil_summary(&self, id: TimerId) -> bool {
        let _ = id;
        false
    }

    /// Damages the stored options of a timer (`options = '{'`). `false` when this store has no way to do so.
    async fn spoil_options(&self, id: TimerId) -> bool {
        let _ = id;
        false
    }

    /// Damages the stored filter of an operation (`filter = '{'`). `false` when this store has no way to do so.
    async fn spoil_operation(&self, id: OperationId) -> bool {
        let _ = id;
        false
    }

    /// Gives an unfinished timer, which is due at `execute_at`, an outcome (`failed`, attempt 9), past the store. `false` when
    /// this store has no way to do so.
    async fn plant_outcome(&self, id: TimerId, execute_at: Timestamp) -> bool {
        let _ = (id, execute_at);
        false
    }

    /// Makes the database refuse to remove or change the `due` row of a timer, as if what is stored there were damaged. `false`
    /// when this store has no way to do so.
    async fn refuse_to_settle(&self, id: TimerId) -> bool {
        let _ = id;
        false
    }
}

/// The fixture of any store, so that behaviours are compiled once for all of them.
pub struct AnyFixture(Box<dyn Fixture>);

#[async_trait]
impl Fixture for AnyFixture {
    async fn open(&self) -> Arc<dyn Store> {
        self.0.open().await
    }

    fn reopens(&self) -> bool {
        self.0.reopens()
    }

    fn clock(&self) -> Option<Arc<ManualClock>> {
        self.0.clock()
    }

    async fn another_process(&self) -> Option<Arc<dyn Store>> {
        self.0.another_process().await
    }

    async fn spoil(&self, id: TimerId) -> bool {
        self.0.spoil(id).await
    }

    async fn spoil_summary(&self, id: TimerId) -> bool {
        self.0.spoil_summary(id).await
    }

    async fn spoil_options(&self, id: TimerId) -> bool {
        self.0.spoil_options(id).await
    }

    async fn spoil_operation(&self, id: OperationId) -> bool {
        self.0.spoil_operation(id).await
    }

    async fn plant_outcome(&self, id: TimerId, execute_at: Timestamp) -> bool {
        self.0.plant_outcome(id, execute_at).await
    }

    async fn refuse_to_settle(&self, id: TimerId) -> bool {
        self.0.refuse_to_settle(id).await
    }
}

/// A behaviour under way.
pub type Running = Pin<Box<dyn Future<Output = ()>>>;

/// Runs one behaviour to its end on threads of its own. Setting up the fixture has no timeout: the very first one may have to
/// start a server.
pub fn run<F: Fixture>(fixture: impl Future<Output = F>, behaviour: fn(AnyFixture) -> Running) {
    run_to_its_end(pin!(async { AnyFixture(Box::new(fixture.await)) }), behaviour);
}

fn run_to_its_end(fixture: Pin<&mut dyn Future<Output = AnyFixture>>, behaviour: fn(AnyFixture) -> Running) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let limit = Duration::from_secs(BEHAVIOUR_SECONDS_MAX);
    let ended = runtime.block_on(async {
        let fixture = fixture.await;
        tokio::time::timeout(limit, behaviour(fixture)).await
    });
    assert!(ended.is_ok(), "the behaviour did not end within {BEHAVIOUR_SECONDS_MAX} s");
}

/// Reports on the real standard error, past the capture of the test harness, that a behaviour was skipped.
pub fn skip(behaviour: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped {behaviour}: {reason}");
}
