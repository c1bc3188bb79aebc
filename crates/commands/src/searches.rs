//! Limits on reads that can be long, so that no key takes all the sessions of the store.

use std::{
    collections::HashSet,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::{AccessKeyId, Caller};
use store::{SCANS_MAX, StoreError, StoreResult};
use tokio::sync::Notify;
use tracing::Instrument;

use crate::{CommandError, Commands, Permits, call};

/// How long a search waits for those of the same key before it.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// What keys share: permits for lists, counts and statistics, of which no key gets all, and one bulk request per key at a time.
#[derive(Debug, Clone, Default)]
pub struct Searches(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    scans: Permits,
    /// The keys whose bulk requests are searching. `None` is the administrator.
    running: Mutex<HashSet<Option<AccessKeyId>>>,
    /// Wakes the task that carries out operations.
    operations: Notify,
}

impl Default for Shared {
    fn default() -> Self {
        Self { scans: Permits::new(SCANS_MAX), running: Mutex::default(), operations: Notify::default() }
    }
}

/// The permit of one key for one bulk request.
#[derive(Debug)]
pub(crate) struct Search {
    searches: Searches,
    key: Option<AccessKeyId>,
}

impl Searches {
    /// `None` while another bulk request of the same key is searching.
    pub(crate) fn begin(&self, caller: &Caller) -> Option<Search> {
        let key = caller.key_id();
        self.running().insert(key).then(|| Search { searches: self.clone(), key })
    }

    /// There is an operation to carry out.
    pub(crate) fn operation_started(&self) {
        self.0.operations.notify_one();
    }

    pub(crate) async fn await_operation(&self) {
        self.0.operations.notified().await;
    }

    fn running(&self) -> MutexGuard<'_, HashSet<Option<AccessKeyId>>> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Commands {
    /// A read that can take long, with one of the permits that keys share. It has its permit until the store is done, also when the
    /// client no longer waits.
    pub(crate) async fn scan<T: Send + 'static>(
        &self,
        read: impl Future<Output = StoreResult<T>> + Send + 'static,
    ) -> Result<T, CommandError> {
        let waiting = self.searches.0.scans.acquire(self.caller.key_id());
        let permit = tokio::time::timeout(WAIT_MAX, waiting).await.map_err(|_| CommandError::TooManySearches)?;
        let read = async move {
            let answer = call::reading(read).await;
            drop(permit);
            answer
        };
        match tokio::spawn(read.in_current_span()).await {
            Ok(answer) => Ok(answer?),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(StoreError::Unavailable("the service is stopping".into()).into()),
        }
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        self.searches.running().remove(&self.key);
    }
}

#[cfg(test)]
mod tests;
