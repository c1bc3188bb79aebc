//! `DELETE /api/v1/timers/{groupId}/{timerId}` and `POST /api/v1/timers/delete`: cancels a pending timer.

use commands::Commands;
use domain::TimerId;
use http::StatusCode;

use super::{
    error::ErrorView,
    selection::{self, PathTimer, TimerSelection},
};
use crate::{
    auth::{Permitted, Writing},
    body::JsonBody,
    error::ApiError,
};

/// Delete a timer by its group and id
///
/// Once this has answered 204, the timer never fires. Its record is kept, as `canceled`; deleting it again is 204 too.
#[utoipa::path(
    delete, path = "/api/v1/timers/{groupId}/{timerId}", tag = "v1", operation_id = "v1DeleteTimer", security(("ApiKey" = [])),
    params(
        ("groupId" = String, Path, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", description = "The group, or namespace, of the timer; percent-encoded."),
        ("timerId" = String, Path, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", description = "The `id` of the timer; percent-encoded."),
    ),
    responses(
        (status = 204, description = "It is deleted, and never fires."),
        (status = 400, description = "`VALIDATION_ERROR`: the group or the id breaks a rule.", body = ErrorView),
        (status = 404, description = "`TIMER_NOT_FOUND`.", body = ErrorView),
        (status = 409, description = "`TIMER_NOT_PENDING`: it is being delivered or has ended; `details.status` says which.", body = ErrorView),
    )
)]
pub(crate) async fn delete(Permitted(commands): Permitted, PathTimer(id): PathTimer) -> Result<StatusCode, ApiError> {
    cancel(&commands, id).await
}

/// Delete a timer
///
/// Like `DELETE /api/v1/timers/{groupId}/{timerId}`, with the timer named in the body.
#[utoipa::path(
    post, path = "/api/v1/timers/delete", tag = "v1", operation_id = "v1DeleteSelectedTimer", security(("ApiKey" = [])),
    request_body(content = TimerSelection, description = "The timer that is meant."),
    responses(
        (status = 204, description = "It is deleted, and never fires."),
        (status = 400, description = "`VALIDATION_ERROR`: a field breaks a rule, and `details.field` names it; or `MALFORMED_REQUEST`.", body = ErrorView),
        (status = 404, description = "`TIMER_NOT_FOUND`.", body = ErrorView),
        (status = 408, description = "`REQUEST_TIMEOUT`: the body did not arrive in time.", body = ErrorView),
        (status = 409, description = "`TIMER_NOT_PENDING`: it is being delivered or has ended; `details.status` says which.", body = ErrorView),
        (status = 413, description = "`PAYLOAD_TOO_LARGE`: the body is larger than 1 MiB.", body = ErrorView),
        (status = 415, description = "`UNSUPPORTED_MEDIA_TYPE`: the body is not `application/json`.", body = ErrorView),
    )
)]
pub(crate) async fn delete_selected(Writing(commands): Writing, body: JsonBody) -> Result<StatusCode, ApiError> {
    cancel(&commands, selection::read(&body.text)?).await
}

async fn cancel(commands: &Commands, id: TimerId) -> Result<StatusCode, ApiError> {
    commands.cancel(id, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests;
