//! `POST /timers`: registers a timer, in the long form or in the short one.

use commands::{CommandError, EarliestAllowed, NewTimerRequest, Outcome, Target};
use domain::{
    Callback, CallbackUrl, CorrelationId, Countdown, Delivery, Invalid, Key, Namespace, OnConflict, RequestedTime, RetryPolicy,
    Timestamp, limits,
};

use crate::{
    auth::Writing,
    body::JsonBody,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    object::Object,
    schema, timing,
    view::TimerView,
};

pub(crate) const LONG: [&str; 10] = [
    "execute_at",
    "delay",
    "callback",
    "namespace",
    "key",
    "on_conflict",
    "metadata",
    "retry_policy",
    "delivery",
    "correlation_id",
];
pub(crate) const SHORT: [&str; 4] = ["hours", "minutes", "seconds", "url"];

/// Create a timer
///
/// Registers one call at one time. The answer comes once the timer is on disk.
///
/// Two forms: the long one with `execute_at` or `delay` and a `callback`, and the short one with `hours`, `minutes`,
/// `seconds` and a `url`, to which the id of the timer is appended.
///
/// With a `key`, repeating a create is safe: the same content is the same timer and fires once.
#[utoipa::path(
    post, path = "/timers", tag = "timers", operation_id = "createTimer", security(("ApiKey" = [])),
    request_body(content = schema::CreateTimer, description = "The timer that is wanted, in the long or the short form."),
    responses(
        (status = 201, description = "The timer is registered: `timer created successfully`.", body = Envelope<TimerView>, links(
            ("read" = (operation_id = "getTimer", parameters(("id" = "$response.body#/data/id")))),
            ("change" = (operation_id = "updateTimer", parameters(("id" = "$response.body#/data/id")))),
            ("cancel" = (operation_id = "cancelTimer", parameters(("id" = "$response.body#/data/id")))),
            ("fire" = (operation_id = "fireTimer", parameters(("id" = "$response.body#/data/id")))),
            ("retry" = (operation_id = "retryTimer", parameters(("id" = "$response.body#/data/id")))),
            ("attempts" = (operation_id = "listAttempts", parameters(("id" = "$response.body#/data/id")))),
        )),
        (status = 200, description = "The key was there: `timer already exists` when nothing was changed, `timer replaced successfully` when it took the new content or time.", body = Envelope<TimerView>),
        (status = 400, description = "A field breaks a rule; the message names both.", body = ErrorEnvelope),
        (status = 408, description = "The body did not arrive in time.", body = ErrorEnvelope),
        (status = 409, description = "The key is taken by a timer with other content.", body = ErrorEnvelope),
        (status = 413, description = "The body is larger than 1 MiB.", body = ErrorEnvelope),
        (status = 415, description = "The body is not `application/json`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn create(Writing(commands): Writing, body: JsonBody) -> Result<Answer<TimerView>, ApiError> {
    let request = parse("the body", &body.text)?;
    let form = Form::of(&request);
    let outcome = commands.create(request).await;
    Ok(answer(outcome, form, commands.clock.now())?)
}

/// In which of its forms a request came: what is wrong with it is said in the words of that form.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    Long,
    Short,
}

impl Form {
    pub(crate) const fn of(request: &NewTimerRequest) -> Self {
        match request.target {
            Target::UrlWithId(_) => Self::Short,
            Target::Callback(_) | Target::Event => Self::Long,
        }
    }
}

/// What is said to somebody who wanted a timer in this form.
pub(crate) fn answer(
    outcome: Result<Outcome, CommandError>,
    form: Form,
    now: Timestamp,
) -> Result<Answer<TimerView>, CommandError> {
    let outcome = outcome.map_err(|error| match form {
        Form::Long => error,
        Form::Short => in_short_words(error),
    })?;
    Ok(match outcome {
        Outcome::Created(timer) => Answer::created("timer created successfully", TimerView::of(timer, now)),
        Outcome::Existing(timer) => Answer::ok("timer already exists", TimerView::of(timer, now)),
        Outcome::Replaced(timer) => Answer::ok("timer replaced successfully", TimerView::of(timer, now)),
    })
}

