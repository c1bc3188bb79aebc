//! Whether this node's clock can be trusted: timers fire by it, and the database's is the one that all nodes share.

use std::time::Duration;

use domain::Timestamp;

/// Beyond this a node owns nothing: it would fire early, or late.
const SKEW_MAX_MICROS: i64 = 500_000;
/// Below this it may own again. The room between the two keeps a clock at the limit from coming and going.
const SKEW_TRUSTED_MICROS: i64 = 400_000;

/// What is known of the skew. A pure structure: readings are arguments.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ClockCheck {
    /// How far this clock is ahead, in microseconds; `None` before the first comparison.
    skew_micros: Option<i64>,
    is_wrong: bool,
    /// What the two clocks of this machine said at the last comparison.
    compared_at: Option<(Timestamp, Duration)>,
}

impl ClockCheck {
    /// Compares what this clock said before and after a call with what the database's clock said during it. `monotonic` is the
    /// monotonic time at which it was asked.
    pub fn compare(&mut self, asked_at: Timestamp, monotonic: Duration, took: Duration, theirs: Timestamp) {
        self.compared_at = Some((asked_at, monotonic));
        let half = i64::try_from(took.as_micros() / 2).unwrap_or(i64::MAX);
        let skew = asked_at.as_micros().saturating_add(half).saturating_sub(theirs.as_micros());
        // The call itself may have taken that much of the difference: only what is beyond doubt counts against the clock.
        let (certainly, perhaps) = (skew.saturating_abs().saturating_sub(half), skew.saturating_abs().saturating_add(half));
        self.skew_micros = Some(skew);
        if certainly > SKEW_MAX_MICROS {
            self.is_wrong = true;
        } else if perhaps < SKEW_TRUSTED_MICROS {
            self.is_wrong = false;
        }
    }

    pub fn skew_micros(&self) -> i64 {
        self.skew_micros.unwrap_or_default()
    }

    /// Whether this clock was compared and found right.
    pub const fn is_right(&self) -> bool {
        self.skew_micros.is_some() && !self.is_wrong
    }

    pub const fn is_wrong(&self) -> bool {
        self.is_wrong
    }

    /// Whether timers may fire by this reading of the clocks. One that was set since the last comparison is not believed before
    /// the next: until then it would fire what other nodes would have to wait for.
    pub fn may_fire_at(&self, now: Timestamp, monotonic: Duration) -> bool {
        self.is_right() && !self.has_jumped(now, monotonic)
    }

    /// Whether the clocks of this machine have gone apart since the last comparison: one was set, or the machine was suspended, of
    /// which the monotonic clock knows nothing.
    pub fn has_jumped(&self, now: Timestamp, monotonic: Duration) -> bool {
        let Some((compared_at, monotonic_then)) = self.compared_at else { return false };
        let passed = i64::try_from(monotonic.saturating_sub(monotonic_then).as_micros()).unwrap_or(i64::MAX);
        let seems_passed = now.as_micros().saturating_sub(compared_at.as_micros());
        seems_passed.saturating_sub(passed).saturating_abs() > SKEW_MAX_MICROS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_beyond_doubt_counts_against_a_clock() {
        let mut check = ClockCheck::default();
        assert!(!check.is_right(), "nothing was compared yet");
        // What this clock is ahead in truth, how long the call took (in milliseconds), and whether the clock counts as right then.
        for (ahead, took, is_right) in [
            (0, 1, true),
            (499, 1, true),
            (502, 1, false),
            (450, 1, false),
            (399, 1, true),
            (-501, 1, false),
            (-410, 0, false),
            (-390, 0, true),
            (700, 1000, true),
            (3_600_000, 10, false),
            (100, 1000, false),
            (0, 10, true),
        ] {
            let theirs = Timestamp::from_micros(1_893_456_000_000_000);
            let asked_at = Timestamp::from_micros(theirs.as_micros() + ahead * 1000 - took * 500);
            check.compare(asked_at, Duration::ZERO, Duration::from_millis(took.unsigned_abs()), theirs);
            assert_eq!((check.is_right(), check.skew_micros()), (is_right, ahead * 1000), "{ahead} {took}");
        }
    }

    #[test]
    fn a_clock_that_was_set_is_not_believed_before_it_is_compared() {
        const THEN: i64 = 1_893_456_000_000_000;
        let at = |micros: i64| Timestamp::from_micros(THEN + micros);
        let mut check = ClockCheck::default();
        assert!(!check.may_fire_at(at(0), Duration::ZERO), "nothing was compared yet");
        check.compare(at(0), Duration::from_secs(7), Duration::ZERO, at(0));
        // How much time seems to have passed, and how much has (in milliseconds).
        for (seems, passed, may_fire) in [
            (0, 0, true),
            (9_000, 9_000, true),
            (499, 0, true),
            (600, 0, false),
            (-600, 0, false),
            (0, 600, false),
            (3_600_000, 250, false),
        ] {
            let monotonic = Duration::from_secs(7) + Duration::from_millis(passed);
            assert_eq!(check.may_fire_at(at(seems * 1_000), monotonic), may_fire, "{seems} {passed}");
        }
        let hour = 3_600_000_000;
        check.compare(at(hour), Duration::from_secs(8), Duration::ZERO, at(1_000_000));
        assert!(!check.may_fire_at(at(hour), Duration::from_secs(8)), "compared, and found wrong");
        check.compare(at(2_000_000), Duration::from_secs(9), Duration::ZERO, at(2_000_000));
        assert!(check.may_fire_at(at(2_000_000), Duration::from_secs(9)));
    }
}
