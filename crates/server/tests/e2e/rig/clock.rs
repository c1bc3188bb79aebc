use std::time::Duration;

use domain::{Clock, SystemClock, Timestamp};

/// The wall clock of this machine, which receivers and services share, in microseconds since 1970.
pub fn now() -> i64 {
    SystemClock::default().now().as_micros()
}

/// Microseconds as RFC 3339.
pub fn instant(micros: i64) -> String {
    Timestamp::from_micros(micros).to_string()
}

/// RFC 3339 as microseconds.
pub fn micros(text: &str) -> i64 {
    Timestamp::parse("time", text).expect("a time in RFC 3339").as_micros()
}

/// Returns when the wall clock shows `at`.
pub async fn wait_for_wall(at: i64) {
    while let Ok(left @ 1..) = u64::try_from(at - now()) {
        tokio::time::sleep(Duration::from_micros(left)).await;
    }
}
