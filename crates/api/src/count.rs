//! `GET /timers/count`: how many timers match.

use http::Uri;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    auth::Permitted,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    filter::{self, FilterParameters},
};

/// How many timers match.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Count)]
pub(crate) struct CountView {
    #[schema(minimum = 0, example = 2)]
    total: u64,
    /// Whether `total` is an estimate: counting all of them would have taken too long.
    #[schema(example = false)]
    total_is_estimate: bool,
}

/// Nothing but the filter.
#[derive(Deserialize)]
struct NoMore {}

/// Count timers
///
/// How many timers match a filter: exactly where that takes less than a quarter of a second, else an estimate. Beside the named parameters,
/// `metadata.PATH=VALUE` asks about the metadata, as in a list.
#[utoipa::path(
    get, path = "/timers/count", tag = "timers", operation_id = "countTimers", security(("ApiKey" = [])),
    params(FilterParameters),
    responses(
        (status = 200, description = "The count: `success`.", body = Envelope<CountView>),
        (status = 400, description = "A parameter breaks a rule; the message names both.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn count(Permitted(commands): Permitted, uri: Uri) -> Result<Answer<CountView>, ApiError> {
    let (filter, NoMore {}) = filter::read(&uri)?;
    let count = commands.count(&filter).await?;
    Ok(Answer::ok("success", CountView { total: count.timers, total_is_estimate: count.is_estimate }))
}
