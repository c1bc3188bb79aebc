//! Answers that many clients may want at the same time, and that are dear.

use std::{
    collections::HashMap,
    future::Future,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use domain::Clock;

/// How long an answer is good enough for further clients.
const FRESH: Duration = Duration::from_secs(1);

/// Keeps each answer for a second. While one is being made, clients that ask for the same wait for it: it is made once, however
/// many they are.
#[derive(Debug, Clone)]
pub(crate) struct SingleFlight<K, V>(Arc<Mutex<HashMap<K, Flight<V>>>>);

/// An answer with the time it was made at, on the monotonic clock. Locked while it is being made.
type Flight<V> = Arc<tokio::sync::Mutex<Option<(Duration, V)>>>;

impl<K, V> Default for SingleFlight<K, V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash + Clone, V: Clone> SingleFlight<K, V> {
    /// The answer for `key`: one of the last second, or what `ask` gives.
    pub(crate) async fn get<E>(&self, key: &K, clock: &dyn Clock, ask: impl Future<Output = Result<V, E>>) -> Result<V, E> {
        let flight = self.flight(key, clock.monotonic());
        let mut answer = flight.lock().await;
        if let Some((made_at, value)) = &*answer
            && is_fresh(*made_at, clock.monotonic())
        {
            return Ok(value.clone());
        }
        let value = ask.await?;
        *answer = Some((clock.monotonic(), value.clone()));
        Ok(value)
    }

    /// What is stale and wanted by no client is dropped on the way, so that only the last second is in memory.
    fn flight(&self, key: &K, now: Duration) -> Flight<V> {
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        flights.retain(|_, flight| {
            let is_stale = || flight.try_lock().is_ok_and(|answer| !answer.as_ref().is_some_and(|(at, _)| is_fresh(*at, now)));
            Arc::strong_count(flight) > 1 || !is_stale()
        });
        Arc::clone(flights.entry(key.clone()).or_default())
    }
}

fn is_fresh(made_at: Duration, now: Duration) -> bool {
    now.saturating_sub(made_at) < FRESH
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::atomic::AtomicU32, sync::atomic::Ordering};

    use domain::{ManualClock, Span, Timestamp};

    use super::*;

    #[tokio::test]
    async fn an_answer_is_made_once_for_all_who_want_it_within_a_second() {
        let (flights, clock, made) = (SingleFlight::default(), ManualClock::at(Timestamp::from_micros(0)), AtomicU32::new(0));
        let ask = async |key: u8| {
            let make = async {
                tokio::task::yield_now().await;
                Ok::<_, Infallible>(made.fetch_add(1, Ordering::Relaxed))
            };
            flights.get(&key, &clock, make).await.unwrap()
        };
        let (first, again, of_another, and_again) = tokio::join!(ask(1), ask(1), ask(2), ask(1));
        assert!(first == again && first == and_again && first != of_another);
        assert_eq!(made.load(Ordering::Relaxed), 2);
        clock.advance(Span::from_millis(999));
        assert_eq!(ask(1).await, first);
        clock.advance(Span::from_millis(1));
        assert_eq!(ask(1).await, 2);
        assert_eq!(flights.0.lock().unwrap().len(), 1, "what is stale is dropped");
    }

    #[tokio::test]
    async fn a_failure_is_not_kept() {
        let (flights, clock) = (SingleFlight::default(), ManualClock::at(Timestamp::from_micros(0)));
        assert_eq!(flights.get(&1, &clock, async { Err::<u8, _>("away") }).await, Err("away"));
        assert_eq!(flights.get(&1, &clock, async { Ok::<_, &str>(7) }).await, Ok(7));
    }
}
