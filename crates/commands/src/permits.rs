//! Permits that keys share, so that no key can hold all of them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::AccessKeyId;
use tokio::sync::Notify;

/// A key gets a permit while it holds fewer than are free. So one key alone holds at most half of them, two a third each, and one
/// that holds none finds one as long as there are more permits than keys that want many.
#[derive(Debug, Clone)]
pub struct Permits(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// How many each key holds, at least one. `None` is the administrator's.
    held: HashMap<Option<AccessKeyId>, usize>,
}

/// Gives the permit back when it is dropped.
#[derive(Debug)]
pub struct Permit {
    permits: Permits,
    key: Option<AccessKeyId>,
}

impl Permits {
    pub fn new(count: usize) -> Self {
        Self(Arc::new(Shared { state: Mutex::new(State { free: count, held: HashMap::new() }), freed: Notify::new() }))
    }

    pub fn try_acquire(&self, key: Option<AccessKeyId>) -> Option<Permit> {
        let mut state = self.state();
        if state.held.get(&key).copied().unwrap_or_default() >= state.free {
            return None;
        }
        state.free -= 1;
        *state.held.entry(key).or_default() += 1;
        Some(Permit { permits: self.clone(), key })
    }

    /// Waits for one.
    pub async fn acquire(&self, key: Option<AccessKeyId>) -> Permit {
        let mut freed = std::pin::pin!(self.0.freed.notified());
        loop {
            // Listening before looking, so that none that is freed in between is missed.
            freed.as_mut().enable();
            if let Some(permit) = self.try_acquire(key) {
                return permit;
            }
            freed.as_mut().await;
            freed.set(self.0.freed.notified());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.permits.state();
        state.free += 1;
        if let Some(held) = state.held.get_mut(&self.key) {
            *held -= 1;
            if *held == 0 {
                state.held.remove(&self.key);
            }
        }
        drop(state);
        self.permits.0.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn key(n: u128) -> Option<AccessKeyId> {
        Some(AccessKeyId(Uuid::from_u128(n)))
    }

    fn take_all(permits: &Permits, key: Option<AccessKeyId>) -> Vec<Permit> {
        std::iter::from_fn(|| permits.try_acquire(key)).collect()
    }

    #[test]
    fn greedy_keys_leave_permits_for_one_that_holds_none() {
        for (count, held) in [(1, vec![1]), (2, vec![1, 1]), (16, vec![8, 4, 2, 1, 1]), (64, vec![32, 16, 8, 4, 2, 1, 1])] {
            let permits = Permits::new(count);
            let all: Vec<_> = (0..).map(|n| take_all(&permits, key(n))).take(held.len()).collect();
            assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), held, "{count}");
            assert!(permits.try_acquire(None).is_none());
        }
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let permits = Permits::new(4);
        let mine = take_all(&permits, key(1));
        assert_eq!((mine.len(), take_all(&permits, None).len()), (2, 1));
        drop(mine);
        let yours = take_all(&permits, key(2));
        assert_eq!(yours.len(), 2);
        drop(yours);
        assert!(permits.state().held.is_empty());
    }

    #[tokio::test]
    async fn a_permit_that_is_given_back_goes_to_one_who_waits() {
        let permits = Permits::new(1);
        let held = permits.acquire(None).await;
        let waiting = tokio::spawn({
            let permits = permits.clone();
            async move { drop(permits.acquire(key(1)).await) }
        });
        tokio::task::yield_now().await;
        drop(held);
        waiting.await.unwrap();
    }
}
