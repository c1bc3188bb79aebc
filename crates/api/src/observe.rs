//! What surrounds every request: its id, its metrics, its log line when something is wrong, a net under panics, and the words in
//! which its dialect refuses it.

use std::{panic::AssertUnwindSafe, sync::Arc};

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use http::{HeaderName, HeaderValue, header};
use uuid::Uuid;

use crate::{
    Api, auth, compression,
    dialect::ApiDialect,
    error::{ApiError, PartlyFailed, Refused},
    limits,
    trace::RequestTrace,
};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

pub(crate) async fn around(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let started = api.unrestricted.clock.monotonic();
    let id = request_id(&request);
    let method = request.method().clone();
    let dialect = ApiDialect::of(request.uri().path());
    let accept_encoding: Vec<HeaderValue> = request.headers().get_all(header::ACCEPT_ENCODING).iter().cloned().collect();
    // Refused by the listener already, and counted there.
    if let Some(Refused(error)) = request.extensions_mut().remove() {
        let mut response = dialect.refusal(&error, api.unrestricted.clock.now());
        response.headers_mut().insert(REQUEST_ID, id);
        return response;
    }
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("unmatched", MatchedPath::as_str);
    let trace = RequestTrace::begin(api.config.tracer.as_deref(), request.headers(), &method, route);
    if let Some(context) = &trace.context {
        request.extensions_mut().insert(Arc::clone(context));
    }

    let mut response = match AssertUnwindSafe(auth::check(&api, request, next)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => ApiError::Internal.into_response(),
    };
    let refused = response.extensions_mut().remove::<Refused>().map(|Refused(error)| error);
    if let Some(error) = &refused {
        response = dialect.refusal(error, api.unrestricted.clock.now());
    }
    let status = response.status();
    let request_id = || id.to_str().unwrap_or_default();
    if refused.as_ref().is_some_and(|error| error.is_a_limit_of_its_key()) {
        tracing::debug!(request.id = request_id(), %method, route, "a stream was refused: too many are open");
    } else if status.is_server_error() {
        let cause = refused.and_then(|error| error.cause()).unwrap_or_default();
        let (trace_id, span_id) = (trace.id(), trace.span_id());
        tracing::error!(request.id = request_id(), trace_id, span_id, %method, route, status = status.as_u16(), cause, "a request failed");
    }
    if let Some(PartlyFailed(cause)) = response.extensions_mut().remove() {
        let (trace_id, span_id) = (trace.id(), trace.span_id());
        tracing::error!(request.id = request_id(), trace_id, span_id, %method, route, status = status.as_u16(), cause, "a part of a request failed");
    }
    trace.end(&id, status);
    let took = api.unrestricted.clock.monotonic().saturating_sub(started);
    api.request_metrics.answered(route, &method, status, took);
    response.headers_mut().insert(REQUEST_ID, id);
    if compression::is_worthwhile(&response) {
        // Boxed, because the size of a future is moved about with every request.
        response = Box::pin(compression::compressed(response, &accept_encoding)).await;
    }
    response
}

/// The caller's own id of the request if it is fit to be logged and sent back, else a new one.
fn request_id(request: &Request) -> HeaderValue {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.:/+=".contains(&b);
    let sane = |value: &&HeaderValue| {
        !value.is_empty() && value.len() <= limits::REQUEST_ID_CHARS_MAX && value.as_bytes().iter().all(|b| is_plain(*b))
    };
    if let Some(given) = request.headers().get(REQUEST_ID).filter(sane) {
        return given.clone();
    }
    let text = &mut Uuid::encode_buffer();
    HeaderValue::from_str(Uuid::new_v4().hyphenated().encode_lower(text)).unwrap_or(HeaderValue::from_static("none"))
}
