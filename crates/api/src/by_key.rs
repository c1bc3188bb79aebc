//! `/namespaces/{namespace}/timers/{key}`: the same calls for clients that know a timer by its own key.
//!
//! A namespace and a key make the id, so each of these is the call of `/timers/{id}` with the same name.

use axum::{
    Router,
    extract::{FromRequestParts, Path, path::ErrorKind, rejection::PathRejection},
    routing,
};
use domain::{Invalid, Key, Namespace, TimerId};
use http::request::Parts;

use crate::{
    Api,
    attempts::{self, Attempts},
    auth::{Permitted, Writing},
    body::{JsonBody, OptionalBody},
    cancel,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    fire, get,
    id::PathId,
    pause::{self, PauseTimer, ResumeTimer},
    ping_timer::{self, PingTimer},
    retry,
    revision::IfMatch,
    schema,
    update::{self, UpdateTimer},
    view::{DetailView, TimerView},
};

pub(crate) fn routes() -> Router<Api> {
    Router::new()
        .route("/namespaces/{namespace}/timers/{key}", routing::get(read).put(change).delete(cancel_it))
        .route("/namespaces/{namespace}/timers/{key}/fire", routing::post(fire_it))
        .route("/namespaces/{namespace}/timers/{key}/retry", routing::post(retry_it))
        .route("/namespaces/{namespace}/timers/{key}/ping", routing::post(ping_it))
        .route("/namespaces/{namespace}/timers/{key}/pause", routing::post(pause_it))
        .route("/namespaces/{namespace}/timers/{key}/resume", routing::post(resume_it))
        .route("/namespaces/{namespace}/timers/{key}/attempts", routing::get(list_attempts))
}

/// The timer that the path names by its namespace and key.
pub(crate) struct PathKey(pub TimerId);

impl FromRequestParts<Api> for PathKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        let Path((namespace, key)) = Path::<(String, String)>::from_request_parts(parts, api).await.map_err(unreadable)?;
        Ok(Self(TimerId::keyed(&Namespace::parse(&namespace)?, &Key::parse(&key)?)))
    }
}

impl From<PathKey> for PathId {
    fn from(PathKey(id): PathKey) -> Self {
        Self(id)
    }
}

/// Percent-encoding can write bytes that are no text.
fn unreadable(rejection: PathRejection) -> Invalid {
    let field = match rejection {
        PathRejection::FailedToDeserializePathParams(error) => match error.into_kind() {
            ErrorKind::InvalidUtf8InPathParam { key } => key,
            _ => "path".to_owned(),
        },
        _ => "path".to_owned(),
    };
    Invalid::new(field, "must be valid UTF-8")
}

