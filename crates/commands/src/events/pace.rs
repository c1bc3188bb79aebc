//! How reading events gives way to calls that are late.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::call_rate::{CallCount, CallRate};

/// The number of late calls a second from which the machine counts as busy. Where there are fewer, a receiver is slow.
const LATE_CALLS_PER_SECOND_MIN: f64 = 1_000.0;
/// A burst of calls is mostly over by then.
const POSTPONED_MAX: Duration = Duration::from_secs(2);
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// The rest of a reader while calls stay late, as a multiple of the time for which it has read.
const REST_FACTOR: u32 = 19;
const REST_MIN: Duration = Duration::from_millis(10);
/// A rest never holds an event back for longer.
const REST_MAX: Duration = Duration::from_millis(500);

/// Tells readers of events when to rest. Without calls to give way to they never do.
#[derive(Default)]
pub(super) struct Pace(Option<Mutex<CallRate>>);

impl Pace {
    pub(super) fn yielding_to(late_calls: CallCount) -> Self {
        Self(Some(Mutex::new(CallRate::from(LATE_CALLS_PER_SECOND_MIN, late_calls))))
    }

    /// Whether enough calls are late for readers to rest.
    pub(super) fn are_calls_late(&self) -> bool {
        self.0.as_ref().is_some_and(|rate| rate.lock().unwrap_or_else(PoisonError::into_inner).is_high())
    }

    /// Waits while many calls are late, but not for long.
    pub(super) async fn postpone(&self) {
        let began = Instant::now();
        while self.are_calls_late() && began.elapsed() < POSTPONED_MAX {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Rests if many calls are late, for longer the longer the reader has `worked`. Returns how long it rested.
    pub(super) async fn rest_after(&self, worked: Duration) -> Duration {
        if !self.are_calls_late() {
            return Duration::ZERO;
        }
        let began = Instant::now();
        tokio::time::sleep((worked * REST_FACTOR).clamp(REST_MIN, REST_MAX)).await;
        began.elapsed()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };

    use super::*;

    /// One beside calls that are always late.
    pub(in super::super) fn always_late() -> Pace {
        let began = Instant::now();
        Pace::yielding_to(Arc::new(move || began.elapsed().as_secs_f64().mul_add(1e6, 1.0) as u64))
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_rests_only_while_many_calls_are_late() {
        let late = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&late);
        let pace = Pace::yielding_to(Arc::new(move || count.load(Ordering::Relaxed)));
        let ms = Duration::from_millis;
        let steps = [
            (999, ms(10), Duration::ZERO, "few: a receiver is slow"),
            (1_000, ms(10), ms(190), "many"),
            (2_000, ms(2_000), REST_MAX, "after a long read"),
            (2_000, Duration::ZERO, REST_MIN, "after a short one"),
            (0, ms(10), Duration::ZERO, "none is late any more"),
        ];
        for (made, worked, rest, why) in steps {
            tokio::time::advance(Duration::from_secs(1)).await;
            late.fetch_add(made, Ordering::Relaxed);
            assert_eq!(pace.rest_after(worked).await, rest, "{why}");
        }
        for (made, postponed, why) in
            [(0, Duration::ZERO, "none is late"), (1_000_000, LOOK_INTERVAL, "a burst that is over then")]
        {
            tokio::time::advance(Duration::from_secs(1)).await;
            late.fetch_add(made, Ordering::Relaxed);
            let began = Instant::now();
            pace.postpone().await;
            assert_eq!(began.elapsed(), postponed, "{why}");
        }
        let overloaded = always_late();
        tokio::time::advance(Duration::from_secs(1)).await;
        let began = Instant::now();
        overloaded.postpone().await;
        assert_eq!(began.elapsed(), POSTPONED_MAX);
        assert_eq!(Pace::default().rest_after(ms(10)).await, Duration::ZERO, "there are no calls on this node");
    }
}
