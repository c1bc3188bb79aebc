//! `POST /timers/batch`: registers many timers in one commit.
//!
//! ```text
//!   element ──parse──┬── wrong ────────────────────────────┐
//!                    └── request ──▶ one create_all ──▶ answer ──▶ result, at the place of its element
//! ```

use axum::{
    extract::{FromRequestParts, State},
    response::{IntoResponse, Response},
};
use commands::{Commands, NewTimerRequest, Permit};
use domain::{Given, limits::CREATED_AT_ONCE_MAX};
use http::request::Parts;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    Api,
    auth::{Permitted, Writing},
    body::JsonBody,
    create::{self, CreateTimer, Form},
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::{ApiError, PartlyFailed},
    limits,
    request::{self, Elements},
    trace::Traced,
    view::TimerView,
};

/// Many timers to be made at once.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(crate) struct CreateTimers<'a> {
    /// Each in the long or the short form.
    #[schema(value_type = Vec<CreateTimer>, required = true, min_items = 1, max_items = 1000)]
    #[serde(default)]
    timers: Given<'a, Elements<'a, CREATED_AT_ONCE_MAX>>,
}

/// What became of a batch.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BatchResults {
    /// One for each of `timers`, in the same order.
    #[schema(min_items = 1, max_items = 1000)]
    results: Vec<BatchResult>,
}

/// What became of one timer of a batch.
#[derive(Debug, Serialize, ToSchema)]
struct BatchResult {
    /// The HTTP status that it would have had alone: 201 or 200 when it is registered, else why not (400, 403, 409, 500, 503).
    #[schema(minimum = 200, maximum = 599, example = 201)]
    status: u16,
    /// What happened, for people.
    #[schema(example = "timer created successfully")]
    message: String,
    /// The field that breaks a rule, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, example = "execute_at")]
    field: Option<String>,
    /// The timer, if it is registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = TimerView, required = false)]
    timer: Option<TimerView>,
}

impl BatchResult {
    fn of(answer: Result<Answer<TimerView>, ApiError>) -> Self {
        match answer {
            Ok(Answer { status, message, data, revision: _ }) => {
                Self { status: status.as_u16(), message: message.to_owned(), field: None, timer: Some(data) }
            }
            Err(error) => Self { status: error.status().as_u16(), message: error.message(), field: error.field(), timer: None },
        }
    }
}

/// Create many timers
///
/// Registers up to 1000 timers in one commit, each in the long or the short form. Each is answered for itself, in the order of the
/// request: one that is refused does not hinder the others, so that the answer as a whole is 200 even if all of them were. The answer
/// comes once all that are said to be registered are on disk.
///
/// Give every timer a `key` or an `id`, and the whole batch can be repeated safely.
#[utoipa::path(
    post, path = "/timers/batch", tag = "timers", operation_id = "createTimers", security(("ApiKey" = [])),
    request_body(content = CreateTimers, description = "The timers that are wanted: at least one, at most 1000.",
        example = json!({"timers": [
            {"delay": "1h", "key": "plant-7", "callback": {"type": "http", "url": "https://api.example.com/webhook"}},
            {"minutes": 5, "url": "https://api.example.com/done"},
        ]})),
    responses(
        (status = 200, description = "What became of each of them: `success`.", body = Envelope<BatchResults>),
        (status = 400, description = "The request as a whole breaks a rule, and none of its timers was registered.", body = ErrorEnvelope),
        (status = 408, description = "The body did not arrive in time.", body = ErrorEnvelope),
        (status = 413, description = "The body is larger than 8 MiB.", body = ErrorEnvelope),
        (status = 415, description = "The body is not `application/json`.", body = ErrorEnvelope),
        (status = 503, description = "Too many batches at the same time; none of these timers was registered.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn batch(
    State(api): State<Api>,
    Writing(commands): Writing,
    Traced(trace): Traced,
    _permit: BatchPermit,
    body: JsonBody<{ limits::BATCH_BYTES_MAX }>,
) -> Result<Response, ApiError> {
    let mut elements = parse(&body.text)?;
    for request in elements.iter_mut().flatten() {
        request.options.trace.clone_from(&trace);
    }
    // Each of them counts, or a batch would be the way around the limit; the request itself was the first.
    api.config.rates.owe(&commands.caller, elements.len() - 1);
    let answers = register(&commands, elements).await;
    let causes: Vec<String> = answers.iter().filter_map(|answer| answer.as_ref().err()?.cause()).collect();
    let results = answers.into_iter().map(BatchResult::of).collect();
    let mut response = Answer::ok("success", BatchResults { results }).into_response();
    if let Some(first) = causes.first() {
        response.extensions_mut().insert(PartlyFailed(format!("{} timers, the first: {first}", causes.len())));
    }
    Ok(response)
}

/// The requests of a batch, each read for itself.
fn parse(text: &str) -> Result<Vec<Result<NewTimerRequest, ApiError>>, ApiError> {
    let request: CreateTimers<'_> = request::read(text)?;
    let Elements(elements) = request.timers.required("timers")?;
    Ok(elements.into_iter().map(|raw| create::parse("the timer", raw.get())).collect())
}

/// Registers those that could be read, and answers in the order of all of them.
async fn register(
    commands: &Commands,
    elements: Vec<Result<NewTimerRequest, ApiError>>,
) -> Vec<Result<Answer<TimerView>, ApiError>> {
    let mut requests = Vec::with_capacity(elements.len());
    let mut take = |request| {
        let form = Form::of(&request);
        requests.push(request);
        form
    };
    let forms: Vec<Result<Form, ApiError>> = elements.into_iter().map(|element| element.map(&mut take)).collect();
    let mut outcomes = commands.create_all(requests).await.into_iter();
    let now = commands.clock.now();
    let answer = |form: Result<Form, ApiError>| {
        let form = form?;
        let outcome = outcomes.next().ok_or(ApiError::Internal)?;
        Ok(create::answer(outcome, form, now)?)
    };
    forms.into_iter().map(answer).collect()
}

/// The right to have a batch in memory. Until then the body stays where it is: with the client.
pub(crate) struct BatchPermit {
    _permit: Permit,
}

impl FromRequestParts<Api> for BatchPermit {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        let waiting = api.batches.acquire(Permitted::of(&parts.extensions)?.0.caller.key_id());
        match tokio::time::timeout(api.config.limits.body_time_max, waiting).await {
            Ok(permit) => Ok(Self { _permit: permit }),
            Err(_) => Err(ApiError::TooManyBatches),
        }
    }
}

#[cfg(test)]
mod tests;
