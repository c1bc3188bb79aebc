use axum::response::{IntoResponse, Response};
use commands::CommandError;
use domain::Invalid;
use http::{HeaderValue, StatusCode, header};

use crate::envelope::{Code, ErrorEnvelope, json};

/// Why a request was not carried out. The one place where reasons become statuses.
#[derive(Debug)]
pub(crate) enum ApiError {
    Command(CommandError),
    /// Something about the request as a whole.
    Malformed(String),
    Unauthorized,
    NoSuchRoute,
    MethodNotAllowed,
    BodyTooSlow,
    BodyTooLarge,
    MediaType(&'static str),
    UriTooLong,
    HeadersTooLarge,
    HeadTooSlow,
    TooManyConnections,
    Panicked,
}

/// Why an answer is an internal error, for the log: never sent.
#[derive(Debug, Clone)]
pub(crate) struct Cause(pub String);

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
            Self::Command(CommandError::Invalid(_) | CommandError::Met { .. }) | Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::Command(CommandError::NotFound) | Self::NoSuchRoute => StatusCode::NOT_FOUND,
            Self::Command(CommandError::Conflict(_) | CommandError::Busy(_)) => StatusCode::CONFLICT,
            Self::Command(CommandError::Unavailable(_) | CommandError::Unknown(_)) | Self::TooManyConnections => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Command(CommandError::Internal(_)) | Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::BodyTooSlow | Self::HeadTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::MediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::UriTooLong => StatusCode::URI_TOO_LONG,
            Self::HeadersTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        }
    }

    const fn code(&self) -> Code {
        match self.status() {
            StatusCode::NOT_FOUND => Code::NotFound,
            StatusCode::UNAUTHORIZED => Code::Unauthorized,
            StatusCode::CONFLICT => Code::Conflict,
            StatusCode::INTERNAL_SERVER_ERROR | StatusCode::SERVICE_UNAVAILABLE => Code::Unexpected,
            _ => Code::Validation,
        }
    }

    fn message(&self) -> String {
        let text = match self {
            Self::Command(error) => return error.to_string(),
            Self::Malformed(text) => text,
            Self::Unauthorized => "unauthorized",
            Self::NoSuchRoute => "no such route: see /docs",
            Self::MethodNotAllowed => "method not allowed: see the Allow header",
            Self::BodyTooSlow => "the body did not arrive in time",
            Self::BodyTooLarge => "the body must not be larger than 1 MiB",
            Self::MediaType(text) => text,
            Self::UriTooLong => "the URI must not be longer than 8 KiB",
            Self::HeadersTooLarge => "the headers must not be more than 64 or larger than 16 KiB together",
            Self::HeadTooSlow => "the headers did not arrive in time",
            Self::TooManyConnections => "too many connections: try again later",
            Self::Panicked => "internal error",
        };
        text.to_owned()
    }

    pub(crate) fn envelope(&self) -> ErrorEnvelope {
        ErrorEnvelope { code: self.code(), message: self.message(), data: () }
    }

    fn cause(&self) -> Option<Cause> {
        match self {
            Self::Command(CommandError::Unavailable(cause) | CommandError::Unknown(cause) | CommandError::Internal(cause)) => {
                Some(Cause(cause.to_string()))
            }
            _ => None,
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = json(self.status(), &self.envelope());
        if let Some(cause) = self.cause() {
            response.extensions_mut().insert(cause);
        }
        let extra = match self.status() {
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "ApiKey")),
            StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, "1")),
            // What is left of the body is not read, so nothing else can follow on this connection.
            StatusCode::REQUEST_TIMEOUT | StatusCode::PAYLOAD_TOO_LARGE => Some((header::CONNECTION, "close")),
            _ => None,
        };
        if let Some((name, value)) = extra {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}
