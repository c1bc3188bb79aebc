//! `GET /metrics`: metrics for Prometheus. Open, because scrapers cannot send our header; they name no tenant.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use domain::Metric;
use http::header;

use crate::Api;

/// Metrics
///
/// Metrics in the text format of Prometheus. Not JSON.
#[utoipa::path(
    get, path = "/metrics", tag = "service", operation_id = "metrics",
    responses((status = 200, description = "The metrics.", body = String, content_type = "text/plain"))
)]
pub(crate) async fn metrics(State(api): State<Api>) -> Response {
    let text = (api.config.metrics)();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// The metrics of this crate.
pub const METRICS: &[Metric] = &[
    Metric::counter("timer_http_requests_total", "Requests answered, by route, method and status.").by(&[
        ("route", &["/metrics"]),
        ("method", &["GET"]),
        ("status", &["200"]),
    ]),
    Metric::histogram("timer_http_request_duration_seconds", "Time from the end of the headers to the answer, by route.")
        .by(&[("route", &["/metrics"])]),
    Metric::gauge("timer_http_connections", "Open connections of the API."),
    Metric::counter(
        "timer_http_connections_refused_total",
        "Connections beyond the limits that were closed at once or answered with 503; /healthz and /ping are answered all the same.",
    ),
    Metric::counter("timer_http_heads_refused_total", "Requests refused before they reached a route, by status.")
        .by(&[("status", &["400", "408", "414", "431"])]),
];
