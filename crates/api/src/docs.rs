//! `GET /docs`: the description as a page for people, made once from the OpenAPI document.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::header;

use crate::Api;

pub(crate) mod page;

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Documentation
///
/// This description as a page for people.
#[utoipa::path(
    get, path = "/docs", tag = "service", operation_id = "docs",
    responses((status = 200, description = "The page.", body = String, content_type = "text/html"))
)]
pub(crate) async fn docs(State(api): State<Api>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, api.pages.docs.clone()).into_response()
}
