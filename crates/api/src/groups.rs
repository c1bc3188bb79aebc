//! `GET` and `DELETE /groups/{namespace}/{group}`: counts and cancels timers that belong together.

use axum::extract::{FromRequestParts, Path};
use commands::{CanceledMany, GroupCount};
use domain::{Group, Invalid, Namespace, Status};
use http::request::Parts;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    Api,
    auth::Permitted,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
};

/// The group that the path names.
pub(crate) struct PathGroup {
    namespace: Namespace,
    group: Group,
}

impl FromRequestParts<Api> for PathGroup {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        match Path::<(String, String)>::from_request_parts(parts, api).await {
            Ok(Path((namespace, group))) => Ok(Self { namespace: Namespace::parse(&namespace)?, group: Group::parse(&group)? }),
            Err(_) => Err(Invalid::new("namespace and group", "must be valid UTF-8").into()),
        }
    }
}

/// How many timers of a group there are.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GroupCount)]
pub(crate) struct GroupView {
    #[schema(value_type = String, example = "default")]
    namespace: Namespace,
    #[schema(value_type = String, example = "campaign-7")]
    group: Group,
    /// How many there are in all, whatever their status.
    #[schema(minimum = 0, example = 12)]
    total: u64,
    /// Whether there are more than 100,000, of which only so many were counted.
    #[schema(example = false)]
    total_is_estimate: bool,
    by_status: ByStatus,
}

/// For every status, how many there are.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CountByStatus)]
pub(crate) struct ByStatus {
    #[schema(minimum = 0, example = 10)]
    pending: u64,
    #[schema(minimum = 0, example = 0)]
    executing: u64,
    #[schema(minimum = 0, example = 2)]
    completed: u64,
    #[schema(minimum = 0, example = 0)]
    failed: u64,
    #[schema(minimum = 0, example = 0)]
    canceled: u64,
    #[schema(minimum = 0, example = 0)]
    paused: u64,
    #[schema(minimum = 0, example = 0)]
    expired: u64,
}

impl GroupView {
    fn of(PathGroup { namespace, group }: PathGroup, count: &GroupCount) -> Self {
        let of = |status| count.by_status.get(&status).copied().unwrap_or_default();
        Self {
            namespace,
            group,
            total: count.timers(),
            total_is_estimate: count.is_capped,
            by_status: ByStatus {
                pending: of(Status::Pending),
                executing: of(Status::Executing),
                completed: of(Status::Completed),
                failed: of(Status::Failed),
                canceled: of(Status::Canceled),
                paused: of(Status::Paused),
                expired: of(Status::Expired),
            },
        }
    }
}

/// How many timers of a group were canceled.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CanceledGroup)]
pub(crate) struct CanceledView {
    /// How many had not ended.
    #[schema(minimum = 0, example = 10)]
    matched: usize,
    /// How many of them were canceled; the remaining ones were being delivered, or had ended by then.
    #[schema(minimum = 0, example = 10)]
    canceled: usize,
}

/// Count a group
///
/// How many timers of a group there are, by their status. A group that is not known has none.
#[utoipa::path(
    get, path = "/groups/{namespace}/{group}", tag = "timers", operation_id = "countGroup", security(("ApiKey" = [])),
    params(
        ("namespace" = String, Path, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", description = "The namespace of the timers; percent-encoded."),
        ("group" = String, Path, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", description = "The `group` of the timers; percent-encoded."),
    ),
    responses(
        (status = 200, description = "The counts: `success`.", body = Envelope<GroupView>),
        (status = 400, description = "A name breaks a rule; the message names both.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn count(Permitted(commands): Permitted, path: PathGroup) -> Result<Answer<GroupView>, ApiError> {
    let count = commands.count_group(&path.namespace, &path.group).await?;
    Ok(Answer::ok("success", GroupView::of(path, &count)))
}

/// Cancel a group
///
/// Cancels the timers of a group that wait. Once this has answered 200, none of those ever fires. Timers that are being delivered
/// are left alone, and so may be those that are registered meanwhile. Repeating it is safe.
#[utoipa::path(
    delete, path = "/groups/{namespace}/{group}", tag = "timers", operation_id = "cancelGroup", security(("ApiKey" = [])),
    params(
        ("namespace" = String, Path, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", description = "The namespace of the timers; percent-encoded."),
        ("group" = String, Path, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", description = "The `group` of the timers; percent-encoded."),
    ),
    responses(
        (status = 200, description = "They are canceled, perhaps none: `group canceled successfully`.", body = Envelope<CanceledView>),
        (status = 400, description = "A name breaks a rule; the message names both.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn cancel(Permitted(commands): Permitted, path: PathGroup) -> Result<Answer<CanceledView>, ApiError> {
    let CanceledMany { matched, canceled } = commands.cancel_group(&path.namespace, &path.group).await?;
    Ok(Answer::ok("group canceled successfully", CanceledView { matched, canceled }))
}

#[cfg(test)]
mod tests;
