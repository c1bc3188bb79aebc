use std::{
    future::Future,
    sync::{Arc, OnceLock},
};

use domain::{Clock, Metric, NewTimer, Timestamp};
use metrics::Histogram;

use crate::{
    Claim, Claimed, Created, Decorator, DueEntry, ListQuery, Operation, Page, Settlement, ShardCursor, ShardLease, Store,
    StoreResult, Writable,
};

const CALL_DURATION: &str = "timer_store_call_duration_seconds";
const ERRORS: &str = "timer_store_errors_total";
const BATCH_SIZE: &str = "timer_store_batch_size";

/// The metrics of every store.
pub const METRICS: &[Metric] = &[
    Metric::histogram(CALL_DURATION, "How long a call of the store took, failed ones included, by operation.")
        .by(&[("operation", &["due"])]),
    Metric::counter(ERRORS, "Calls of the store that failed, by operation and by kind: unavailable, full, unknown, corrupt.")
        .by(&[("operation", &Operation::NAMES), ("kind", &["unavailable", "full", "unknown", "corrupt"])]),
    Metric::histogram(
        BATCH_SIZE,
        "How many timers one call carried, by operation: into create, claim and settle, out of list, due, expired_claims and purge.",
    )
    .by(&[("operation", &["create", "claim", "settle", "list", "due", "expired_claims", "purge"])]),
];

/// A store whose every call is measured. It changes nothing else.
pub struct Measured<S: ?Sized> {
    inner: Arc<S>,
    clock: Arc<dyn Clock>,
    handles: [Handles; Operation::COUNT],
    writable: Arc<Writable>,
}

/// The handles of one operation's metrics. Each is looked up at the first call that records something: a busy store makes many
/// calls, and the metrics of calls that are never made should not be shown.
#[derive(Default)]
struct Handles {
    duration: OnceLock<Histogram>,
    carried: OnceLock<Histogram>,
}

impl<S: Store + ?Sized> Measured<S> {
    pub fn new(inner: Arc<S>, clock: Arc<dyn Clock>) -> Self {
        Self { inner, clock, handles: std::array::from_fn(|_| Handles::default()), writable: Arc::default() }
    }

    /// Whether it takes writes, kept up to date by every call.
    pub fn writable(&self) -> Arc<Writable> {
        Arc::clone(&self.writable)
    }

    #[expect(clippy::cast_precision_loss, reason = "a batch is far smaller than what a float counts exactly")]
    fn carried(&self, operation: Operation, timers: usize) {
        let carried = || metrics::histogram!(BATCH_SIZE, "operation" => operation.as_str());
        self.handles[operation as usize].carried.get_or_init(carried).record(timers as f64);
    }
}

impl<S: Store + ?Sized> Decorator for Measured<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.inner
    }

    async fn around<T: Send>(&self, operation: Operation, work: impl Future<Output = StoreResult<T>> + Send) -> StoreResult<T> {
        let started = self.clock.monotonic();
        let answer = work.await;
        let took = self.clock.monotonic().saturating_sub(started);
        let duration = || metrics::histogram!(CALL_DURATION, "operation" => operation.as_str());
        self.handles[operation as usize].duration.get_or_init(duration).record(took);
        self.writable.note(operation, &answer);
        if let Err(error) = &answer {
            metrics::counter!(ERRORS, "operation" => operation.as_str(), "kind" => error.kind()).increment(1);
        }
        answer
    }

    async fn create(&self, batch: Vec<NewTimer>) -> StoreResult<Vec<Created>> {
        self.carried(Operation::Create, batch.len());
        self.around(Operation::Create, self.inner.create(batch)).await
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        let page = self.around(Operation::List, self.inner.list(query)).await?;
        self.carried(Operation::List, page.timers.len());
        Ok(page)
    }

    async fn due(&self, from: &[ShardCursor], until: Timestamp, limit: usize) -> StoreResult<Vec<DueEntry>> {
        let entries = self.around(Operation::Due, self.inner.due(from, until, limit)).await?;
        self.carried(Operation::Due, entries.len());
        Ok(entries)
    }

    async fn claim(&self, claim: &Claim, entries: &[DueEntry]) -> StoreResult<Vec<Claimed>> {
        self.carried(Operation::Claim, entries.len());
        self.around(Operation::Claim, self.inner.claim(claim, entries)).await
    }

    async fn settle(&self, batch: &[Settlement]) -> StoreResult<Vec<bool>> {
        self.carried(Operation::Settle, batch.len());
        self.around(Operation::Settle, self.inner.settle(batch)).await
    }

    async fn expired_claims(&self, shard_leases: &[ShardLease], limit: usize) -> StoreResult<Vec<Claimed>> {
        let claims = self.around(Operation::ExpiredClaims, self.inner.expired_claims(shard_leases, limit)).await?;
        self.carried(Operation::ExpiredClaims, claims.len());
        Ok(claims)
    }

    async fn purge(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        let purged = self.around(Operation::Purge, self.inner.purge(before, limit)).await?;
        self.carried(Operation::Purge, purged);
        Ok(purged)
    }

    async fn nudged(&self) -> StoreResult<Vec<DueEntry>> {
        // Waiting for another process is no measure of the store.
        self.inner.nudged().await
    }
}
