//! How this dialect says no.

use commands::{CommandError, Verb};
use domain::{Invalid, Status, Timestamp};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::ApiError;

/// The answer to a request that was not carried out.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = V1Error)]
pub(crate) struct ErrorView {
    error: Code,
    /// What is wrong, in one sentence that names the field.
    #[schema(example = "executeAt must be in the future")]
    message: String,
    details: Details,
    /// When this was answered.
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T10:30:00Z")]
    timestamp: Timestamp,
}

/// What is wrong, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(as = V1ErrorCode)]
enum Code {
    ValidationError,
    MalformedRequest,
    Unauthorized,
    Forbidden,
    TooManyRequests,
    TimerNotFound,
    RouteNotFound,
    MethodNotAllowed,
    RequestTimeout,
    TimerAlreadyExists,
    TimerNotPending,
    PayloadTooLarge,
    UriTooLong,
    UnsupportedMediaType,
    HeadersTooLarge,
    InternalError,
    ServiceUnavailable,
    OutcomeUnknown,
}

/// More about what is wrong, where there is more to say; else empty.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = V1ErrorDetails)]
struct Details {
    /// The field that breaks a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, example = "executeAt")]
    field: Option<String>,
    /// The rule that it breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, example = "must be in the future")]
    rule: Option<String>,
    /// The status of the timer that is in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Status, required = false)]
    status: Option<Status>,
}

impl ErrorView {
    pub(crate) fn of(error: &ApiError, at: Timestamp) -> Self {
        Self { error: code(error), message: message(error), details: Details::of(error), timestamp: at }
    }
}

/// A timer in the wrong status is a conflict here: the request itself is right.
pub(crate) const fn status(error: &ApiError) -> StatusCode {
    match error {
        ApiError::Command(CommandError::WrongStatus { .. }) => StatusCode::CONFLICT,
        _ => error.status(),
    }
}

const fn code(error: &ApiError) -> Code {
    match error {
        ApiError::Command(error) => match error {
            CommandError::Invalid(_) => Code::ValidationError,
            CommandError::NotFound => Code::TimerNotFound,
            CommandError::Forbidden(_) => Code::Forbidden,
            CommandError::WrongStatus { .. } | CommandError::InDelivery(_) => Code::TimerNotPending,
            CommandError::Conflict(_) => Code::TimerAlreadyExists,
            CommandError::Unavailable(_) | CommandError::TooManyStreams(_) => Code::ServiceUnavailable,
            CommandError::Unknown(_) => Code::OutcomeUnknown,
            CommandError::Searching | CommandError::TooManySearches | CommandError::TooManyOperations => Code::TooManyRequests,
            // Nothing that can be asked for here meets these.
            CommandError::Internal(_)
            | CommandError::NoSuchKey
            | CommandError::IdTaken
            | CommandError::NoSuchOperation
            | CommandError::TooMany { .. }
            | CommandError::Expired { .. }
            | CommandError::StaleRevision { .. } => Code::InternalError,
        },
        ApiError::Malformed(_) => Code::MalformedRequest,
        ApiError::Unauthorized => Code::Unauthorized,
        ApiError::TooManyRequests(_) | ApiError::TooManyWrongKeys(_) => Code::TooManyRequests,
        ApiError::NoSuchRoute(_) => Code::RouteNotFound,
        ApiError::MethodNotAllowed => Code::MethodNotAllowed,
        ApiError::BodyTooSlow | ApiError::HeadTooSlow => Code::RequestTimeout,
        ApiError::BodyTooLarge(_) => Code::PayloadTooLarge,
        ApiError::MediaType(_) => Code::UnsupportedMediaType,
        ApiError::UriTooLong => Code::UriTooLong,
        ApiError::HeadersTooLarge => Code::HeadersTooLarge,
        ApiError::TooManyConnections | ApiError::TooManyBatches | ApiError::TooManyLargeBodies => Code::ServiceUnavailable,
        ApiError::Internal => Code::InternalError,
    }
}

/// A key is called an id here, and a cancel a delete.
fn message(error: &ApiError) -> String {
    match error {
        ApiError::Command(CommandError::Conflict(_)) => "a timer with this id exists and has other content".to_owned(),
        ApiError::Command(CommandError::InDelivery(_)) => {
            "the timer with this id is being delivered: try again when it has ended".to_owned()
        }
        ApiError::Command(CommandError::WrongStatus { verb: Verb::Cancel, status }) => {
            format!("cannot delete timer with status '{status}'")
        }
        ApiError::Command(CommandError::Unknown(_)) => {
            "the store did not answer, so the outcome is unknown: read the timer before trying again".to_owned()
        }
        _ => error.message(),
    }
}

impl Details {
    fn of(error: &ApiError) -> Self {
        let field = error.field();
        let ApiError::Command(error) = error else { return Self::default() };
        match error {
            CommandError::Invalid(Invalid { rule, .. }) => Self { field, rule: Some(rule.clone()), status: None },
            CommandError::WrongStatus { status, .. } => Self::met(*status),
            CommandError::Conflict(timer) | CommandError::InDelivery(timer) => Self::met(timer.status),
            _ => Self::default(),
        }
    }

    const fn met(status: Status) -> Self {
        Self { field: None, rule: None, status: Some(status) }
    }
}

#[cfg(test)]
mod tests;
