//! `POST /timers/{id}/ping`: postpones a timer.

use domain::{Given, Span};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    auth::Writing,
    body::OptionalBody,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    id::PathId,
    request,
    revision::{self, IfMatch},
    schema,
    view::TimerView,
};

/// By how much the timer is postponed.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(crate) struct PingTimer<'a> {
    /// How long from now the timer is due. Its own `delay` unless given; needed where it has an `execute_at`.
    #[schema(value_type = String, required = false, pattern = r"^(P.+|([0-9]+(\.[0-9]{1,9})?(us|ms|s|m|min|h|d|w))+)$", example = "15m")]
    #[serde(default)]
    delay: Given<'a, Span>,
}

/// Postpone a timer
///
/// Makes a pending timer due its own `delay` from now, or the one given, but no later than its `postpone_max` allows. A timer that is
/// completed, failed or expired begins anew, also with `If-Match`: an end leaves the revision as it is. A service that pings its timer
/// again and again lets it fire only when it falls silent.
#[utoipa::path(
    post, path = "/timers/{id}/ping", tag = "timers", operation_id = "pingTimer", security(("ApiKey" = [])),
    params(
        ("id" = String, Path, format = "uuid", description = "The id that creating the timer answered with."),
        ("If-Match" = Option<schema::IfMatch>, Header, description = schema::IF_MATCH),
    ),
    request_body(content = Option<PingTimer>, description = "By how much; may be missing."),
    responses(
        (status = 200, description = "It is postponed: `timer postponed successfully`.", body = Envelope<TimerView>),
        (status = 400, description = "The id is no UUID, or a field breaks a rule.", body = ErrorEnvelope),
        (status = 404, description = "`timer not found`.", body = ErrorEnvelope),
        (status = 408, description = "The body did not arrive in time.", body = ErrorEnvelope),
        (status = 409, description = "The timer is being delivered, is paused, or was canceled: `cannot ping timer with status 'canceled'`.", body = ErrorEnvelope),
        (status = 413, description = "The body is larger than 1 MiB.", body = ErrorEnvelope),
        (status = 415, description = "The body is not `application/json`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn ping_timer(
    Writing(commands): Writing,
    PathId(id): PathId,
    IfMatch(expected): IfMatch,
    OptionalBody(body): OptionalBody,
) -> Result<Answer<TimerView>, ApiError> {
    let text = body.as_ref().map(|body| body.text.as_str());
    let request: PingTimer<'_> = text.map(request::read).transpose()?.unwrap_or_default();
    let timer = commands.ping(id, request.delay.read("delay")?, expected).await?;
    Ok(revision::changed("timer postponed successfully", timer, commands.clock.now()))
}

#[cfg(test)]
mod tests;
