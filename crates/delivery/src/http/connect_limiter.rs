//! New connections, a few at a time: a listener lets only so many wait to be accepted (50 in Java, 128 in much else), and one too
//! many is dialled again by the kernel after a second.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::origin::Origin;

/// How many may be new to one receiver at once.
pub(super) const CONNECTS_PENDING_MAX: usize = 16;
/// A connection is new until its first answer, or for this long: a receiver that is only slow to answer has accepted it by then.
const NEW_FOR: Duration = Duration::from_millis(10);

#[derive(Default)]
pub(super) struct ConnectLimiter(Mutex<HashMap<Origin, Weak<Semaphore>>>);

/// The right to one new connection.
pub(super) struct ConnectPermit(Option<OwnedSemaphorePermit>);

impl ConnectLimiter {
    pub async fn permit(&self, origin: &Origin) -> ConnectPermit {
        // The semaphore is never closed.
        ConnectPermit(self.permits(origin).acquire_owned().await.ok())
    }

    fn permits(&self, origin: &Origin) -> Arc<Semaphore> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(permits) = all.get(origin).and_then(Weak::upgrade) {
            return permits;
        }
        // Those that are not in use any more go before the map grows.
        if all.len() == all.capacity() {
            all.retain(|_, permits| permits.strong_count() > 0);
        }
        let permits = Arc::new(Semaphore::new(CONNECTS_PENDING_MAX));
        all.insert(origin.clone(), Arc::downgrade(&permits));
        permits
    }
}

impl ConnectPermit {
    /// Dials and makes the first call. The permit is returned when that is done, or after [`NEW_FOR`].
    pub async fn spend<T>(self, first_call: impl Future<Output = T>) -> T {
        let mut first_call = pin!(first_call);
        if let Ok(done) = timeout(NEW_FOR, first_call.as_mut()).await {
            return done;
        }
        drop(self.0);
        first_call.await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, future::pending};
    use tokio::time::Instant;

    use super::*;

    fn origin(port: usize) -> Origin {
        Origin::of(&format!("http://127.0.0.1:{port}/").parse().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_few_are_new_at_once_and_others_wait_for_an_answer_to_one_of_them() {
        let (connect_limiter, receiver) = (ConnectLimiter::default(), origin(1));
        let mut permits = Vec::new();
        for _ in 0..CONNECTS_PENDING_MAX {
            permits.push(connect_limiter.permit(&receiver).now_or_never().expect("a permit at once"));
        }
        let mut next = pin!(connect_limiter.permit(&receiver));
        assert!(next.as_mut().now_or_never().is_none());
        assert!(connect_limiter.permit(&origin(2)).now_or_never().is_some(), "another receiver has permits of its own");
        permits.pop().unwrap().spend(async {}).await;
        assert!(next.now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_that_does_not_answer_delays_the_next_connection_for_a_moment_only() {
        let connect_limiter = ConnectLimiter::default();
        let start = Instant::now();
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..3 * CONNECTS_PENDING_MAX {
            let permit = connect_limiter.permit(&origin(1)).await;
            calls.spawn(permit.spend(pending::<()>()));
        }
        let (waited, soon) = (start.elapsed(), Duration::from_millis(4));
        assert!(waited >= 2 * NEW_FOR && waited <= 2 * NEW_FOR + soon, "{waited:?}");
    }

    #[tokio::test]
    async fn receivers_that_are_not_dialled_any_more_are_forgotten() {
        let connect_limiter = ConnectLimiter::default();
        for port in 1..=10_000 {
            drop(connect_limiter.permit(&origin(port)).await);
        }
        assert!(connect_limiter.0.lock().unwrap().len() < 10);
    }
}
