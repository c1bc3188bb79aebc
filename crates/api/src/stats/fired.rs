use commands::{Digest, FiredBuckets};
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

const MICROS_PER_MILLI: f64 = 1_000.0;

/// What happened, by the time at which it did.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FiredStats {
    /// Where the first bucket begins.
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T09:31:00Z")]
    from: Timestamp,
    /// Where the last bucket ends.
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T10:31:00Z")]
    to: Timestamp,
    /// How long a bucket is.
    #[schema(minimum = 60, example = 60)]
    step_seconds: i64,
    #[schema(max_items = 1440)]
    buckets: Vec<FiredBucket>,
}

/// A span of time.
#[derive(Debug, Serialize, ToSchema)]
struct FiredBucket {
    /// Where it begins.
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T10:30:00Z")]
    at: Timestamp,
    /// Timers that were registered.
    #[schema(minimum = 0, example = 130)]
    created: u64,
    /// Calls that ended.
    #[schema(minimum = 0, example = 120)]
    fired: u64,
    /// Timers that ended well.
    #[schema(minimum = 0, example = 118)]
    completed: u64,
    /// Timers that ended as `failed`. Those that ended as `expired` are counted neither here nor in `completed`.
    #[schema(minimum = 0, example = 1)]
    failed: u64,
    /// Calls that failed and will be repeated.
    #[schema(minimum = 0, example = 1)]
    retried: u64,
    /// How late half of the calls were at most, in milliseconds, to within a quarter; `null` where there was none.
    #[schema(required = true, minimum = 0, example = 1.2)]
    lateness_p50_ms: Option<f64>,
    /// How late 99 of 100 calls were at most.
    #[schema(required = true, minimum = 0, example = 4.7)]
    lateness_p99_ms: Option<f64>,
    /// How late the latest call was, exactly.
    #[schema(required = true, minimum = 0, example = 5.031)]
    lateness_max_ms: Option<f64>,
}

impl FiredBucket {
    fn new(at: Timestamp, digest: &Digest) -> Self {
        let Digest { created, fired, completed, failed, retried, lateness_max_micros, lateness, keys_used: _ } = digest;
        let millis = |micros: u64| micros as f64 / MICROS_PER_MILLI;
        // Within its bucket a percentile is not known exactly, but none is beyond the latest.
        let quantile = |quantile| lateness.quantile(quantile).map(|micros| millis(micros.min(*lateness_max_micros)));
        Self {
            at,
            created: *created,
            fired: *fired,
            completed: *completed,
            failed: *failed,
            retried: *retried,
            lateness_p50_ms: quantile(0.5),
            lateness_p99_ms: quantile(0.99),
            lateness_max_ms: (*fired > 0).then(|| millis(*lateness_max_micros)),
        }
    }
}

/// Fired timers by time
///
/// What happened on all nodes, by the minute: the last sixty minutes, unless asked otherwise, up to 24 hours back. This node tells
/// up to the present, other nodes up to about ten seconds ago. In one minute a node counts up to 128 namespaces by themselves, those
/// that came first; what happened in all namespaces together always counts.
#[utoipa::path(
    get, path = "/stats/fired", tag = "stats", operation_id = "firedStats", security(("ApiKey" = [])),
    params(PeriodParameters),
    responses(
        (status = 200, description = "The buckets: `success`.", body = Envelope<FiredStats>),
        (status = 400, description = "A parameter breaks a rule; the message names both.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn fired(Permitted(commands): Permitted, uri: Uri) -> Result<Answer<FiredStats>, ApiError> {
    let (namespaces, request) = PeriodParameters::read(&uri)?;
    let FiredBuckets { period, buckets } = commands.fired_buckets(&namespaces, &request).await?;
    Ok(Answer::ok(
        "success",
        FiredStats {
            from: period.starts_at(),
            to: period.ends_at(),
            step_seconds: period.step_seconds(),
            buckets: buckets.iter().map(|(at, digest)| FiredBucket::new(*at, digest)).collect(),
        },
    ))
}
