//! `POST /timers/{id}/retry`: tries a failed or expired timer again.

use crate::{
    auth::Permitted,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    id::PathId,
    view::TimerView,
};

/// Try a failed timer again
///
/// Puts a failed or expired timer back to `pending` and tries it at this moment, with all the retries of its policy before it. Its `execute_at`
/// stays, and so does the `webhook-id` by which the receiver can tell that it is the same call.
#[utoipa::path(
    post, path = "/timers/{id}/retry", tag = "timers", operation_id = "retryTimer", security(("ApiKey" = [])),
    params(("id" = String, Path, format = "uuid", description = "The id that creating the timer answered with.")),
    responses(
        (status = 200, description = "It is pending again: `timer is tried again`.", body = Envelope<TimerView>),
        (status = 400, description = "The id is no UUID, or the timer has not failed: `cannot retry timer with status 'completed'`.", body = ErrorEnvelope),
        (status = 404, description = "`timer not found`.", body = ErrorEnvelope),
        (status = 409, description = "The timer's own expiry has come: `cannot retry timer: it expired at …`. Register it again with `on_conflict: replace` instead.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn retry(Permitted(commands): Permitted, PathId(id): PathId) -> Result<Answer<TimerView>, ApiError> {
    let timer = commands.retry(id).await?;
    Ok(Answer::ok("timer is tried again", TimerView::of(timer, commands.clock.now())))
}

#[cfg(test)]
mod tests;
