//! Limits on the searches of bulk cancels, which can be long.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::{AccessKeyId, Caller};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Permits one search per API key at a time, and one page of metadata compared at a time in this process. However many clients
/// search, they take the time of one thread and the memory of one page per key.
#[derive(Debug, Clone)]
pub struct Searches(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The keys whose searches are running. `None` is the administrator.
    running: Mutex<HashSet<Option<AccessKeyId>>>,
    comparing: Semaphore,
}

/// The permit of one key for one search.
#[derive(Debug)]
pub(crate) struct Search {
    searches: Searches,
    key: Option<AccessKeyId>,
}

impl Default for Searches {
    fn default() -> Self {
        Self(Arc::new(Shared { running: Mutex::default(), comparing: Semaphore::new(1) }))
    }
}

impl Searches {
    /// `None` while another search of the same key is running.
    pub(crate) fn begin(&self, caller: &Caller) -> Option<Search> {
        let key = caller.key_id();
        self.running().insert(key).then(|| Search { searches: self.clone(), key })
    }

    /// Waits until no other page is being compared. `None` never happens: the semaphore is not closed.
    pub(crate) async fn comparing(&self) -> Option<SemaphorePermit<'_>> {
        self.0.comparing.acquire().await.ok()
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
