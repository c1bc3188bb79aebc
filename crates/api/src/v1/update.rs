//! `PUT /api/v1/timers/{groupId}/{timerId}` and `POST /api/v1/timers/update`: changes a pending timer.

use axum::response::Response;
use commands::{Commands, EarliestAllowed, Patch};
use domain::{Invalid, RequestedTime, TimerId};

use super::{
    error::ErrorView,
    in_v1_words, schema,
    selection::{self, PathTimer},
    view::TimerView,
    wanted::{self, Wanted},
};
use crate::{auth::Writing, body::JsonBody, error::ApiError, object::Object};

/// What the path says already, and what makes a timer the one it is.
const FIXED: [&str; 4] = ["id", "timerId", "namespace", "groupId"];

pub(super) fn selected_fields() -> Vec<&'static str> {
    [selection::FIELDS.as_slice(), &wanted::FIELDS].concat()
}

/// Change a timer by its group and id
///
/// Changes a pending timer; once this has answered 200, the old version never fires. A field that is absent stays as it is; `null`
/// clears `payload` or `retryPolicy`; a `retryPolicy` is always whole. An empty object changes nothing.
#[utoipa::path(
    put, path = "/api/v1/timers/{groupId}/{timerId}", tag = "v1", operation_id = "v1UpdateTimer", security(("ApiKey" = [])),
    params(
        ("groupId" = String, Path, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", description = "The group, or namespace, of the timer; percent-encoded."),
        ("timerId" = String, Path, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", description = "The `id` of the timer; percent-encoded."),
    ),
    request_body(content = schema::UpdateTimer, description = "What is to change."),
    responses(
        (status = 200, description = "The changed timer.", body = TimerView),
        (status = 400, description = "`VALIDATION_ERROR`: a field breaks a rule, and `details.field` names it; or `MALFORMED_REQUEST`.", body = ErrorView),
        (status = 404, description = "`TIMER_NOT_FOUND`.", body = ErrorView),
        (status = 408, description = "`REQUEST_TIMEOUT`: the body did not arrive in time.", body = ErrorView),
        (status = 409, description = "`TIMER_NOT_PENDING`: it is being delivered, has ended or was deleted; `details.status` says which.", body = ErrorView),
        (status = 413, description = "`PAYLOAD_TOO_LARGE`: the body is larger than 1 MiB.", body = ErrorView),
        (status = 415, description = "`UNSUPPORTED_MEDIA_TYPE`: the body is not `application/json`.", body = ErrorView),
    )
)]
pub(crate) async fn update(Writing(commands): Writing, PathTimer(id): PathTimer, body: JsonBody) -> Result<Response, ApiError> {
    let object = Object::parse(&body.text, &[wanted::FIELDS.as_slice(), &FIXED].concat())?;
    if let Some(fixed) = object.first_of(&FIXED) {
        return Err(Invalid::new(fixed, "must not be given: the path names the timer").into());
    }
    change(&commands, id, &object).await
}

/// Change a timer
///
/// Like `PUT /api/v1/timers/{groupId}/{timerId}`, with the timer named in the body.
#[utoipa::path(
    post, path = "/api/v1/timers/update", tag = "v1", operation_id = "v1UpdateSelectedTimer", security(("ApiKey" = [])),
    request_body(content = schema::UpdateSelectedTimer, description = "The timer that is meant, and what is to change."),
    responses(
        (status = 200, description = "The changed timer.", body = TimerView),
        (status = 400, description = "`VALIDATION_ERROR`: a field breaks a rule, and `details.field` names it; or `MALFORMED_REQUEST`.", body = ErrorView),
        (status = 404, description = "`TIMER_NOT_FOUND`.", body = ErrorView),
        (status = 408, description = "`REQUEST_TIMEOUT`: the body did not arrive in time.", body = ErrorView),
        (status = 409, description = "`TIMER_NOT_PENDING`: it is being delivered, has ended or was deleted; `details.status` says which.", body = ErrorView),
        (status = 413, description = "`PAYLOAD_TOO_LARGE`: the body is larger than 1 MiB.", body = ErrorView),
        (status = 415, description = "`UNSUPPORTED_MEDIA_TYPE`: the body is not `application/json`.", body = ErrorView),
    )
)]
pub(crate) async fn update_selected(Writing(commands): Writing, body: JsonBody) -> Result<Response, ApiError> {
    let object = Object::parse(&body.text, &selected_fields())?;
    change(&commands, selection::timer(&object)?, &object).await
}

async fn change(commands: &Commands, id: TimerId, object: &Object<'_>) -> Result<Response, ApiError> {
    let Wanted { execute_at, http, retry_policy } = Wanted::read(object)?;
    let patch = Patch {
        asked: execute_at.map(RequestedTime::At),
        earliest_allowed: EarliestAllowed::Now,
        http,
        retry_policy,
        ..Patch::default()
    };
    let timer = commands.update(id, &patch).await.map_err(in_v1_words)?;
    Ok(TimerView::answer(timer))
}

#[cfg(test)]
mod tests;
