//! `POST /api/v1/timers` and `POST /api/v1/timers/create`: registers a timer.

use axum::response::Response;
use commands::{Commands, EarliestAllowed, Field, HttpPatch, NewTimerRequest, Outcome, Target};
use domain::{
    AnyJson, Callback, CallbackUrl, Endpoint, Given, HttpEndpoint, Invalid, Key, Namespace, OnConflict, Protocol, RequestedTime,
    Span, Timestamp, limits,
};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    error::ErrorView,
    in_v1_words,
    policy::{Policy, PolicyRequest},
    selection,
    view::TimerView,
    wanted::{Payload, Seconds, Wanted},
};
use crate::{auth::Writing, body::JsonBody, error::ApiError, request, trace::Traced};

/// A timer to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
#[schema(as = V1CreateTimer)]
pub(crate) struct CreateTimer<'a> {
    /// Your own id of the timer, unique in its namespace: makes repeating the request safe.
    #[schema(value_type = String, required = true, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "user-reminder-123")]
    #[serde(default)]
    id: Given<'a, Key>,
    /// The scope in which ids are unique; `default` unless given.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "notifications")]
    #[serde(default)]
    namespace: Given<'a, Namespace>,
    /// The older name of `namespace`; not together with it.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    #[serde(default)]
    group_id: Given<'a, Namespace>,
    /// When to call: RFC 3339 with any offset, kept to the microsecond. It must not be past; up to a minute ago counts as now.
    #[schema(value_type = String, required = true, format = DateTime, example = "2030-01-31T12:00:00Z")]
    #[serde(default)]
    execute_at: Given<'a, Timestamp>,
    /// Whom to call: `http` or `https`, without credentials.
    #[schema(
        value_type = String,
        required = true,
        format = "uri",
        max_length = 2048,
        pattern = "^[hH][tT][tT][pP][sS]?://[^/@]",
        example = "https://app.example.com/webhooks/timer"
    )]
    #[serde(default)]
    callback_url: Given<'a, CallbackUrl>,
    /// Carried to the receiver exactly as given: at most 256 KiB, nested at most 64 deep.
    #[schema(value_type = AnyJson, required = false)]
    #[serde(default)]
    payload: Given<'a, Payload>,
    #[schema(value_type = Option<PolicyRequest>, required = false)]
    #[serde(default)]
    retry_policy: Given<'a, Policy>,
    /// How long the receiver may take: 100ms to 5m, 30s unless given.
    #[schema(value_type = String, required = false, pattern = r"^(P.+|([0-9]+(\.[0-9]{1,9})?(us|ms|s|m|min|h|d|w))+)$", example = "30s")]
    #[serde(default)]
    callback_timeout: Given<'a, Span>,
    /// The same as a number of seconds; not together with `callbackTimeout`.
    #[schema(value_type = u32, required = false, minimum = 1, maximum = 300)]
    #[serde(default)]
    callback_timeout_seconds: Given<'a, Seconds>,
}

/// Create a timer under an id of yours
///
/// Registers one call at one time. The answer comes once the timer is on disk.
///
/// Repeating a create is safe: an id that is taken by a timer with the same content answers 200 with that timer as it stands, even
/// when it has ended or was deleted, and it never fires again because of that. Other content is a 409.
#[utoipa::path(
    post, path = "/api/v1/timers", tag = "v1", operation_id = "v1CreateTimer", security(("ApiKey" = [])),
    request_body(content = CreateTimer, description = "The timer that is wanted."),
    responses(
        (status = 200, description = "The timer, new or as it was there.", body = TimerView, links(
            ("read" = (operation_id = "v1GetTimer", parameters(("groupId" = "$response.body#/groupId"), ("timerId" = "$response.body#/id")))),
            ("change" = (operation_id = "v1UpdateTimer", parameters(("groupId" = "$response.body#/groupId"), ("timerId" = "$response.body#/id")))),
            ("delete" = (operation_id = "v1DeleteTimer", parameters(("groupId" = "$response.body#/groupId"), ("timerId" = "$response.body#/id")))),
        )),
        (status = 400, description = "`VALIDATION_ERROR`: a field breaks a rule, and `details.field` names it; or `MALFORMED_REQUEST`.", body = ErrorView),
        (status = 408, description = "`REQUEST_TIMEOUT`: the body did not arrive in time.", body = ErrorView),
        (status = 409, description = "`TIMER_ALREADY_EXISTS`: the id is taken by a timer with other content; `details.status` says how that one stands.", body = ErrorView),
        (status = 413, description = "`PAYLOAD_TOO_LARGE`: the body is larger than 1 MiB.", body = ErrorView),
        (status = 415, description = "`UNSUPPORTED_MEDIA_TYPE`: the body is not `application/json`.", body = ErrorView),
    )
)]
pub(crate) async fn create(Writing(commands): Writing, trace: Traced, body: JsonBody) -> Result<Response, ApiError> {
    register(&commands, &body.text, OnConflict::Reject, trace).await
}

