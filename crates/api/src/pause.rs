//! `POST /timers/{id}/pause`, `/resume`: takes a pending timer out of what is due, and puts it back.

use std::borrow::Cow;

use domain::{Given, Invalid, Missed, limits};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    auth::Writing,
    body::OptionalBody,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    id::PathId,
    request,
    revision::{self, IfMatch},
    schema,
    view::TimerView,
};

/// What is noted about a pause.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(crate) struct PauseTimer<'a> {
    /// Why it is paused, for people.
    #[schema(value_type = String, required = false, max_length = 255, example = "the shop is closed")]
    #[serde(default)]
    note: Given<'a, Cow<'a, str>>,
}

/// How a pause ends.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(crate) struct ResumeTimer<'a> {
    /// What becomes of a timer that was due while it was paused: `fire` (unless given) makes the call now, `expire` ends the timer as
    /// `expired`. One with an `on_failure` is `expired` as soon as that call is registered.
    #[schema(value_type = schema::Missed, required = false)]
    #[serde(default)]
    missed: Given<'a, Cow<'a, str>>,
}

/// Pause a timer
///
/// Takes a pending timer out of what is due: once this has answered 200, no call is made until it is resumed. It can be changed and
/// canceled meanwhile, and stays paused. Pausing a paused timer again is 200 too. The body is optional.
#[utoipa::path(
    post, path = "/timers/{id}/pause", tag = "timers", operation_id = "pauseTimer", security(("ApiKey" = [])),
    params(
        ("id" = String, Path, format = "uuid", description = "The id that creating the timer answered with."),
        ("If-Match" = Option<schema::IfMatch>, Header, description = schema::IF_MATCH),
    ),
    request_body(content = Option<PauseTimer>, description = "A note, if there is one."),
    responses(
        (status = 200, description = "It is paused: `timer paused successfully`.", body = Envelope<TimerView>),
        (status = 400, description = "The id is no UUID, or a field breaks a rule.", body = ErrorEnvelope),
        (status = 404, description = "`timer not found`.", body = ErrorEnvelope),
        (status = 408, description = "The body did not arrive in time.", body = ErrorEnvelope),
        (status = 409, description = "The timer is being delivered or has ended: `cannot pause timer with status 'executing'`.", body = ErrorEnvelope),
        (status = 413, description = "The body is larger than 1 MiB.", body = ErrorEnvelope),
        (status = 415, description = "The body is not `application/json`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn pause(
    Writing(commands): Writing,
    PathId(id): PathId,
    IfMatch(expected): IfMatch,
    OptionalBody(body): OptionalBody,
) -> Result<Answer<TimerView>, ApiError> {
    let note = body.as_ref().map(|body| note(&body.text)).transpose()?.flatten();
    let timer = commands.pause(id, expected, note.as_deref()).await?;
    Ok(revision::changed("timer paused successfully", timer, commands.clock.now()))
}

fn note(text: &str) -> Result<Option<String>, ApiError> {
    let PauseTimer { note } = request::read(text)?;
    let note = note.read("note")?.map(Cow::into_owned);
    if note.as_ref().is_some_and(|note| note.chars().count() > limits::PAUSE_NOTE_CHARS_MAX) {
        return Err(Invalid::new("note", format!("must not be longer than {} characters", limits::PAUSE_NOTE_CHARS_MAX)).into());
    }
    Ok(note)
}

/// Resume a timer
///
/// Puts a paused timer back to `pending`: it is due when it was. One that was due meanwhile is due now, or ends as `expired`, as
/// `missed` says. Resuming a pending timer is 200 too, and changes nothing. The body is optional.
#[utoipa::path(
    post, path = "/timers/{id}/resume", tag = "timers", operation_id = "resumeTimer", security(("ApiKey" = [])),
    params(
        ("id" = String, Path, format = "uuid", description = "The id that creating the timer answered with."),
        ("If-Match" = Option<schema::IfMatch>, Header, description = schema::IF_MATCH),
    ),
    request_body(content = Option<ResumeTimer>, description = "What becomes of a timer that was due meanwhile."),
    responses(
        (status = 200, description = "It is not paused any more: `timer resumed successfully`.", body = Envelope<TimerView>),
        (status = 400, description = "The id is no UUID, or a field breaks a rule.", body = ErrorEnvelope),
        (status = 404, description = "`timer not found`.", body = ErrorEnvelope),
        (status = 408, description = "The body did not arrive in time.", body = ErrorEnvelope),
        (status = 409, description = "The timer is being delivered or has ended: `cannot resume timer with status 'completed'`.", body = ErrorEnvelope),
        (status = 413, description = "The body is larger than 1 MiB.", body = ErrorEnvelope),
        (status = 415, description = "The body is not `application/json`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn resume(
    Writing(commands): Writing,
    PathId(id): PathId,
    IfMatch(expected): IfMatch,
    OptionalBody(body): OptionalBody,
) -> Result<Answer<TimerView>, ApiError> {
    let missed = body.as_ref().map(|body| missed(&body.text)).transpose()?.unwrap_or_default();
    let timer = commands.resume(id, expected, missed).await?;
    Ok(revision::changed("timer resumed successfully", timer, commands.clock.now()))
}

fn missed(text: &str) -> Result<Missed, ApiError> {
    let ResumeTimer { missed } = request::read(text)?;
    let Some(text) = missed.read("missed")? else { return Ok(Missed::default()) };
    Ok(Missed::parse(&text).ok_or_else(|| Invalid::new("missed", "must be fire or expire"))?)
}

#[cfg(test)]
mod tests;
