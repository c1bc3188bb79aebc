//! `PUT /timers/{id}`: changes a pending timer.

use commands::{EarliestAllowed, HttpPatch, Patch};
use domain::{AnyJson, Callback, CorrelationId, Delivery, Given, Group, Json, RetryPolicy, Span, Timestamp, limits};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    auth::Writing,
    body::JsonBody,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    id::PathId,
    request::{self, clearable},
    revision::{self, IfMatch},
    schema, timing,
    view::TimerView,
};

/// What makes a timer the one it is cannot change.
const FIXED: [&str; 4] = ["id", "namespace", "key", "on_conflict"];

/// What is to change about a timer; everything is optional.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(crate) struct UpdateTimer<'a> {
    /// The new instant; not together with `delay`.
    #[schema(value_type = String, required = false, format = DateTime, example = "2030-01-31T12:00:00Z")]
    #[serde(default)]
    execute_at: Given<'a, Timestamp>,
    /// The new time, from now; not together with `execute_at`.
    #[schema(value_type = String, required = false, pattern = r"^(P.+|([0-9]+(\.[0-9]{1,9})?(us|ms|s|m|min|h|d|w))+)$", example = "1h30m")]
    #[serde(default)]
    delay: Given<'a, Span>,
    /// The new callback, whole.
    #[schema(value_type = Callback, required = false)]
    #[serde(default)]
    callback: Given<'a, Callback>,
    /// `null` clears it.
    #[schema(value_type = AnyJson, required = false)]
    #[serde(default)]
    metadata: Given<'a, Json<{ limits::METADATA_BYTES_MAX }>>,
    /// `null` clears it.
    #[schema(value_type = Option<RetryPolicy>, required = false)]
    #[serde(default)]
    retry_policy: Given<'a, RetryPolicy>,
    #[schema(value_type = Delivery, required = false)]
    #[serde(default)]
    delivery: Given<'a, Delivery>,
    /// `null` clears it.
    #[schema(value_type = Option<String>, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    #[serde(default)]
    correlation_id: Given<'a, CorrelationId>,
    /// `null` clears it.
    #[schema(value_type = Option<String>, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "campaign-7")]
    #[serde(default)]
    group: Given<'a, Group>,
    /// `null` clears the expiry.
    #[schema(value_type = Option<String>, required = false, format = DateTime, example = "2030-01-31T12:30:00Z")]
    #[serde(default)]
    expires_at: Given<'a, Timestamp>,
    /// `null` clears the expiry.
    #[schema(value_type = Option<String>, required = false, pattern = r"^(P.+|([0-9]+(\.[0-9]{1,9})?(us|ms|s|m|min|h|d|w))+)$", example = "30m")]
    #[serde(default)]
    expires_after: Given<'a, Span>,
    /// `null` clears it.
    #[schema(value_type = Option<String>, required = false, pattern = r"^(P.+|([0-9]+(\.[0-9]{1,9})?(us|ms|s|m|min|h|d|w))+)$", example = "1h")]
    #[serde(default)]
    postpone_max: Given<'a, Span>,
    /// The new callback, whole; `null` clears it.
    #[schema(value_type = Option<Callback>, required = false)]
    #[serde(default)]
    on_success: Given<'a, Callback>,
    /// The new callback, whole; `null` clears it.
    #[schema(value_type = Option<Callback>, required = false)]
    #[serde(default)]
    on_failure: Given<'a, Callback>,
}

/// Change a timer
///
/// Changes a pending timer; once this has answered 200, the old version never fires. A field that is absent stays as
/// it is; `null` clears `metadata`, `correlation_id`, `retry_policy`, `group`, `postpone_max`, `on_success`,
/// `on_failure` or the expiry; a `callback` is always whole. An empty object
/// changes nothing.
#[utoipa::path(
    put, path = "/timers/{id}", tag = "timers", operation_id = "updateTimer", security(("ApiKey" = [])),
    params(
        ("id" = String, Path, format = "uuid", description = "The id that creating the timer answered with."),
        ("If-Match" = Option<schema::IfMatch>, Header, description = schema::IF_MATCH),
    ),
    request_body(content = UpdateTimer, description = "What is to change."),
    responses(
        (status = 200, description = "It is changed: `timer updated successfully`.", body = Envelope<TimerView>),
        (status = 400, description = "A field breaks a rule, or the timer is not pending: `cannot update timer with status 'completed'`.", body = ErrorEnvelope),
        (status = 404, description = "`timer not found`.", body = ErrorEnvelope),
        (status = 408, description = "The body did not arrive in time.", body = ErrorEnvelope),
        (status = 413, description = "The body is larger than 1 MiB.", body = ErrorEnvelope),
        (status = 415, description = "The body is not `application/json`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn update(
    Writing(commands): Writing,
    PathId(id): PathId,
    IfMatch(expected): IfMatch,
    body: JsonBody,
) -> Result<Answer<TimerView>, ApiError> {
    let patch = parse(&body.text)?;
    let timer = commands.update(id, &patch, expected).await?;
    Ok(revision::changed("timer updated successfully", timer, commands.clock.now()))
}

pub(crate) fn parse(text: &str) -> Result<Patch, ApiError> {
    let request: UpdateTimer<'_> = request::read_refusing(text, &FIXED, "cannot be changed")?;
    Ok(Patch {
        asked: timing::requested(&request.execute_at, &request.delay)?,
        earliest_allowed: EarliestAllowed::MinDelay,
        callback: request.callback.read("callback")?,
        http: HttpPatch::default(),
        metadata: clearable(&request.metadata, "metadata")?,
        correlation_id: clearable(&request.correlation_id, "correlation_id")?,
        retry_policy: clearable(&request.retry_policy, "retry_policy")?,
        delivery: request.delivery.read("delivery")?,
        group: clearable(&request.group, "group")?,
        expiry: timing::expiry(&request.expires_at, &request.expires_after)?,
        postpone_max: clearable(&request.postpone_max, "postpone_max")?,
        on_success: clearable(&request.on_success, "on_success")?,
        on_failure: clearable(&request.on_failure, "on_failure")?,
    })
}

#[cfg(test)]
mod tests;
