use std::{future::Future, time::Duration};

use domain::Clock;
use store::StoreResult;
use tokio::sync::Mutex;

/// A dear answer that callers who wait for it at the same time share. No caller gets one that was begun before it asked.
#[derive(Debug)]
pub struct SharedAnswer<T>(Mutex<Option<(Duration, T)>>);

impl<T> Default for SharedAnswer<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> SharedAnswer<T> {
    pub async fn get(&self, clock: &dyn Clock, ask: impl Future<Output = StoreResult<T>>) -> StoreResult<T> {
        let asked = clock.monotonic();
        let mut last = self.0.lock().await;
        if let Some((begun, answer)) = &*last
            && *begun > asked
        {
            return Ok(answer.clone());
        }
        let begun = clock.monotonic();
        let answer = ask.await?;
        *last = Some((begun, answer.clone()));
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use domain::{ManualClock, Span, Timestamp};
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn those_who_wait_share_an_answer_that_was_begun_after_they_asked() {
        let (shared, clock) = (SharedAnswer::default(), ManualClock::at(Timestamp::from_micros(0)));
        let (made, go_on) = (AtomicU32::new(0), Notify::new());
        let ask = || async {
            go_on.notified().await;
            Ok(made.fetch_add(1, Ordering::Relaxed) + 1)
        };
        let release = async {
            for _ in 0..3 {
                clock.advance(Span::from_secs(1));
                go_on.notify_one();
                tokio::task::yield_now().await;
            }
        };
        let (first, second, third, ()) =
            tokio::join!(shared.get(&clock, ask()), shared.get(&clock, ask()), shared.get(&clock, ask()), release);
        assert_eq!((first.unwrap(), second.unwrap(), third.unwrap()), (1, 2, 2), "the first was begun before the others asked");
    }
}
