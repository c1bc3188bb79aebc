use commands::DueBuckets;
use domain::Timestamp;
use http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use super::parameters::PeriodParameters;
use crate::{
    auth::Permitted,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
};

/// What is pending, by the time at which it is due.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DueStats {
    /// Where the first bucket begins.
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T10:30:00Z")]
    from: Timestamp,
    /// Where the last bucket ends.
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T11:30:00Z")]
    to: Timestamp,
    /// How long a bucket is.
    #[schema(minimum = 60, example = 60)]
    step_seconds: i64,
    #[schema(max_items = 1440)]
    buckets: Vec<DueBucket>,
    /// Whether a part of the timers was counted and the rest inferred from it, because there are very many.
    #[schema(example = false)]
    pending_is_estimate: bool,
    /// Whether no bucket is missing; the last ones are where there was no time to count them.
    #[schema(example = true)]
    complete: bool,
}

/// A span of time.
#[derive(Debug, Serialize, ToSchema)]
struct DueBucket {
    /// Where it begins.
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T10:30:00Z")]
    at: Timestamp,
    /// How many timers are pending whose next attempt is due in it.
    #[schema(minimum = 0, example = 17)]
    pending: u64,
}

/// Due timers by time
///
/// How many timers are pending, by the time at which their next attempt is due: from now on, for sixty buckets of a minute, unless
/// asked otherwise. The answer may be up to a second old. It is counted within a quarter of a second, and says what it is where
/// that is not enough.
#[utoipa::path(
    get, path = "/stats/due", tag = "stats", operation_id = "dueStats", security(("ApiKey" = [])),
    params(PeriodParameters),
    responses(
        (status = 200, description = "The buckets: `success`.", body = Envelope<DueStats>),
        (status = 400, description = "A parameter breaks a rule; the message names both.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn due(Permitted(commands): Permitted, uri: Uri) -> Result<Answer<DueStats>, ApiError> {
    let (namespaces, request) = PeriodParameters::read(&uri)?;
    let DueBuckets { period, buckets, is_estimate, is_complete } = commands.due_buckets(&namespaces, &request).await?;
    Ok(Answer::ok(
        "success",
        DueStats {
            from: period.starts_at(),
            to: period.ends_at(),
            step_seconds: period.step_seconds(),
            buckets: buckets.into_iter().map(|(at, pending)| DueBucket { at, pending }).collect(),
            pending_is_estimate: is_estimate,
            complete: is_complete,
        },
    ))
}
