use std::time::Duration;

use async_trait::async_trait;
use domain::{Cause, Span, Timestamp};
use serde::Serialize;

/// How far the clock is to be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advance {
    By(Span),
    To(Timestamp),
    /// To when the next attempt is due, if there is one.
    UntilNext,
    /// From one due time to the next, until nothing is pending.
    UntilIdle,
}

/// What happened while the clock was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Advanced {
    /// What the clock says now.
    pub now: Timestamp,
    /// How many calls were made.
    pub fired: u64,
    /// How many timers have completed, failed and expired.
    pub completed: u64,
    pub failed: u64,
    pub expired: u64,
    /// How many timers are pending now.
    pub pending: u64,
    /// When the next attempt of one of them is due.
    pub next: Option<Timestamp>,
    /// Whether the clock came as far as it should, and everything that was due has settled: false if time ran out.
    pub complete: bool,
}

/// Why the clock was not moved.
#[derive(Debug)]
pub enum AdvanceError {
    /// The database has a clock of its own, which cannot be moved.
    NotMovable,
    /// The time that was asked for is past.
    Past,
    Store(Cause),
}

/// Moves the clock of the service.
#[async_trait]
pub trait AdvanceClock: Send + Sync {
    /// Moves the clock from due time to due time, so that everything fires in order, and waits at each of them until all calls are
    /// settled. Ends after `timeout` of real time wherever it is: what was not settled by then goes on by itself. One at a time; a
    /// second call waits for the first.
    async fn advance(&self, by: Advance, timeout: Duration) -> Result<Advanced, AdvanceError>;
}
