use axum::extract::{FromRequestParts, Path};
use domain::{Invalid, TimerId};
use http::request::Parts;

use crate::{Api, error::ApiError};

/// The timer that the path names.
pub(crate) struct PathId(pub TimerId);

impl FromRequestParts<Api> for PathId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        match Path::<String>::from_request_parts(parts, api).await {
            Ok(Path(text)) => Ok(Self(TimerId::parse("id", &text)?)),
            Err(_) => Err(Invalid::new("id", "must be a UUID").into()),
        }
    }
}
