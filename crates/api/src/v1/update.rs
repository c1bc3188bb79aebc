//! `PUT /api/v1/timers/{groupId}/{timerId}` and `POST /api/v1/timers/update`: changes a pending timer.

use std::borrow::Cow;

use axum::response::Response;
use commands::{Commands, EarliestAllowed, Patch};
use domain::{AnyJson, CallbackUrl, Given, Invalid, Key, Namespace, RequestedTime, Span, TimerId, Timestamp};
use serde::Deserialize;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

use super::{
    error::ErrorView,
    in_v1_words,
    policy::{Policy, PolicyRequest},
    selection::{self, PathTimer},
    view::TimerView,
    wanted::{Payload, Seconds, Wanted},
};
use crate::{auth::Writing, body::JsonBody, error::ApiError, request};

/// The timer that is meant, and what is to change about it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
#[schema(as = V1UpdateSelectedTimer)]
pub(crate) struct UpdateSelectedTimer<'a> {
    /// `default` unless given.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "notifications")]
    #[serde(default)]
    namespace: Given<'a, Namespace>,
    /// The older name of `namespace`; not together with it.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    #[serde(default)]
    group_id: Given<'a, Namespace>,
    /// The `id` that the timer was created with.
    #[schema(value_type = String, required = true, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "user-reminder-123")]
    #[serde(default)]
    timer_id: Given<'a, Key>,
    /// The new instant; it must not be past, but up to a minute ago counts as now.
    #[schema(value_type = String, required = false, format = DateTime, example = "2030-01-31T12:00:00Z")]
    #[serde(default)]
    execute_at: Given<'a, Timestamp>,
    #[schema(value_type = String, required = false, format = "uri", max_length = 2048, pattern = "^[hH][tT][tT][pP][sS]?://[^/@]", example = "https://app.example.com/webhooks/timer")]
    #[serde(default)]
    callback_url: Given<'a, CallbackUrl>,
    /// `null` clears it.
    #[schema(value_type = AnyJson, required = false)]
    #[serde(default)]
    payload: Given<'a, Payload>,
    /// The new policy, whole; `null` clears it.
    #[schema(value_type = Option<PolicyRequest>, required = false)]
    #[serde(default)]
    retry_policy: Given<'a, Policy>,
    #[schema(value_type = String, required = false, pattern = r"^(P.+|([0-9]+(\.[0-9]{1,9})?(us|ms|s|m|min|h|d|w))+)$", example = "30s")]
    #[serde(default)]
    callback_timeout: Given<'a, Span>,
    /// Not together with `callbackTimeout`.
    #[schema(value_type = u32, required = false, minimum = 1, maximum = 300)]
    #[serde(default)]
    callback_timeout_seconds: Given<'a, Seconds>,
}

/// The same without the names of the timer, where the path names it.
pub(crate) enum UpdateTimer {}

/// What the path says already, as far as [`UpdateSelectedTimer`] has it.
const IN_PATH: [&str; 3] = ["timerId", "namespace", "groupId"];

impl PartialSchema for UpdateTimer {
    fn schema() -> RefOr<Schema> {
        let mut schema = UpdateSelectedTimer::schema();
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            object.description = Some("What is to change about a timer; everything is optional.".to_owned());
            object.required.clear();
            for name in IN_PATH {
                object.properties.shift_remove(name);
            }
        }
        schema
    }
}

impl ToSchema for UpdateTimer {
    fn name() -> Cow<'static, str> {
        "V1UpdateTimer".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        UpdateSelectedTimer::schemas(schemas);
    }
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
    request_body(content = UpdateTimer, description = "What is to change."),
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
    let rule = "must not be given: the path names the timer";
    let change: UpdateSelectedTimer<'_> = request::read_refusing(&body.text, &["id"], rule)?;
    let given = [change.timer_id.is_given(), change.namespace.is_given(), change.group_id.is_given()];
    if let Some((name, _)) = IN_PATH.into_iter().zip(given).find(|(_, is_given)| *is_given) {
        return Err(Invalid::new(name, rule).into());
    }
    apply(&commands, id, &change).await
}

/// Change a timer
///
/// Like `PUT /api/v1/timers/{groupId}/{timerId}`, with the timer named in the body.
#[utoipa::path(
    post, path = "/api/v1/timers/update", tag = "v1", operation_id = "v1UpdateSelectedTimer", security(("ApiKey" = [])),
    request_body(content = UpdateSelectedTimer, description = "The timer that is meant, and what is to change."),
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
    let change: UpdateSelectedTimer<'_> = request::read(&body.text)?;
    let id = selection::timer(&change.namespace, &change.group_id, &change.timer_id)?;
    apply(&commands, id, &change).await
}

async fn apply(commands: &Commands, id: TimerId, change: &UpdateSelectedTimer<'_>) -> Result<Response, ApiError> {
    let timeout = (&change.callback_timeout, &change.callback_timeout_seconds);
    let Wanted { execute_at, http, retry_policy } =
        Wanted::read(&change.execute_at, &change.callback_url, &change.payload, &change.retry_policy, timeout)?;
    let patch = Patch {
        asked: execute_at.map(RequestedTime::At),
        earliest_allowed: EarliestAllowed::Now,
        http,
        retry_policy,
        ..Patch::default()
    };
    let timer = commands.update(id, &patch, None).await.map_err(in_v1_words)?;
    Ok(TimerView::answer(timer))
}

#[cfg(test)]
mod tests;
