use std::{
    sync::{
        Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use domain::{Clock, Span, Timestamp};
use tokio::time::Instant;

const START: Timestamp = Timestamp::from_micros(1_893_456_000_000_000);

/// The time that passes in the simulation. It is the database's clock, and the receivers'.
#[derive(Debug, Clone, Copy)]
pub struct TrueClock(Instant);

impl TrueClock {
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// How long the simulation has been running.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

impl Clock for TrueClock {
    fn now(&self) -> Timestamp {
        START.saturating_add(Span::from_micros_clamped(i64::try_from(self.elapsed().as_micros()).unwrap_or(i64::MAX)))
    }

    fn monotonic(&self) -> Duration {
        self.elapsed()
    }
}

/// The clock of one machine: off by something that may change. Its monotonic clock is right.
#[derive(Debug)]
pub struct NodeClock {
    truth: TrueClock,
    ahead_micros: AtomicI64,
    /// When it was last set, in the time that passes.
    set_at: Mutex<Option<Duration>>,
    /// A mistake on purpose: how long something took is measured with a clock that may be set.
    pub is_monotonic_by_the_wall: bool,
}

impl NodeClock {
    pub fn new(truth: TrueClock, ahead_micros: i64) -> Self {
        Self { truth, ahead_micros: AtomicI64::new(ahead_micros), set_at: Mutex::new(None), is_monotonic_by_the_wall: false }
    }

    pub fn ahead_micros(&self) -> i64 {
        self.ahead_micros.load(Ordering::Relaxed)
    }

    /// Sets it, as an operator might.
    pub fn set_ahead(&self, micros: i64) {
        self.ahead_micros.store(micros, Ordering::Relaxed);
        *self.set_at.lock().unwrap() = Some(self.truth.elapsed());
    }

    /// Whether it was set less than this long ago.
    pub fn was_set_within(&self, span: Duration) -> bool {
        self.set_at.lock().unwrap().is_some_and(|at| self.truth.elapsed() < at + span)
    }
}

impl Clock for NodeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.truth.now().as_micros() + self.ahead_micros())
    }

    fn monotonic(&self) -> Duration {
        if self.is_monotonic_by_the_wall {
            // Far from zero, so that it can go back.
            let since_start = self.now().as_micros() - START.as_micros() + 3_600_000_000;
            return Duration::from_micros(since_start.max(0).unsigned_abs());
        }
        self.truth.elapsed()
    }
}
