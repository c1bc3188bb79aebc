//! How long a command waits for the store, and how an unknown outcome is read back.

use std::{future::Future, time::Duration};

use domain::{Backoff, Cause, Timer, TimerId};
use store::{StoreError, StoreResult};

use crate::Commands;

/// The timeout of a single call of the store.
const CALL_TIME_MAX: Duration = Duration::from_secs(10);
/// How long an unknown outcome is read back before the caller is told that it is unknown.
const READ_BACK_TIME_MAX: Duration = Duration::from_secs(5);
const PAUSES: Backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(500));

/// Limits a read. A read that hangs has changed nothing.
pub(crate) async fn reading<T>(call: impl Future<Output = StoreResult<T>>) -> StoreResult<T> {
    match tokio::time::timeout(CALL_TIME_MAX, call).await {
        Ok(answer) => answer,
        Err(_) => Err(StoreError::Unavailable(format!("no answer within {CALL_TIME_MAX:?}").into())),
    }
}

/// Limits a write. The outcome of a write that hangs is unknown.
pub(crate) async fn writing<T>(call: impl Future<Output = StoreResult<T>>) -> StoreResult<T> {
    match tokio::time::timeout(CALL_TIME_MAX, call).await {
        Ok(answer) => answer,
        Err(_) => Err(StoreError::Unknown(format!("no answer within {CALL_TIME_MAX:?}").into())),
    }
}

/// The time and the pauses for reading back one unknown outcome. Uses the monotonic time of the runtime, because the wall clock
/// may jump.
pub(crate) struct ReadBack {
    until: tokio::time::Instant,
    pauses: Backoff,
    cause: StoreError,
}

impl ReadBack {
    pub(crate) fn of(operation: &'static str, cause: StoreError) -> Self {
        metrics::counter!("timer_read_back_total", "operation" => operation).increment(1);
        Self { until: tokio::time::Instant::now() + READ_BACK_TIME_MAX, pauses: PAUSES, cause }
    }

    /// Reads the timer, with retries until the time is up; then returns the error that made the outcome unknown.
    pub(crate) async fn timer(&mut self, commands: &Commands, id: TimerId) -> StoreResult<Option<Timer>> {
        loop {
            match tokio::time::timeout_at(self.until, commands.stores.timers.get(id)).await {
                Ok(Ok(timer)) => return Ok(timer),
                Ok(Err(error @ StoreError::Corrupt(_))) => return Err(error),
                Ok(Err(error)) => {
                    tracing::warn!(timer.id = %id, %error, "an unknown outcome could not be read back yet");
                    self.pause().await?;
                }
                Err(_) => return Err(self.given_up()),
            }
        }
    }

    /// Waits a little, or gives up.
    pub(crate) async fn pause(&mut self) -> StoreResult<()> {
        let pause = self.pauses.failed();
        if tokio::time::Instant::now() + pause >= self.until {
            return Err(self.given_up());
        }
        tokio::time::sleep(pause).await;
        Ok(())
    }

    /// The error of an outcome that stays unknown.
    pub(crate) fn given_up(&self) -> StoreError {
        StoreError::Unknown(Cause::of(self.cause.clone()))
    }
}
