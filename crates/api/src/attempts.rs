//! `GET /timers/{id}/attempts`: what is remembered of the deliveries of one timer.

use domain::{Attempt, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::Permitted,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    id::PathId,
};

const MICROS_PER_MILLI: i64 = 1_000;

/// What is remembered of the deliveries of a timer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Attempts {
    /// The last 20 at most, the oldest first.
    #[schema(max_items = 20)]
    attempts: Vec<AttemptView>,
}

/// One delivery.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Attempt)]
pub(crate) struct AttemptView {
    /// 1 for the first of its due time.
    #[schema(minimum = 1, example = 1)]
    number: u32,
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T12:00:00.004Z")]
    started_at: Timestamp,
    /// How long it took, in milliseconds.
    #[schema(minimum = 0, example = 37)]
    took_ms: i64,
    /// A short name of how it ended: `delivered`, `timeout`, `status_5xx` and the like.
    #[schema(example = "status_5xx")]
    outcome: String,
    /// The HTTP status that the receiver answered with, if it did.
    #[schema(required = true, example = 503)]
    status: Option<u16>,
    /// The first 256 characters of the answer, or of the reason why there was none.
    #[schema(required = true, example = "out of stock")]
    detail: Option<String>,
}

impl From<Attempt> for AttemptView {
    fn from(attempt: Attempt) -> Self {
        let Attempt { number, started_at, took, outcome, status, detail } = attempt;
        Self { number, started_at, took_ms: took.as_micros() / MICROS_PER_MILLI, outcome, status, detail }
    }
}

/// List the attempts of a timer
///
/// What is remembered of its deliveries. Which are, is a matter of how the service is configured: those that failed, unless it says
/// otherwise.
#[utoipa::path(
    get, path = "/timers/{id}/attempts", tag = "timers", operation_id = "listAttempts", security(("ApiKey" = [])),
    params(("id" = String, Path, format = "uuid", description = "The id that creating the timer answered with.")),
    responses(
        (status = 200, description = "What is remembered, perhaps nothing: `success`.", body = Envelope<Attempts>),
        (status = 400, description = "The id is no UUID.", body = ErrorEnvelope),
        (status = 404, description = "`timer not found`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn attempts(Permitted(commands): Permitted, PathId(id): PathId) -> Result<Answer<Attempts>, ApiError> {
    let attempts = commands.attempts(id).await?;
    Ok(Answer::ok("success", Attempts { attempts: attempts.into_iter().map(AttemptView::from).collect() }))
}

#[cfg(test)]
mod tests;
