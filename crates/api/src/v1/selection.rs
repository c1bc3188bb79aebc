//! How a request names the timer that is meant.

use axum::extract::{FromRequestParts, Path, path::ErrorKind, rejection::PathRejection};
use domain::{Given, Invalid, Key, Namespace, TimerId};
use http::request::Parts;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{Api, error::ApiError, request};

/// The timer that is meant.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
#[schema(as = V1TimerSelection)]
pub(crate) struct TimerSelection<'a> {
    /// `default` unless given.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "notifications")]
    #[serde(default)]
    namespace: Given<'a, Namespace>,
    /// The older name of `namespace`; not together with it.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    #[serde(default)]
    group_id: Given<'a, Namespace>,
    /// The `id` that the timer was created with.
    #[schema(value_type = String, required = true, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "user-reminder-123")]
    #[serde(default)]
    timer_id: Given<'a, Key>,
}

/// The timer that a body names, which says nothing else.
pub(super) fn read(text: &str) -> Result<TimerId, ApiError> {
    let TimerSelection { namespace, group_id, timer_id } = request::read(text)?;
    Ok(timer(&namespace, &group_id, &timer_id)?)
}

/// The timer that these members name.
pub(super) fn timer(
    namespace: &Given<'_, Namespace>,
    group_id: &Given<'_, Namespace>,
    timer_id: &Given<'_, Key>,
) -> Result<TimerId, Invalid> {
    let namespace = either_namespace(namespace, group_id)?;
    Ok(TimerId::keyed(&namespace, &timer_id.required("timerId")?))
}

/// The namespace, under its newer or its older name; the default one if none is given.
pub(super) fn either_namespace(namespace: &Given<'_, Namespace>, group_id: &Given<'_, Namespace>) -> Result<Namespace, Invalid> {
    if namespace.is_given() && group_id.is_given() {
        return Err(Invalid::new("groupId", "must not be given together with namespace"));
    }
    match namespace.read("namespace")? {
        Some(namespace) => Ok(namespace),
        None => Ok(group_id.read("groupId")?.unwrap_or_default()),
    }
}

/// The timer that the path names.
pub(crate) struct PathTimer(pub TimerId);

impl FromRequestParts<Api> for PathTimer {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        let Path((group, timer)) = Path::<(String, String)>::from_request_parts(parts, api).await.map_err(unreadable)?;
        let namespace = Namespace::parse(&group).map_err(|invalid| invalid.named("groupId"))?;
        let key = Key::parse(&timer).map_err(|invalid| invalid.named("timerId"))?;
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
