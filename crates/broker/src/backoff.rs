//! How long to wait before the next try. Pure.

use std::time::Duration;

const AGAIN_AFTER_MIN: Duration = Duration::from_secs(1);
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(30);

const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// When a command that could not be carried out should come again, after so many deliveries.
pub(crate) fn again_after(deliveries: u32) -> Duration {
    doubled(AGAIN_AFTER_MIN, deliveries.saturating_sub(1), AGAIN_AFTER_MAX)
}

fn doubled(first: Duration, times: u32, most: Duration) -> Duration {
    first.saturating_mul(1_u32.checked_shl(times).unwrap_or(u32::MAX)).min(most)
}

/// The failures of something that is tried again and again, since it last went well.
#[derive(Debug, Default)]
pub(crate) struct Failures(u32);

impl Failures {
    pub(crate) const fn is_failing(&self) -> bool {
        self.0 > 0
    }

    /// One more. Says how long to leave it alone.
    pub(crate) fn failed(&mut self) -> Duration {
        let pause = doubled(PAUSE_MIN, self.0, PAUSE_MAX);
        self.0 = self.0.saturating_add(1);
        pause
    }

    /// It went well. Says whether that is news.
    pub(crate) fn went_well(&mut self) -> bool {
        std::mem::take(&mut self.0) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_comes_again_after_ever_longer_up_to_half_a_minute() {
        let seconds = [0, 1, 2, 3, 4, 5, 6, 7, 33, u32::MAX].map(|deliveries| again_after(deliveries).as_secs());
        assert_eq!(seconds, [1, 1, 2, 4, 8, 16, 30, 30, 30, 30]);
    }

    #[test]
    fn pauses_grow_until_something_goes_well() {
        let mut failures = Failures::default();
        assert!(!failures.is_failing() && !failures.went_well());
        let millis: Vec<_> = (0..8).map(|_| failures.failed().as_millis()).collect();
        assert_eq!(millis, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert!(failures.is_failing() && failures.went_well());
        assert_eq!(failures.failed().as_millis(), 100);
        assert_eq!(Failures(u32::MAX).failed().as_millis(), 5000);
    }
}
