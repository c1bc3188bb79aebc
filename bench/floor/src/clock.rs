//! The clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, in microseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the only look at the clock")]
pub fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
