//! How long to wait before a request is repeated.

use std::time::Duration;

use crate::Instant;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);

/// The pause after the try with this number (0 for the first), with full jitter: `chance` is from 0 to below 1. What the service
/// says counts, if it says how long.
pub(crate) fn pause(tried: u32, said: Option<Duration>, chance: f64) -> Duration {
    let longest = FIRST.saturating_mul(2_u32.saturating_pow(tried.min(16))).min(LONGEST);
    said.unwrap_or_default().max(longest.mul_f64(chance))
}

/// How long a `Retry-After` that arrives at `now` asks to wait, in seconds or as a date; `None` if it cannot be understood.
pub fn retry_after(value: &str, now: Instant) -> Option<Duration> {
    let value = value.trim();
    if (1..=9).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return value.parse().ok().map(Duration::from_secs);
    }
    let at = chrono::DateTime::parse_from_rfc2822(value).ok()?;
    Some((at.to_utc() - now).to_std().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_limit_and_the_service_may_ask_for_longer() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        for (tried, said, chance, expected) in [
            (0, None, 0.5, 50),
            (1, None, 0.5, 100),
            (3, None, 0.0, 0),
            (3, None, 1.0, 800),
            (40, None, 1.0, 2_000),
            (0, seconds(2), 0.9, 2_000),
            (9, seconds(1), 1.0, 2_000),
        ] {
            assert_eq!(pause(tried, said, chance), Duration::from_millis(expected), "{tried} {said:?}");
        }
    }
}