/// Read a timer by its key
///
/// As `GET /timers/{id}`, for a timer that was created with a `key`. Characters that have a meaning in a path must be percent-encoded: a
/// key `a/b` is `a%2Fb`.
#[utoipa::path(
    get, path = "/namespaces/{namespace}/timers/{key}", tag = "timers", operation_id = "getTimerByKey", security(("ApiKey" = [])),
    params(
        ("namespace" = schema::NamespaceName, Path, description = "The namespace of the timer."),
        ("key" = schema::TimerKey, Path, description = "The `key` that the timer was created with."),
    ),
    responses(
        (status = 200, description = "The timer as it stands: `success`.", body = Envelope<DetailView>),
        (status = 400, description = "The namespace or the key breaks a rule; the message names both.", body = ErrorEnvelope),
        (status = 404, description = "`timer not found`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn read(permitted: Permitted, key: PathKey) -> Result<Answer<DetailView>, ApiError> {
    get::get(permitted, key.into()).await
}

/// Change a timer by its key
///
/// As `PUT /timers/{id}`.
#[utoipa::path(
    put, path = "/namespaces/{namespace}/timers/{key}", tag = "timers", operation_id = "updateTimerByKey", security(("ApiKey" = [])),
    params(
        ("namespace" = schema::NamespaceName, Path, description = "The namespace of the timer."),
        ("key" = schema::TimerKey, Path, description = "The `key` that the timer was created with."),
        ("If-Match" = Option<schema::IfMatch>, Header, description = schema::IF_MATCH),
    ),
    request_body(content = UpdateTimer, description = "What is to change."),
    responses(
        (status = 200, description = "It is changed: `timer updated successfully`.", body = Envelope<TimerView>),
        (status = 400, description = "A field breaks a rule, or the timer is not pending: `cannot update timer with status 'completed'`.", body = ErrorEnvelope),
        (status = 404, description = "`timer not found`.", body = ErrorEnvelope),
        (status = 408, description = "The body did not arrive in time.", body = ErrorEnvelope),
        (status = 413, description = "The body is larger than 1 MiB.", body = ErrorEnvelope),
        (status = 415, description = "The body is not `application/json`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn change(
    writing: Writing,
    key: PathKey,
    if_match: IfMatch,
    body: JsonBody,
) -> Result<Answer<TimerView>, ApiError> {
    update::update(writing, key.into(), if_match, body).await
}

/// Cancel a timer by its key
///
/// As `DELETE /timers/{id}`.
#[utoipa::path(
    delete, path = "/namespaces/{namespace}/timers/{key}", tag = "timers", operation_id = "cancelTimerByKey", security(("ApiKey" = [])),
    params(
        ("namespace" = schema::NamespaceName, Path, description = "The namespace of the timer."),
        ("key" = schema::TimerKey, Path, description = "The `key` that the timer was created with."),
        ("If-Match" = Option<schema::IfMatch>, Header, description = schema::IF_MATCH),
    ),
    responses(
        (status = 200, description = "It is canceled: `timer canceled successfully`.", body = Envelope<TimerView>),
        (status = 400, description = "The namespace or the key breaks a rule, or the timer is not pending: `cannot cancel timer with status 'completed'`.", body = ErrorEnvelope),
        (status = 404, description = "`timer not found`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn cancel_it(permitted: Permitted, key: PathKey, if_match: IfMatch) -> Result<Answer<TimerView>, ApiError> {
    cancel::cancel(permitted, key.into(), if_match).await
}

/// Fire a timer now by its key
///
/// As `POST /timers/{id}/fire`.
#[utoipa::path(
    post, path = "/namespaces/{namespace}/timers/{key}/fire", tag = "timers", operation_id = "fireTimerByKey", security(("ApiKey" = [])),
    params(
        ("namespace" = schema::NamespaceName, Path, description = "The namespace of the timer."),
        ("key" = schema::TimerKey, Path, description = "The `key` that the timer was created with."),
        ("If-Match" = Option<schema::IfMatch>, Header, description = schema::IF_MATCH),
    ),
    responses(
        (status = 200, description = "It is due: `timer fires now`.", body = Envelope<TimerView>),
        (status = 400, description = "The namespace or the key breaks a rule, or the timer is not pending: `cannot fire timer with status 'completed'`.", body = ErrorEnvelope),
        (status = 404, description = "`timer not found`.", body = ErrorEnvelope),
        (status = 409, description = "The timer's own expiry has come: `cannot fire timer: it expired at …`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn fire_it(permitted: Permitted, key: PathKey, if_match: IfMatch) -> Result<Answer<TimerView>, ApiError> {
    fire::fire(permitted, key.into(), if_match).await
}

/// Try a failed timer again by its key
///
/// As `POST /timers/{id}/retry`.
#[utoipa::path(
    post, path = "/namespaces/{namespace}/timers/{key}/retry", tag = "timers", operation_id = "retryTimerByKey", security(("ApiKey" = [])),
    params(
        ("namespace" = schema::NamespaceName, Path, description = "The namespace of the timer."),
        ("key" = schema::TimerKey, Path, description = "The `key` that the timer was created with."),
        ("If-Match" = Option<schema::IfMatch>, Header, description = schema::IF_MATCH),
    ),
    responses(
        (status = 200, description = "It is pending again: `timer is tried again`.", body = Envelope<TimerView>),
        (status = 400, description = "The namespace or the key breaks a rule, or the timer has not failed: `cannot retry timer with status 'completed'`.", body = ErrorEnvelope),
        (status = 404, description = "`timer not found`.", body = ErrorEnvelope),
        (status = 409, description = "The timer's own expiry has come: `cannot retry timer: it expired at …`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn retry_it(permitted: Permitted, key: PathKey, if_match: IfMatch) -> Result<Answer<TimerView>, ApiError> {
    retry::retry(permitted, key.into(), if_match).await
}

/// Postpone a timer by its key
///
/// As `POST /timers/{id}/ping`.
#[utoipa::path(
    post, path = "/namespaces/{namespace}/timers/{key}/ping", tag = "timers", operation_id = "pingTimerByKey", security(("ApiKey" = [])),
    params(
        ("namespace" = schema::NamespaceName, Path, description = "The namespace of the timer."),
        ("key" = schema::TimerKey, Path, description = "The `key` that the timer was created with."),
        ("If-Match" = Option<schema::IfMatch>, Header, description = schema::IF_MATCH),
    ),
    request_body(content = Option<PingTimer>, description = "By how much; may be missing."),
    responses(
        (status = 200, description = "It is postponed: `timer postponed successfully`.", body = Envelope<TimerView>),
        (status = 400, description = "A field, the namespace or the key breaks a rule; the message names both.", body = ErrorEnvelope),
        (status = 404, description = "`timer not found`.", body = ErrorEnvelope),
        (status = 408, description = "The body did not arrive in time.", body = ErrorEnvelope),
        (status = 409, description = "The timer is being delivered, is paused, or was canceled: `cannot ping timer with status 'canceled'`.", body = ErrorEnvelope),
        (status = 413, description = "The body is larger than 1 MiB.", body = ErrorEnvelope),
        (status = 415, description = "The body is not `application/json`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn ping_it(
    writing: Writing,
    key: PathKey,
    if_match: IfMatch,
    body: OptionalBody,
) -> Result<Answer<TimerView>, ApiError> {
    ping_timer::ping_timer(writing, key.into(), if_match, body).await
}

/// List the attempts of a timer by its key
///
/// As `GET /timers/{id}/attempts`.
#[utoipa::path(
    get, path = "/namespaces/{namespace}/timers/{key}/attempts", tag = "timers", operation_id = "listAttemptsByKey", security(("ApiKey" = [])),
    params(
        ("namespace" = schema::NamespaceName, Path, description = "The namespace of the timer."),
        ("key" = schema::TimerKey, Path, description = "The `key` that the timer was created with."),
    ),
    responses(
        (status = 200, description = "What is remembered, perhaps nothing: `success`.", body = Envelope<Attempts>),
        (status = 400, description = "The namespace or the key breaks a rule; the message names both.", body = ErrorEnvelope),
        (status = 404, description = "`timer not found`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn list_attempts(permitted: Permitted, key: PathKey) -> Result<Answer<Attempts>, ApiError> {
    attempts::attempts(permitted, key.into()).await
}

/// Pause a timer by its key
///
/// As `POST /timers/{id}/pause`.
#[utoipa::path(
    post, path = "/namespaces/{namespace}/timers/{key}/pause", tag = "timers", operation_id = "pauseTimerByKey", security(("ApiKey" = [])),
    params(
        ("namespace" = schema::NamespaceName, Path, description = "The namespace of the timer."),
        ("key" = schema::TimerKey, Path, description = "The `key` that the timer was created with."),
        ("If-Match" = Option<schema::IfMatch>, Header, description = schema::IF_MATCH),
    ),
    request_body(content = Option<PauseTimer>, description = "A note, if there is one."),
    responses(
        (status = 200, description = "It is paused: `timer paused successfully`.", body = Envelope<TimerView>),
        (status = 400, description = "The namespace, the key or a field breaks a rule; the message names both.", body = ErrorEnvelope),
        (status = 404, description = "`timer not found`.", body = ErrorEnvelope),
        (status = 408, description = "The body did not arrive in time.", body = ErrorEnvelope),
        (status = 409, description = "The timer is being delivered or has ended: `cannot pause timer with status 'executing'`.", body = ErrorEnvelope),
        (status = 413, description = "The body is larger than 1 MiB.", body = ErrorEnvelope),
        (status = 415, description = "The body is not `application/json`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn pause_it(
    writing: Writing,
    key: PathKey,
    if_match: IfMatch,
    body: OptionalBody,
) -> Result<Answer<TimerView>, ApiError> {
    pause::pause(writing, key.into(), if_match, body).await
}

/// Resume a timer by its key
///
/// As `POST /timers/{id}/resume`.
#[utoipa::path(
    post, path = "/namespaces/{namespace}/timers/{key}/resume", tag = "timers", operation_id = "resumeTimerByKey", security(("ApiKey" = [])),
    params(
        ("namespace" = schema::NamespaceName, Path, description = "The namespace of the timer."),
        ("key" = schema::TimerKey, Path, description = "The `key` that the timer was created with."),
        ("If-Match" = Option<schema::IfMatch>, Header, description = schema::IF_MATCH),
    ),
    request_body(content = Option<ResumeTimer>, description = "What becomes of a timer that was due meanwhile."),
    responses(
        (status = 200, description = "It is not paused any more: `timer resumed successfully`.", body = Envelope<TimerView>),
        (status = 400, description = "The namespace, the key or a field breaks a rule; the message names both.", body = ErrorEnvelope),
        (status = 404, description = "`timer not found`.", body = ErrorEnvelope),
        (status = 408, description = "The body did not arrive in time.", body = ErrorEnvelope),
        (status = 409, description = "The timer is being delivered or has ended: `cannot resume timer with status 'completed'`.", body = ErrorEnvelope),
        (status = 413, description = "The body is larger than 1 MiB.", body = ErrorEnvelope),
        (status = 415, description = "The body is not `application/json`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn resume_it(
    writing: Writing,
    key: PathKey,
    if_match: IfMatch,
    body: OptionalBody,
) -> Result<Answer<TimerView>, ApiError> {
    pause::resume(writing, key.into(), if_match, body).await
}

#[cfg(test)]
mod tests;
