//! How long to wait before the next try. Pure.

use std::time::Duration;

/// Exponential backoff: each failure in a row doubles the pause, from a first one up to a longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    /// Since it last went well.
    failures: u32,
}

impl Backoff {
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, failures: 0 }
    }

    /// The pause after the failure with this number in a row, 1 for the first.
    pub fn after(self, failure: u32) -> Duration {
        let factor = 1_u32.checked_shl(failure.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }

    /// Counts one more failure. Says how long to wait.
    pub fn failed(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.after(self.failures)
    }

    /// It went well: the next failure is a first one. Says whether that is news.
    pub const fn went_well(&mut self) -> bool {
        let was_failing = self.is_failing();
        self.failures = 0;
        was_failing
    }

    pub const fn is_failing(&self) -> bool {
        self.failures > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));

    #[test]
    fn pauses_grow_until_something_goes_well() {
        let mut backoff = BACKOFF;
        assert!(!backoff.is_failing() && !backoff.went_well());
        let millis: Vec<_> = (0..8).map(|_| backoff.failed().as_millis()).collect();
        assert_eq!(millis, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert!(backoff.is_failing() && backoff.went_well());
        assert_eq!(backoff.failed().as_millis(), 100);
        assert_eq!(Backoff { failures: u32::MAX, ..BACKOFF }.failed().as_millis(), 5000);
    }

    #[test]
    fn the_pause_after_a_failure_follows_from_its_number() {
        let millis = [0, 1, 2, 3, 6, 7, 32, 33, u32::MAX].map(|failure| BACKOFF.after(failure).as_millis());
        assert_eq!(millis, [100, 100, 200, 400, 3200, 5000, 5000, 5000, 5000]);
    }
}