/// Create a timer, or overwrite it
///
/// Like `POST /api/v1/timers`, but a timer that has the id already takes the new content and time, and one that has ended or was
/// deleted begins anew. Only one that is being delivered at this moment cannot be overwritten.
#[utoipa::path(
    post, path = "/api/v1/timers/create", tag = "v1", operation_id = "v1CreateOrReplaceTimer", security(("ApiKey" = [])),
    request_body(content = CreateTimer, description = "The timer that is wanted."),
    responses(
        (status = 200, description = "The timer as it was asked for.", body = TimerView, links(
            ("read" = (operation_id = "v1GetTimer", parameters(("groupId" = "$response.body#/groupId"), ("timerId" = "$response.body#/id")))),
            ("change" = (operation_id = "v1UpdateTimer", parameters(("groupId" = "$response.body#/groupId"), ("timerId" = "$response.body#/id")))),
            ("delete" = (operation_id = "v1DeleteTimer", parameters(("groupId" = "$response.body#/groupId"), ("timerId" = "$response.body#/id")))),
        )),
        (status = 400, description = "`VALIDATION_ERROR`: a field breaks a rule, and `details.field` names it; or `MALFORMED_REQUEST`.", body = ErrorView),
        (status = 408, description = "`REQUEST_TIMEOUT`: the body did not arrive in time.", body = ErrorView),
        (status = 409, description = "`TIMER_NOT_PENDING`: the timer that has the id is being delivered.", body = ErrorView),
        (status = 413, description = "`PAYLOAD_TOO_LARGE`: the body is larger than 1 MiB.", body = ErrorView),
        (status = 415, description = "`UNSUPPORTED_MEDIA_TYPE`: the body is not `application/json`.", body = ErrorView),
    )
)]
pub(crate) async fn create_or_replace(Writing(commands): Writing, trace: Traced, body: JsonBody) -> Result<Response, ApiError> {
    register(&commands, &body.text, OnConflict::Replace, trace).await
}

async fn register(commands: &Commands, text: &str, on_conflict: OnConflict, Traced(trace): Traced) -> Result<Response, ApiError> {
    let mut request = NewTimerRequest { on_conflict, ..parse(text)? };
    request.options.trace = trace;
    let outcome = commands.create(request).await.map_err(in_v1_words)?;
    let (Outcome::Created(timer) | Outcome::Existing(timer) | Outcome::Replaced(timer)) = outcome;
    Ok(TimerView::answer(timer))
}

fn parse(text: &str) -> Result<NewTimerRequest, ApiError> {
    let new: CreateTimer<'_> = request::read(text)?;
    let key = new.id.required("id")?;
    let namespace = selection::either_namespace(&new.namespace, &new.group_id)?;
    let timeout = (&new.callback_timeout, &new.callback_timeout_seconds);
    let wanted = Wanted::read(&new.execute_at, &new.callback_url, &new.payload, &new.retry_policy, timeout)?;
    let execute_at = wanted.execute_at.ok_or_else(|| Invalid::new("executeAt", "is required"))?;
    let request = NewTimerRequest::new(RequestedTime::At(execute_at), Target::Callback(post(wanted.http)?));
    Ok(NewTimerRequest {
        earliest_allowed: EarliestAllowed::Now,
        namespace,
        key: Some(key),
        retry_policy: given(wanted.retry_policy),
        ..request
    })
}

fn post(http: HttpPatch) -> Result<Callback, Invalid> {
    let endpoint = HttpEndpoint {
        url: http.url.ok_or_else(|| Invalid::new("callbackUrl", "is required"))?,
        timeout: http.timeout.unwrap_or(limits::CALLBACK_TIMEOUT_DEFAULT),
        protocol: Protocol::Timer,
    };
    Ok(Callback { payload: given(http.payload), ..Callback::new(Endpoint::Http(endpoint)) })
}

/// `null` says the same as nothing: there is nothing to clear yet.
fn given<T>(field: Field<T>) -> Option<T> {
    match field {
        Field::Set(value) => Some(value),
        Field::Clear | Field::Absent => None,
    }
}

#[cfg(test)]
mod tests;
