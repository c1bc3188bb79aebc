//! How reading events gives way to calls that are late.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crate::call_rate::{CallCount, CallRate};

/// Calls of which there are fewer are late for another reason than a busy machine: a receiver that hangs.
const CALLS_PER_SECOND_MIN: f64 = 1_000.0;
const LATENESS_MIN: Duration = Duration::from_millis(100);
/// While calls are late, a reader rests so many times as long as it has read.
const REST_FACTOR: u32 = 19;
/// A rest never holds an event back for longer.
const REST_MAX: Duration = Duration::from_millis(500);

/// How late the oldest timer is that waits on this node.
pub type Lateness = Arc<dyn Fn() -> Duration + Send + Sync>;

/// What reading events gives way to. Without one it never does.
#[derive(Default)]
pub(super) struct Pace(Option<Calls>);

struct Calls {
    rate: Mutex<CallRate>,
    lateness: Lateness,
}

impl Pace {
    pub(super) fn yielding_to(calls: CallCount, lateness: Lateness) -> Self {
        Self(Some(Calls { rate: Mutex::new(CallRate::from(CALLS_PER_SECOND_MIN, calls)), lateness }))
    }

    /// Rests after so much work if many calls are made, and late. Returns for how long.
    pub(super) async fn rest_after(&self, worked: Duration) -> Duration {
        if !self.0.as_ref().is_some_and(Calls::are_late) {
            return Duration::ZERO;
        }
        let rest = (worked * REST_FACTOR).min(REST_MAX);
        tokio::time::sleep(rest).await;
        rest
    }
}

impl Calls {
    fn are_late(&self) -> bool {
        let are_many = self.rate.lock().unwrap_or_else(PoisonError::into_inner).is_high();
        are_many && (self.lateness)() >= LATENESS_MIN
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reader_rests_only_while_many_calls_are_late() {
        let (calls, late) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (count, lateness) = (Arc::clone(&calls), Arc::clone(&late));
        let pace = Pace::yielding_to(
            Arc::new(move || count.load(Ordering::Relaxed)),
            Arc::new(move || Duration::from_millis(lateness.load(Ordering::Relaxed))),
        );
        let ms = Duration::from_millis;
        let steps = [
            (5_000, 99, ms(10), Duration::ZERO, "many, and on time"),
            (999, 60_000, ms(10), Duration::ZERO, "few, and late: a receiver hangs"),
            (1_000, 100, ms(10), ms(190), "many, and late"),
            (2_000, 100, ms(2_000), REST_MAX, "after a long read"),
        ];
        for (made, late_ms, worked, rest, why) in steps {
            tokio::time::advance(Duration::from_secs(1)).await;
            calls.fetch_add(made, Ordering::Relaxed);
            late.store(late_ms, Ordering::Relaxed);
            assert_eq!(pace.rest_after(worked).await, rest, "{why}");
        }
        assert_eq!(Pace::default().rest_after(ms(10)).await, Duration::ZERO, "there are no calls on this node");
    }
}
