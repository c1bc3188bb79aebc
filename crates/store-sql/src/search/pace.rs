//! How far a search goes between two looks at the clock.

use std::time::Duration;

use tokio::time::Instant;

/// How many timers are looked at between two looks at the clock: mostly few are needed for a page.
const STRETCH_MIN: u64 = 250;
const STRETCH_MAX: u64 = 50_000;

/// How long the next stretch may be.
#[derive(Debug)]
pub struct Pace {
    length: u64,
    stretches: u32,
    began: Instant,
    /// When the stretch that is under way began.
    since: Instant,
    budget: Duration,
}

impl Pace {
    pub fn new(budget: Duration) -> Self {
        let now = Instant::now();
        Self { length: STRETCH_MIN, stretches: 0, began: now, since: now, budget }
    }

    pub const fn length(&self) -> u64 {
        self.length
    }

    pub const fn is_first(&self) -> bool {
        self.stretches == 0
    }

    /// Takes the length of the next stretch from how long the last one took, and from how many timers are expected to be enough. `false`
    /// when there is no time for one more.
    pub fn next(&mut self, walked: u64, enough: u64) -> bool {
        let now = Instant::now();
        let took = now - self.since;
        let left = self.budget.saturating_sub(now - self.began);
        self.since = now;
        self.stretches += 1;
        self.length = next_length(self.length, walked, took, left).min(with_reserve(enough));
        self.length > 0
    }
}

/// The length of the next stretch: the timers that fit into three quarters of the time that is left at the pace of the last one, at
/// most eight times its length and `STRETCH_MAX`. 0 where that is less than `STRETCH_MIN`.
fn next_length(length: u64, walked: u64, took: Duration, left: Duration) -> u64 {
    let nanos = took.as_nanos().max(1);
    let fit = u128::from(walked.max(1)) * left.as_nanos() * 3 / 4 / nanos;
    let fit = u64::try_from(fit).unwrap_or(u64::MAX).min(length * 8).min(STRETCH_MAX);
    if fit < STRETCH_MIN { 0 } else { fit }
}

/// A half more than expected, at least the shortest stretch: to come back for a few is dearer than to look at a few too many.
const fn with_reserve(enough: u64) -> u64 {
    let reserved = enough.saturating_add(enough / 2);
    if reserved < STRETCH_MIN { STRETCH_MIN } else { reserved }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_as_long_as_the_time_that_is_left() {
        let ms = Duration::from_millis;
        for (length, walked, took, left, next) in [
            (250, 250, ms(1), ms(249), 2_000),
            (8_000, 8_000, ms(16), ms(232), 50_000),
            (1_000, 1_000, ms(100), ms(150), 1_125),
            (1_000, 1_000, ms(200), ms(50), 0),
            (1_000, 1_000, ms(2), ms(0), 0),
            (50_000, 50_000, ms(40), ms(40), 37_500),
        ] {
            assert_eq!(next_length(length, walked, took, left), next, "{length} {walked} {took:?} {left:?}");
        }
    }
}
