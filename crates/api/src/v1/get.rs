//! `GET /api/v1/timers/{groupId}/{timerId}` and `POST /api/v1/timers/get`: one timer as it stands.

use axum::response::Response;
use commands::Commands;
use domain::TimerId;

use super::{
    error::ErrorView,
    selection::{self, PathTimer, TimerSelection},
    view::TimerView,
};
use crate::{auth::Permitted, body::JsonBody, error::ApiError};

/// Read a timer by its group and id
///
/// The timer as it stands, with its payload exactly as it was given. A deleted timer is shown too, as `canceled`, for as long as its
/// record is kept.
///
/// A timer that came through another dialect under the same namespace and key is shown as far as this dialect has words for it; `protocol` says
/// what it is.
#[utoipa::path(
    get, path = "/api/v1/timers/{groupId}/{timerId}", tag = "v1", operation_id = "v1GetTimer", security(("ApiKey" = [])),
    params(
        ("groupId" = String, Path, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", description = "The group, or namespace, of the timer; percent-encoded."),
        ("timerId" = String, Path, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", description = "The `id` of the timer; percent-encoded."),
    ),
    responses(
        (status = 200, description = "The timer.", body = TimerView),
        (status = 400, description = "`VALIDATION_ERROR`: the group or the id breaks a rule.", body = ErrorView),
        (status = 404, description = "`TIMER_NOT_FOUND`.", body = ErrorView),
    )
)]
pub(crate) async fn get(Permitted(commands): Permitted, PathTimer(id): PathTimer) -> Result<Response, ApiError> {
    show(&commands, id).await
}

/// Read a timer
///
/// Like `GET /api/v1/timers/{groupId}/{timerId}`, with the timer named in the body.
#[utoipa::path(
    post, path = "/api/v1/timers/get", tag = "v1", operation_id = "v1GetSelectedTimer", security(("ApiKey" = [])),
    request_body(content = TimerSelection, description = "The timer that is meant."),
    responses(
        (status = 200, description = "The timer.", body = TimerView),
        (status = 400, description = "`VALIDATION_ERROR`: a field breaks a rule, and `details.field` names it; or `MALFORMED_REQUEST`.", body = ErrorView),
        (status = 404, description = "`TIMER_NOT_FOUND`.", body = ErrorView),
        (status = 408, description = "`REQUEST_TIMEOUT`: the body did not arrive in time.", body = ErrorView),
        (status = 413, description = "`PAYLOAD_TOO_LARGE`: the body is larger than 1 MiB.", body = ErrorView),
        (status = 415, description = "`UNSUPPORTED_MEDIA_TYPE`: the body is not `application/json`.", body = ErrorView),
    )
)]
pub(crate) async fn get_selected(Permitted(commands): Permitted, body: JsonBody) -> Result<Response, ApiError> {
    show(&commands, selection::read(&body.text)?).await
}

async fn show(commands: &Commands, id: TimerId) -> Result<Response, ApiError> {
    Ok(TimerView::answer(commands.get(id).await?))
}

#[cfg(test)]
mod tests;
