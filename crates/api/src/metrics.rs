//! `GET /metrics`: figures for Prometheus. Open, because scrapers cannot send our header; they name no tenant.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::header;

use crate::Api;

/// Metrics
///
/// Figures in the text format of Prometheus. Not JSON.
#[utoipa::path(
    get, path = "/metrics", tag = "service", operation_id = "metrics",
    responses((status = 200, description = "The figures.", body = String, content_type = "text/plain"))
)]
pub(crate) async fn metrics(State(api): State<Api>) -> Response {
    let text = (api.config.metrics)();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// Describes the metrics of this crate to whatever exports them.
pub fn describe() {
    ::metrics::describe_counter!("timer_http_requests_total", "Requests answered, by route, method and status.");
    ::metrics::describe_histogram!(
        "timer_http_request_duration_seconds",
        ::metrics::Unit::Seconds,
        "Time from the end of the headers to the answer, by route."
    );
    ::metrics::describe_gauge!("timer_http_connections", "Open connections of the API.");
    ::metrics::describe_counter!(
        "timer_http_connections_refused_total",
        "Connections beyond the limits, of which only /healthz and /ping are answered."
    );
    ::metrics::describe_counter!("timer_http_heads_refused_total", "Requests refused before they reached a route, by status.");
}
