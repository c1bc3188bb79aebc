//! `DELETE /timers/{id}`: cancels a pending timer.

use crate::{
    auth::Permitted,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    id::PathId,
    revision::{self, IfMatch},
    schema,
    view::TimerView,
};

/// Cancel a timer
///
/// Once this has answered 200, the timer never fires. Canceling a canceled timer again is 200 too.
#[utoipa::path(
    delete, path = "/timers/{id}", tag = "timers", operation_id = "cancelTimer", security(("ApiKey" = [])),
    params(
        ("id" = String, Path, format = "uuid", description = "The id that creating the timer answered with."),
        ("If-Match" = Option<schema::IfMatch>, Header, description = schema::IF_MATCH),
    ),
    responses(
        (status = 200, description = "It is canceled: `timer canceled successfully`.", body = Envelope<TimerView>),
        (status = 400, description = "The id is no UUID, or the timer is not pending: `cannot cancel timer with status 'completed'`.", body = ErrorEnvelope),
        (status = 404, description = "`timer not found`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn cancel(
    Permitted(commands): Permitted,
    PathId(id): PathId,
    IfMatch(expected): IfMatch,
) -> Result<Answer<TimerView>, ApiError> {
    let timer = commands.cancel(id, expected).await?;
    Ok(revision::changed("timer canceled successfully", timer, commands.clock.now()))
}

#[cfg(test)]
mod tests;
