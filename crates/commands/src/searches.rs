//! Limits on the searches of bulk cancels, which can be long.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::{AccessKeyId, Caller};

/// Permits one search per API key at a time. However many clients search, a key takes no more than one session of the store.
#[derive(Debug, Clone, Default)]
pub struct Searches(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// The keys whose searches are running. `None` is the administrator.
    running: Mutex<HashSet<Option<AccessKeyId>>>,
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

    fn running(&self) -> MutexGuard<'_, HashSet<Option<AccessKeyId>>> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        self.searches.running().remove(&self.key);
    }
}
