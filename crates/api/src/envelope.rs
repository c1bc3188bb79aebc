use std::borrow::Cow;

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{error::ApiError, etag::etag};

/// What an answer means, beside its HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    Success = 0,
    Unexpected = 1,
    Validation = 2,
    NotFound = 3,
    Unauthorized = 4,
    TooManyRequests = 5,
    Conflict = 6,
}

impl Code {
    pub(crate) const fn of(status: StatusCode) -> Self {
        match status {
            StatusCode::NOT_FOUND => Self::NotFound,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Self::Unauthorized,
            StatusCode::TOO_MANY_REQUESTS => Self::TooManyRequests,
            StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED => Self::Conflict,
            StatusCode::INTERNAL_SERVER_ERROR | StatusCode::SERVICE_UNAVAILABLE => Self::Unexpected,
            _ => Self::Validation,
        }
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

/// The shape of every answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Envelope<T> {
    /// 0: success.
    #[schema(value_type = i32, minimum = 0, maximum = 6, example = 0)]
    pub code: Code,
    /// What happened, for people.
    #[schema(value_type = String)]
    pub message: Cow<'static, str>,
    pub data: T,
}

/// The answer to a request that was not carried out.
#[derive(Debug, Serialize, ToSchema)]
#[schema(description = "The answer to a request that was not carried out. `code`: 1 unexpected, 2 validation, 3 not found, \
    4 unauthorized, 5 too many requests, 6 conflict.")]
pub(crate) struct ErrorEnvelope {
    #[schema(value_type = i32, minimum = 1, maximum = 6, example = 2)]
    pub code: Code,
    /// What is wrong, in one sentence that names the field.
    #[schema(example = "execute_at must be in the future")]
    pub message: String,
    /// Always `null`.
    #[schema(value_type = crate::schema::Nothing)]
    pub data: (),
}

impl ErrorEnvelope {
    pub(crate) fn of(error: &ApiError) -> Self {
        Self { code: Code::of(error.status()), message: error.message(), data: () }
    }
}

/// A successful answer on its way out.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    pub status: StatusCode,
    pub message: &'static str,
    pub data: T,
    /// The revision of the timer that it tells of, if it tells of one.
    pub revision: Option<u32>,
}

impl<T> Answer<T> {
    pub(crate) const fn ok(message: &'static str, data: T) -> Self {
        Self { status: StatusCode::OK, message, data, revision: None }
    }

    pub(crate) const fn created(message: &'static str, data: T) -> Self {
        Self { status: StatusCode::CREATED, message, data, revision: None }
    }

    /// The same, with the revision of its timer as `ETag`.
    pub(crate) fn with_revision(self, revision: u32) -> Self {
        Self { revision: Some(revision), ..self }
    }
}

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        let mut response = json(self.status, &Envelope { code: Code::Success, message: self.message.into(), data: self.data });
        if let Some(revision) = self.revision {
            response.headers_mut().insert(header::ETAG, etag(revision));
        }
        response
    }
}

/// Writes the body of an answer. JSON that was checked on its way in cannot fail to be written; should it, the client learns no more
/// than that.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    // Enough for one timer; what is larger grows.
    let mut text = Vec::with_capacity(512);
    if let Err(error) = serde_json::to_writer(&mut text, body) {
        tracing::error!(%error, "an answer could not be written");
        return ApiError::Internal.into_response();
    }
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
