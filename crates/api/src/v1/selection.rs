//! How a request names the timer that is meant.

use axum::extract::{FromRequestParts, Path, path::ErrorKind, rejection::PathRejection};
use domain::{Invalid, Key, Namespace, TimerId};
use http::request::Parts;

use super::named;
use crate::{Api, error::ApiError, object::Object};

/// The names of a timer in a body.
pub(super) const FIELDS: [&str; 3] = ["namespace", "groupId", "timerId"];

/// The timer that a body names.
pub(super) fn timer(object: &Object<'_>) -> Result<TimerId, Invalid> {
    let namespace = namespace(object)?;
    let id = object.string("timerId")?.ok_or_else(|| Invalid::new("timerId", "is required"))?;
    Ok(TimerId::keyed(&namespace, &Key::parse(&id).map_err(named("timerId"))?))
}

/// The namespace, under its newer or its older name; the default one if none is given.
pub(super) fn namespace(object: &Object<'_>) -> Result<Namespace, Invalid> {
    let (name, text) = match (object.string("namespace")?, object.string("groupId")?) {
        (Some(_), Some(_)) => return Err(Invalid::new("groupId", "must not be given together with namespace")),
        (Some(text), None) => ("namespace", text),
        (None, Some(text)) => ("groupId", text),
        (None, None) => return Ok(Namespace::default()),
    };
    Namespace::parse(&text).map_err(named(name))
}

/// The timer that the path names.
pub(crate) struct PathTimer(pub TimerId);

impl FromRequestParts<Api> for PathTimer {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        let Path((group, timer)) = Path::<(String, String)>::from_request_parts(parts, api).await.map_err(unreadable)?;
        let namespace = Namespace::parse(&group).map_err(named("groupId"))?;
        let key = Key::parse(&timer).map_err(named("timerId"))?;
        Ok(Self(TimerId::keyed(&namespace, &key)))
    }
}

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
