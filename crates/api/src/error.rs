use std::{sync::Arc, time::Duration};

use axum::response::{IntoResponse, Response};
use commands::{CommandError, Verb};
use domain::{Invalid, Status};
use http::{HeaderName, HeaderValue, StatusCode, header};

use crate::{BasePath, etag::etag, limits};

/// Why a request was not carried out. The one place where reasons become statuses.
#[derive(Debug)]
pub(crate) enum ApiError {
    Command(CommandError),
    /// Something about the request as a whole.
    Malformed(String),
    Unauthorized,
    /// The rate limit is reached, with the time after which the next request may come.
    TooManyRequests(Duration),
    /// A wrong key after too many from this address, with the time to wait before the next. A valid key is accepted meanwhile.
    TooManyWrongKeys(Duration),
    /// The path under which everything is served, and so the documentation.
    NoSuchRoute(BasePath),
    MethodNotAllowed,
    BodyTooSlow,
    /// The body has more bytes than this.
    BodyTooLarge(usize),
    MediaType(&'static str),
    UriTooLong,
    HeadersTooLarge,
    HeadTooSlow,
    TooManyConnections,
    TooManyBatches,
    TooManyLargeBodies,
    /// A fault of ours.
    Internal,
}

/// What an answer carries until the dialect of its request puts it into words.
#[derive(Debug, Clone)]
pub(crate) struct Refused(pub Arc<ApiError>);

/// What an answer carries that is a success as a whole, and not in every part: why, for the log.
#[derive(Debug, Clone)]
pub(crate) struct PartlyFailed(pub String);

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self(Arc::new(error))
    }
}

impl From<CommandError> for ApiError {
    fn from(error: CommandError) -> Self {
        Self::Command(error)
    }
}

impl From<Invalid> for ApiError {
    fn from(invalid: Invalid) -> Self {
        Self::Command(CommandError::Invalid(invalid))
    }
}

impl ApiError {
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::Command(CommandError::WrongStatus { verb: Verb::Ping, .. }) => StatusCode::CONFLICT,
            Self::Command(CommandError::StaleRevision { .. }) => StatusCode::PRECONDITION_FAILED,
            Self::Command(CommandError::WrongStatus { verb: Verb::Pause | Verb::Resume, .. })
            | Self::Command(CommandError::WrongStatus { status: Status::Paused, .. }) => StatusCode::CONFLICT,
            Self::Command(CommandError::Invalid(_) | CommandError::WrongStatus { .. }) | Self::Malformed(_) => {
                StatusCode::BAD_REQUEST
            }
            Self::Command(CommandError::NotFound | CommandError::NoSuchKey | CommandError::NoSuchOperation)
            | Self::NoSuchRoute(_) => StatusCode::NOT_FOUND,
            Self::Command(
                CommandError::Conflict(_)
                | CommandError::IdTaken
                | CommandError::InDelivery(_)
                | CommandError::TooMany { .. }
                | CommandError::Expired { .. },
            ) => StatusCode::CONFLICT,
            Self::Command(CommandError::Unavailable(_) | CommandError::Unknown(_) | CommandError::TooManyStreams(_))
            | Self::TooManyConnections
            | Self::TooManyBatches
            | Self::TooManyLargeBodies => StatusCode::SERVICE_UNAVAILABLE,
            Self::Command(CommandError::Internal(_)) | Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Command(CommandError::Forbidden(_)) => StatusCode::FORBIDDEN,
            Self::TooManyRequests(_)
            | Self::TooManyWrongKeys(_)
            | Self::Command(CommandError::Searching | CommandError::TooManySearches | CommandError::TooManyOperations) => {
                StatusCode::TOO_MANY_REQUESTS
            }
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::BodyTooSlow | Self::HeadTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::BodyTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::MediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::UriTooLong => StatusCode::URI_TOO_LONG,
            Self::HeadersTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        }
    }

    /// A refusal that clients bring about by themselves and by no load: no fault of the service, and nothing for its operator.
    pub(crate) const fn is_a_limit_of_its_key(&self) -> bool {
        matches!(self, Self::Command(CommandError::TooManyStreams(_)))
    }

    /// What is wrong, in the words of the native dialect.
    pub(crate) fn message(&self) -> String {
        let text = match self {
            Self::Command(error) => return error.to_string(),
            Self::BodyTooLarge(bytes_max) => {
                return format!("the body must not be larger than {} MiB", bytes_max / limits::MEBIBYTE);
            }
            Self::NoSuchRoute(base_path) => return format!("no such route: see {}/docs", base_path.as_str()),
            Self::Malformed(text) => text,
            Self::Unauthorized => "unauthorized",
            Self::TooManyRequests(_) => "too many requests with this key: see the Retry-After header",
            Self::TooManyWrongKeys(_) => "too many wrong keys from this address: see the Retry-After header",
            Self::MethodNotAllowed => "method not allowed: see the Allow header",
            Self::BodyTooSlow => "the body did not arrive in time",
            Self::MediaType(text) => text,
            Self::UriTooLong => "the URI must not be longer than 8 KiB",
            Self::HeadersTooLarge => "the headers must not be more than 64 or larger than 16 KiB together",
            Self::HeadTooSlow => "the headers did not arrive in time",
            Self::TooManyConnections => "too many connections: try again later",
            Self::TooManyBatches => "too many batches at the same time, and nothing was changed: try again later",
            Self::TooManyLargeBodies => "too many large bodies at the same time, and nothing was changed: try again later",
            Self::Internal => "internal error",
        };
        text.to_owned()
    }

    /// The field that breaks a rule. A name that is not ours stands in quotes where it is part of a sentence, and without them here.
    pub(crate) fn field(&self) -> Option<String> {
        match self {
            Self::Command(CommandError::Invalid(invalid)) => Some(invalid.field.replace('\'', "")),
            _ => None,
        }
    }

    /// Why it is an internal error, for the log: never sent.
    pub(crate) fn cause(&self) -> Option<String> {
        match self {
            Self::Command(CommandError::Unavailable(cause) | CommandError::Unknown(cause) | CommandError::Internal(cause)) => {
                Some(cause.to_string())
            }
            _ => None,
        }
    }

    /// What the answer says beside its body.
    pub(crate) fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        if let Self::TooManyRequests(wait) | Self::TooManyWrongKeys(wait) = self {
            return Some((header::RETRY_AFTER, HeaderValue::from(whole_seconds(*wait))));
        }
        if let Self::Command(CommandError::StaleRevision { revision, .. }) = self {
            return Some((header::ETAG, etag(*revision)));
        }
        match self.status() {
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, HeaderValue::from_static("ApiKey"))),
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                Some((header::RETRY_AFTER, HeaderValue::from_static("1")))
            }
            // What is left of the body is not read, so nothing else can follow on this connection.
            StatusCode::REQUEST_TIMEOUT | StatusCode::PAYLOAD_TOO_LARGE => {
                Some((header::CONNECTION, HeaderValue::from_static("close")))
            }
            _ => None,
        }
    }
}

/// The header knows no shorter time than a second.
const fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + (wait.subsec_nanos() > 0) as u64
}

/// An answer without words: those are found by `observe`, which knows the dialect and the time.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(Refused::from(self));
        response
    }
}
