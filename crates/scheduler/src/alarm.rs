//! What waits for the time of a call.
//!
//! The runtime's own timers count in milliseconds and wake up to two of them late. The last stretch before a deadline is
//! therefore waited for by a thread that does nothing else.

use std::{
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use domain::{Clock, Timestamp};
use tokio::sync::Notify;

/// After this time the wall clock is looked at again: it may jump.
pub const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The time before a deadline that is left to the thread: the runtime wakes up at most this much too late.
const LAST_STRETCH: Duration = Duration::from_millis(3);

/// Wakes the tasks that sleep by it in time: all of them at the earliest time that one of them has set. They look at the time
/// anyway.
pub struct Alarm {
    thread: Option<Thread>,
}

struct Thread {
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    handle: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    setting: Mutex<Setting>,
    changed: Condvar,
    rung: Notify,
}

#[derive(Default, Clone, Copy)]
struct Setting {
    /// On the monotonic clock.
    rings_at: Option<Duration>,
    has_ended: bool,
}

/// How long to sleep until `at`, as far as can be known now.
pub fn pause_until(at: Timestamp, now: Timestamp) -> Duration {
    at.since(now).as_duration().min(PAUSE_MAX)
}

impl Shared {
    fn setting(&self) -> MutexGuard<'_, Setting> {
        // A setting changes as a whole.
        self.setting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Alarm {
    /// One that counts in milliseconds, as the runtime does.
    pub const fn coarse() -> Self {
        Self { thread: None }
    }

    /// One that is exact to a fraction of a millisecond, by a thread of its own.
    pub fn exact(clock: Arc<dyn Clock>) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (watched, monotonic) = (Arc::clone(&shared), Arc::clone(&clock));
        let watch = move || watch(&watched, monotonic.as_ref());
        let handle = std::thread::Builder::new().name("alarm".to_owned()).spawn(watch)?;
        Ok(Self { thread: Some(Thread { shared, clock, handle: Some(handle) }) })
    }

    /// Completes after `pause`, or somewhat before the end of a long one: the caller looks at the time anyway.
    pub async fn sleep(&self, pause: Duration) {
        match &self.thread {
            None => tokio::time::sleep(pause).await,
            Some(_) if pause > LAST_STRETCH => tokio::time::sleep(pause - LAST_STRETCH).await,
            Some(thread) => thread.sleep(pause).await,
        }
    }
}

impl Thread {
    async fn sleep(&self, pause: Duration) {
        /// Should the thread have died.
        const PATIENCE: Duration = Duration::from_millis(10);
        let rung = self.shared.rung.notified();
        let rings_at = self.clock.monotonic() + pause;
        {
            let mut setting = self.shared.setting();
            // A thread that wakes up earlier goes on sleeping by itself.
            if setting.rings_at.is_none_or(|before| rings_at < before) {
                setting.rings_at = Some(rings_at);
                self.shared.changed.notify_one();
            }
        }
        let _ = tokio::time::timeout(pause + PATIENCE, rung).await;
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.shared.setting().has_ended = true;
        self.shared.changed.notify_one();
        if let Some(handle) = self.handle.take()
            && handle.join().is_err()
        {
            tracing::error!("the alarm ended by a panic");
        }
    }
}

fn watch(shared: &Shared, clock: &dyn Clock) {
    let mut setting = shared.setting();
    while !setting.has_ended {
        let Some(rings_at) = setting.rings_at else {
            setting = shared.changed.wait(setting).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let left = rings_at.saturating_sub(clock.monotonic());
        if left.is_zero() {
            setting.rings_at = None;
            // No task may be waiting any more, and the next one must not take this ring for its own.
            shared.rung.notify_waiters();
        } else {
            setting = shared
                .changed
                .wait_timeout(setting, left)
                .map_or_else(|poisoned| poisoned.into_inner().0, |(setting, _)| setting);
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::SystemClock;

    use super::*;

    #[tokio::test]
    async fn an_alarm_never_rings_early_in_the_last_stretch() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let alarm = Alarm::exact(Arc::clone(&clock)).unwrap();
        for micros in [0, 1, 200, 900, 2500, 100] {
            let (pause, started) = (Duration::from_micros(micros), clock.monotonic());
            alarm.sleep(pause).await;
            assert!(clock.monotonic() - started >= pause, "{pause:?}");
        }
    }

    #[tokio::test]
    async fn an_alarm_that_no_task_waited_for_does_not_stop_the_next_one() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let alarm = Alarm::exact(Arc::clone(&clock)).unwrap();
        for _ in 0..100 {
            tokio::select! {
                biased;
                () = alarm.sleep(Duration::from_millis(2)) => {}
                () = tokio::task::yield_now() => {}
            }
            let next = alarm.sleep(Duration::from_micros(50));
            tokio::time::timeout(Duration::from_secs(10), next).await.expect("it rings");
        }
    }

    #[tokio::test]
    async fn most_of_a_long_pause_is_left_to_the_runtime() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let alarm = Alarm::exact(Arc::clone(&clock)).unwrap();
        let started = clock.monotonic();
        alarm.sleep(Duration::from_millis(50)).await;
        assert!(clock.monotonic() - started >= Duration::from_millis(47));
    }
}
