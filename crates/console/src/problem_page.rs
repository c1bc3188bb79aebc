//! The page that says what went wrong.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use maud::{Markup, html};

use crate::{
    Shared, frame,
    preferences::Preferences,
    problem::{Problem, Refused},
    visitor::Visitor,
};

/// The answer with the page of its problem, if it is one.
pub(crate) fn worded(mut response: Response, visitor: Option<&Visitor>, shared: &Arc<Shared>) -> Response {
    let Some(Refused(problem)) = response.extensions_mut().remove() else { return response };
    if problem.status().is_server_error() {
        tracing::warn!(status = problem.status().as_u16(), problem = ?problem, "a page of the console could not be shown");
    }
    let body = described(&problem);
    let page = match visitor {
        Some(visitor) => frame::page(visitor, None, problem.title(), body),
        None => frame::bare(shared, &Preferences::default(), problem.title(), body),
    };
    let mut page = (problem.status(), page).into_response();
    if let Problem::TooManyRequests(wait) = *problem {
        page.headers_mut().insert(header::RETRY_AFTER, (wait.as_secs() + 1).into());
    }
    if problem.retries_itself() {
        page.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        page.headers_mut().insert(header::REFRESH, HeaderValue::from_static("5"));
    }
    page
}

fn described(problem: &Problem) -> Markup {
    html! {
        section.card role="alert" {
            div.empty {
                h1 { (problem.title()) }
                p { (problem.text()) }
                @if let Some(help) = problem.help() { p.muted { (help) } }
            }
        }
    }
}
