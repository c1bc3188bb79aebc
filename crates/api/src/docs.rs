//! `GET /docs`: the description as a page for people, made once from the OpenAPI document.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, header};

use crate::Api;

mod book_url;
mod examples;
pub(crate) mod page;
mod text;

pub use book_url::BookUrl;

/// Documentation
///
/// This description as a page for people.
#[utoipa::path(
    get, path = "/docs", tag = "service", operation_id = "docs",
    responses((status = 200, description = "The page.", body = String, content_type = "text/html"))
)]
pub(crate) async fn docs(State(api): State<Api>, asked: HeaderMap) -> Response {
    let headers = [
        (header::CONTENT_SECURITY_POLICY, api.pages.docs_policy.as_str()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, api.pages.docs.answer(&asked, "text/html; charset=utf-8")).into_response()
}
