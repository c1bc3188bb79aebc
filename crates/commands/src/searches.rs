//! Limits on the searches of bulk requests, which can be long.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::{AccessKeyId, Caller};
use tokio::sync::Notify;

/// Permits one search per API key at a time. However many clients search, a key takes no more than one session of the store.
#[derive(Debug, Clone, Default)]
pub struct Searches(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// The keys whose searches are running. `None` is the administrator.
    running: Mutex<HashSet<Option<AccessKeyId>>>,
    /// Wakes the task that carries out operations.
    operations: Notify,
}

/// The permit of one key for one search.
#[derive(Debug)]
pub(crate) struct Search {
    searches: Searches,
    key: Option<AccessKeyId>,
}

impl Searches {
    /// `None` while another search of the same key is running.
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

impl Drop for Search {
    fn drop(&mut self) {
        self.searches.running().remove(&self.key);
    }
}
