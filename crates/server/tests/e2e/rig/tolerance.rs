//! How long things may take.
//!
//! A build compiles beside its tests, runs a service that is not optimised, and shares its machine. There a limit of time tells that
//! nothing waited for a timeout, a lease or a redelivery that it must not wait for. `make soak` sets `SOAK=1` on an idle machine,
//! runs an optimised service, and holds it to the limits as they are written down.

use std::{sync::LazyLock, time::Duration};

const BUILD_FACTOR: u32 = 5;

/// Whether limits are to be held as they are written down.
fn is_soak() -> bool {
    static IS_SOAK: LazyLock<bool> = LazyLock::new(|| std::env::var("SOAK").is_ok_and(|value| value == "1"));
    *IS_SOAK
}

/// What is meant for `make soak`, or what is meant for a build.
pub fn by_tier<T>(soak: T, build: T) -> T {
    if is_soak() { soak } else { build }
}

/// A limit of time: itself in `make soak`, several times as long in a build.
pub fn tolerated<T: Limit + Copy>(limit: T) -> T {
    by_tier(limit, limit.times(BUILD_FACTOR))
}

pub trait Limit {
    fn times(self, factor: u32) -> Self;
}

impl Limit for Duration {
    fn times(self, factor: u32) -> Self {
        self * factor
    }
}

/// Seconds or milliseconds.
impl Limit for f64 {
    fn times(self, factor: u32) -> Self {
        self * Self::from(factor)
    }
}

/// Microseconds.
impl Limit for i64 {
    fn times(self, factor: u32) -> Self {
        self * Self::from(factor)
    }
}
