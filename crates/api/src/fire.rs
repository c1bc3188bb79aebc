//! `POST /timers/{id}/fire`: makes a pending timer due now.

use crate::{
    auth::Permitted,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    id::PathId,
    revision::{self, IfMatch},
    schema,
    view::TimerView,
};

/// Fire a timer now
///
/// Makes a pending timer due at this moment, whenever it would have been. The call is made as soon as this is on disk: read the timer
/// to learn what became of it. It is a new due time, so attempts start over and the receiver sees a new `webhook-id`, also where
/// the timer was waiting for a retry.
#[utoipa::path(
    post, path = "/timers/{id}/fire", tag = "timers", operation_id = "fireTimer", security(("ApiKey" = [])),
    params(
        ("id" = String, Path, format = "uuid", description = "The id that creating the timer answered with."),
        ("If-Match" = Option<schema::IfMatch>, Header, description = schema::IF_MATCH),
    ),
    responses(
        (status = 200, description = "It is due: `timer fires now`.", body = Envelope<TimerView>),
        (status = 400, description = "The id is no UUID, or the timer is not pending: `cannot fire timer with status 'completed'`.", body = ErrorEnvelope),
        (status = 404, description = "`timer not found`.", body = ErrorEnvelope),
        (status = 409, description = "The timer's own expiry has come: `cannot fire timer: it expired at …`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn fire(
    Permitted(commands): Permitted,
    PathId(id): PathId,
    IfMatch(expected): IfMatch,
) -> Result<Answer<TimerView>, ApiError> {
    let timer = commands.fire(id, expected).await?;
    Ok(revision::changed("timer fires now", timer, commands.clock.now()))
}

#[cfg(test)]
mod tests;
