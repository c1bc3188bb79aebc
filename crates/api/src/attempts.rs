//! `GET /timers/{id}/attempts`: what is remembered of the deliveries of one timer.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use domain::{AnswerBody, Attempt, ReceivedAnswer, Timestamp};
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
    /// The name of the node that made it; `null` for one that an older version recorded.
    #[schema(required = true, example = "host-1:8080")]
    node: Option<String>,
    /// What the receiver answered, where the service is set to keep it (`ATTEMPTS_BODY`).
    #[schema(required = true)]
    answer: Option<AnswerView>,
}

/// How the answer of a receiver began.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReceivedAnswer)]
struct AnswerView {
    /// Those of `content-type`, `location`, `retry-after`, `server` and `x-request-id` that it had.
    #[schema(example = json!({"content-type": "text/plain"}))]
    headers: BTreeMap<String, String>,
    /// The beginning of its body; `null` if that is not UTF-8.
    #[schema(required = true, example = "out of stock")]
    body: Option<String>,
    /// The same as base64, if it is not UTF-8.
    #[schema(required = true, content_encoding = "base64")]
    body_base64: Option<String>,
}

impl From<ReceivedAnswer> for AnswerView {
    fn from(ReceivedAnswer { headers, body }: ReceivedAnswer) -> Self {
        let (body, body_base64) = match body {
            AnswerBody::Text(text) => (Some(text), None),
            AnswerBody::Bytes(bytes) => (None, Some(STANDARD.encode(bytes))),
        };
        Self { headers: headers.into_iter().collect(), body, body_base64 }
    }
}

impl From<Attempt> for AttemptView {
    fn from(attempt: Attempt) -> Self {
        let Attempt { number, started_at, took, outcome, status, detail, node, answer } = attempt;
        let (took_ms, answer) = (took.as_micros() / MICROS_PER_MILLI, answer.map(AnswerView::from));
        Self { number, started_at, took_ms, outcome, status, detail, node, answer }
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