/// Reads a request in either form, from a text that complaints call `subject`.
pub(crate) fn parse(subject: &str, text: &str) -> Result<NewTimerRequest, ApiError> {
    let object = Object::parse_as(subject, text, &[LONG.as_slice(), SHORT.as_slice()].concat())?;
    match (object.first_of(&LONG), object.first_of(&SHORT)) {
        (Some(long), Some(short)) => {
            Err(Invalid::new(short, format!("belongs to the short form and must not be given together with {long}")).into())
        }
        (None, Some(_)) => Ok(parse_short(&object)?),
        (_, None) => Ok(parse_long(&object)?),
    }
}

fn parse_long(object: &Object<'_>) -> Result<NewTimerRequest, Invalid> {
    let asked = timing::asked(object)?.ok_or_else(|| Invalid::new("execute_at", "or delay is required"))?;
    let callback = object.raw("callback").ok_or_else(|| Invalid::new("callback", "is required"))?;
    let key = object.string("key")?.map(|text| Key::parse(&text)).transpose()?;
    let on_conflict = object.string("on_conflict")?.map(|text| parse_on_conflict(&text, key.is_some())).transpose()?;
    Ok(NewTimerRequest {
        asked,
        earliest_allowed: EarliestAllowed::MinDelay,
        target: Target::Callback(Callback::from_json(callback.get())?),
        namespace: object.string("namespace")?.map(|text| Namespace::parse(&text)).transpose()?.unwrap_or_default(),
        key,
        on_conflict: on_conflict.unwrap_or_default(),
        // `null` says the same as nothing where an update could clear the field, and is refused elsewhere.
        metadata: object.json("metadata", limits::METADATA_BYTES_MAX)?.filter(|_| !object.is_null("metadata")),
        correlation_id: match object.is_null("correlation_id") {
            true => None,
            false => object.string("correlation_id")?.map(|text| CorrelationId::parse(&text)).transpose()?,
        },
        retry_policy: match object.raw("retry_policy") {
            Some(raw) if raw.get() != "null" => Some(RetryPolicy::from_json(raw.get())?),
            _ => None,
        },
        delivery: object.string("delivery")?.map(|text| parse_delivery(&text)).transpose()?.unwrap_or_default(),
    })
}

fn parse_short(object: &Object<'_>) -> Result<NewTimerRequest, Invalid> {
    let countdown = Countdown {
        hours: object.whole("hours")?.unwrap_or(0),
        minutes: object.whole("minutes")?.unwrap_or(0),
        seconds: object.whole("seconds")?.unwrap_or(0),
    };
    let span = countdown.span()?;
    let url = object.string("url")?.ok_or_else(|| Invalid::new("url", "is required"))?;
    let target = Target::UrlWithId(CallbackUrl::parse(&url)?);
    // A countdown has a least length of its own: one second.
    Ok(NewTimerRequest { earliest_allowed: EarliestAllowed::Now, ..NewTimerRequest::new(RequestedTime::After(span), target) })
}

/// A rule that is checked behind the dialect names the fields of the long form; whoever used the short one knows others.
fn in_short_words(error: CommandError) -> CommandError {
    let CommandError::Invalid(Invalid { field, rule }) = error else { return error };
    let field = match field.as_str() {
        "delay" => "hours, minutes and seconds".to_owned(),
        "callback.url" => "url".to_owned(),
        _ => field,
    };
    CommandError::Invalid(Invalid { field, rule })
}

fn parse_on_conflict(text: &str, has_key: bool) -> Result<OnConflict, Invalid> {
    if !has_key {
        return Err(Invalid::new("on_conflict", "must not be given without key"));
    }
    OnConflict::parse(text).ok_or_else(|| Invalid::new("on_conflict", "must be reject, replace or keep"))
}

pub(crate) fn parse_delivery(text: &str) -> Result<Delivery, Invalid> {
    Delivery::parse(text).ok_or_else(|| Invalid::new("delivery", "must be at_least_once or at_most_once"))
}

#[cfg(test)]
mod tests;
