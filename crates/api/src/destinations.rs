//! `GET /destinations`: the receivers that were called of late, and how they are.

use commands::{DestinationHealth, DestinationStatus, Destinations};
use http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::Permitted,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    stats::parameters::NamespaceParameters,
};

const MICROS_PER_MILLI: f64 = 1_000.0;

/// The receivers that were called of late.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Destinations)]
pub(crate) struct DestinationsView {
    /// By name; at most 1,000, those that were called last.
    #[schema(max_items = 1000)]
    destinations: Vec<DestinationView>,
    /// Whether these are all.
    #[schema(example = true)]
    complete: bool,
}

/// How a receiver is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DestinationHealth)]
#[serde(rename_all = "lowercase")]
enum HealthWord {
    Good,
    Slow,
    Failing,
    Silent,
}

/// A receiver, as all nodes saw it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Destination)]
struct DestinationView {
    /// `host:port`, or a NATS subject.
    #[schema(example = "shop.example:443")]
    destination: String,
    /// `failing`: the last five calls failed, or at least half of those of the last minute (of the last ten where there was none in
    /// the last). `slow`: half of its calls take longer than a second. `silent`: no call ended within ten minutes. Otherwise `good`.
    health: HealthWord,
    /// Calls under way.
    #[schema(minimum = 0, example = 2)]
    in_flight: u32,
    /// Calls that delivered within the last minute.
    #[schema(minimum = 0, example = 40)]
    ok_1m: u32,
    /// Calls that failed within the last minute.
    #[schema(minimum = 0, example = 0)]
    failed_1m: u32,
    /// Calls that delivered within the last ten minutes.
    #[schema(minimum = 0, example = 390)]
    ok_10m: u32,
    /// Calls that failed within the last ten minutes.
    #[schema(minimum = 0, example = 1)]
    failed_10m: u32,
    /// How long half of the calls of the last ten minutes took at most, in milliseconds, to within a quarter.
    #[schema(required = true, minimum = 0, example = 12.5)]
    p50_ms: Option<f64>,
    /// How long 99 of 100 calls took at most.
    #[schema(required = true, minimum = 0, example = 81.0)]
    p99_ms: Option<f64>,
    /// Failed calls since the last one that delivered.
    #[schema(minimum = 0, example = 0)]
    failures_in_a_row: u32,
    /// Why the last failed call failed.
    #[schema(required = true, example = "answered 503 Service Unavailable")]
    last_error: Option<String>,
    /// Failed calls that are to be repeated, as far as they were not canceled or changed since.
    #[schema(minimum = 0, example = 0)]
    pending_retries: u32,
}

impl From<DestinationHealth> for HealthWord {
    fn from(health: DestinationHealth) -> Self {
        match health {
            DestinationHealth::Good => Self::Good,
            DestinationHealth::Slow => Self::Slow,
            DestinationHealth::Failing => Self::Failing,
            DestinationHealth::Silent => Self::Silent,
        }
    }
}

impl From<DestinationStatus> for DestinationView {
    fn from(status: DestinationStatus) -> Self {
        let millis = |micros: Option<u64>| micros.map(|micros| micros as f64 / MICROS_PER_MILLI);
        Self {
            destination: status.name,
            health: status.health.into(),
            in_flight: status.in_flight,
            ok_1m: status.delivered_1m,
            failed_1m: status.failed_1m,
            ok_10m: status.delivered_10m,
            failed_10m: status.failed_10m,
            p50_ms: millis(status.took_p50_micros),
            p99_ms: millis(status.took_p99_micros),
            failures_in_a_row: status.failures_in_a_row,
            last_error: status.last_error,
            pending_retries: status.pending_retries,
        }
    }
}

/// Destinations
///
/// The receivers that were called within the last day, as all nodes saw them: this node up to the present, other nodes up to about ten
/// seconds ago. Names have no path and no query. A key that is bound to namespaces sees the calls of those.
#[utoipa::path(
    get, path = "/destinations", tag = "stats", operation_id = "listDestinations", security(("ApiKey" = [])),
    params(NamespaceParameters),
    responses(
        (status = 200, description = "The receivers: `success`.", body = Envelope<DestinationsView>),
        (status = 400, description = "A parameter breaks a rule; the message names both.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn destinations(Permitted(commands): Permitted, uri: Uri) -> Result<Answer<DestinationsView>, ApiError> {
    let namespaces = NamespaceParameters::read(&uri)?;
    let Destinations { destinations, is_complete } = commands.destinations(&namespaces).await?;
    let destinations = destinations.into_iter().map(DestinationView::from).collect();
    Ok(Answer::ok("success", DestinationsView { destinations, complete: is_complete }))
}
