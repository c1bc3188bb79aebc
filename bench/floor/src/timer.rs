//! A timer, and what is known of it at each time of its life.

const MICROS_PER_MINUTE: i64 = 60_000_000;

/// What stays in memory of a pending timer. In order of the due time, of which the id decides between equal ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    /// In microseconds since 1970.
    pub at: i64,
    pub id: i64,
}

impl Due {
    pub const fn minute(self) -> i64 {
        self.at.div_euclid(MICROS_PER_MINUTE)
    }
}

/// A timer with what is sent when it is due.
#[derive(Debug)]
pub struct Timer {
    pub due: Due,
    pub url: String,
    /// The JSON of the payload, as the client wrote it.
    pub body: Vec<u8>,
}
