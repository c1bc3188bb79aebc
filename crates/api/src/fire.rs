//! `POST /timers/{id}/fire`: makes a pending timer due now.

use crate::{
    auth::Permitted,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    id::PathId,
    view::TimerView,
};

/// Fire a timer now
///
/// Makes a pending timer due at this moment, whenever it would have been. The call is made as soon as this is on disk: read the timer
/// to learn what became of it. It is a new due time, so attempts start over and the receiver sees a new `webhook-id`, also where
/// the timer was waiting for a retry.
#[utoipa::path(
    post, path = "/timers/{id}/fire", tag = "timers", operation_id = "fireTimer", security(("ApiKey" = [])),
    params(("id" = String, Path, format = "uuid", description = "The id that creating the timer answered with.")),
    responses(
        (status = 200, description = "It is due: `timer fires now`.", body = Envelope<TimerView>),
        (status = 400, description = "The id is no UUID, or the timer is not pending: `cannot fire timer with status 'completed'`.", body = ErrorEnvelope),
        (status = 404, description = "`timer not found`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn fire(Permitted(commands): Permitted, PathId(id): PathId) -> Result<Answer<TimerView>, ApiError> {
    let timer = commands.fire(id).await?;
    Ok(Answer::ok("timer fires now", TimerView::of(timer, commands.clock.now())))
}

#[cfg(test)]
mod tests;
