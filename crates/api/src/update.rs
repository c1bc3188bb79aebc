//! `PUT /timers/{id}`: changes a pending timer.

use commands::{EarliestAllowed, HttpPatch, Patch};
use domain::{Callback, CorrelationId, Invalid, RetryPolicy, limits};

use crate::{
    auth::Writing,
    body::JsonBody,
    create::parse_delivery,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    id::PathId,
    object::Object,
    schema, timing,
    view::TimerView,
};

pub(crate) const FIELDS: [&str; 7] =
    ["execute_at", "delay", "callback", "metadata", "retry_policy", "delivery", "correlation_id"];
/// What makes a timer the one it is cannot change.
const FIXED: [&str; 3] = ["namespace", "key", "on_conflict"];

/// Change a timer
///
/// Changes a pending timer; once this has answered 200, the old version never fires. A field that is absent stays as
/// it is; `null` clears `metadata`, `correlation_id` or `retry_policy`; a `callback` is always whole. An empty object
/// changes nothing.
#[utoipa::path(
    put, path = "/timers/{id}", tag = "timers", operation_id = "updateTimer", security(("ApiKey" = [])),
    params(("id" = String, Path, format = "uuid", description = "The id that creating the timer answered with.")),
    request_body(content = schema::UpdateTimer, description = "What is to change."),
    responses(
        (status = 200, description = "It is changed: `timer updated successfully`.", body = Envelope<TimerView>),
        (status = 400, description = "A field breaks a rule, or the timer is not pending: `cannot update timer with status 'completed'`.", body = ErrorEnvelope),
        (status = 404, description = "`timer not found`.", body = ErrorEnvelope),
        (status = 408, description = "The body did not arrive in time.", body = ErrorEnvelope),
        (status = 413, description = "The body is larger than 1 MiB.", body = ErrorEnvelope),
        (status = 415, description = "The body is not `application/json`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn update(
    Writing(commands): Writing,
    PathId(id): PathId,
    body: JsonBody,
) -> Result<Answer<TimerView>, ApiError> {
    let patch = parse(&body.text)?;
    let timer = commands.update(id, &patch).await?;
    Ok(Answer::ok("timer updated successfully", TimerView::of(timer, commands.clock.now())))
}

fn parse(text: &str) -> Result<Patch, ApiError> {
    let object = Object::parse(text, &[FIELDS.as_slice(), FIXED.as_slice()].concat())?;
    if let Some(fixed) = object.first_of(&FIXED) {
        return Err(Invalid::new(fixed, "cannot be changed").into());
    }
    Ok(Patch {
        asked: timing::asked(&object)?,
        earliest_allowed: EarliestAllowed::MinDelay,
        callback: object.raw("callback").map(|raw| Callback::from_json(raw.get())).transpose()?,
        http: HttpPatch::default(),
        metadata: object.clearable("metadata", |object, name| object.json(name, limits::METADATA_BYTES_MAX))?,
        correlation_id: object.clearable("correlation_id", |object, name| {
            object.string(name)?.map(|text| CorrelationId::parse(&text)).transpose()
        })?,
        retry_policy: object.clearable("retry_policy", |object, name| {
            object.raw(name).map(|raw| RetryPolicy::from_json(raw.get())).transpose()
        })?,
        delivery: object.string("delivery")?.map(|text| parse_delivery(&text)).transpose()?,
    })
}

#[cfg(test)]
mod tests;
