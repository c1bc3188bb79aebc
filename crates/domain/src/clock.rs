use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::{Span, Timestamp};

/// The one source of time. The wall clock says when a timer is due and may jump; the monotonic clock measures how long
/// something took and never goes back.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// The time since a fixed instant of this process.
    fn monotonic(&self) -> Duration;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl Default for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this file owns the clock")]
    fn default() -> Self {
        Self { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this file owns the clock")]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

/// A clock that stands still until a test moves it.
#[derive(Debug)]
pub struct ManualClock {
    now_micros: AtomicI64,
    steady_micros: AtomicI64,
}

impl ManualClock {
    pub fn at(now: Timestamp) -> Self {
        Self { now_micros: AtomicI64::new(now.as_micros()), steady_micros: AtomicI64::new(0) }
    }

    /// Lets time pass: both clocks move.
    pub fn advance(&self, span: Span) {
        self.now_micros.fetch_add(span.as_micros(), Ordering::SeqCst);
        self.steady_micros.fetch_add(span.as_micros(), Ordering::SeqCst);
    }

    /// Sets the wall clock, as an operator would. The monotonic clock does not change.
    pub fn set(&self, now: Timestamp) {
        self.now_micros.store(now.as_micros(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.now_micros.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.steady_micros.load(Ordering::SeqCst).unsigned_abs())
    }
}
