//! The trace that a request belongs to: kept with the timer that it creates, and passed on to the receiver.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use domain::{ActiveSpan, NewSpan, SpanKind, TRACEPARENT, TRACESTATE, TraceContext, Tracer};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, request::Parts};

use crate::{Api, auth::OPEN_PATHS, error::ApiError};

const PARENT: HeaderName = HeaderName::from_static(TRACEPARENT);
const STATE: HeaderName = HeaderName::from_static(TRACESTATE);

/// What is traced of a request.
pub(crate) struct RequestTrace {
    /// What a timer that the request creates belongs to: the span of the request, or what the client sent along.
    pub context: Option<Arc<TraceContext>>,
    /// There only where traces are recorded.
    span: Option<Box<dyn ActiveSpan>>,
}

impl RequestTrace {
    /// Starts the span of a request, where there is a tracer. Requests for the state of the service itself, which come all the time, are
    /// left out.
    pub(crate) fn begin(tracer: Option<&dyn Tracer>, headers: &HeaderMap, method: &Method, route: &str) -> Self {
        let sent = sent_with(headers);
        let Some(tracer) = tracer.filter(|_| !OPEN_PATHS.contains(&route)) else { return Self { context: sent, span: None } };
        let name = format!("{method} {route}");
        let mut span = tracer.start(NewSpan { name, kind: SpanKind::Server, parent: sent.as_deref(), link: None });
        span.set("http.request.method", method.as_str().into());
        span.set("http.route", route.into());
        Self { context: Some(Arc::new(span.context())), span: Some(span) }
    }

    /// The id of the trace, for the log.
    pub(crate) fn id(&self) -> Option<String> {
        self.context.as_ref().map(|context| context.trace_id_text())
    }

    pub(crate) fn span_id(&self) -> Option<String> {
        self.context.as_ref().map(|context| context.span_id_text())
    }

    pub(crate) fn end(self, request_id: &HeaderValue, status: StatusCode) {
        let Some(mut span) = self.span else { return };
        span.set("request.id", request_id.to_str().unwrap_or_default().into());
        span.set("http.response.status_code", i64::from(status.as_u16()).into());
        if status.is_server_error() {
            span.fail(status.to_string());
        }
    }
}

/// The context that a client sent along, if it is one. A request is never refused for it.
fn sent_with(headers: &HeaderMap) -> Option<Arc<TraceContext>> {
    let mut parents = headers.get_all(PARENT).iter();
    let context = TraceContext::parse(parents.next()?.to_str().ok()?)?;
    // Of two it could not be said which is meant.
    if parents.next().is_some() {
        return None;
    }
    let states: Vec<&str> = headers.get_all(STATE).iter().filter_map(|value| value.to_str().ok()).collect();
    Some(Arc::new(context.with_state(&states.join(","))))
}

/// The context of the request, as what surrounds every request has put it there.
pub(crate) struct Traced(pub Option<Arc<TraceContext>>);

impl FromRequestParts<Api> for Traced {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, ApiError> {
        Ok(Self(parts.extensions.get().cloned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const B: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b8-00";

    fn sent(pairs: &[(&'static str, &'static str)]) -> Option<(String, Option<String>)> {
        let pairs = pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let context = sent_with(&pairs.fold(HeaderMap::new(), |mut headers, (name, value)| {
            headers.append(name, value);
            headers
        }))?;
        Some((context.traceparent(), context.tracestate().map(str::to_owned)))
    }

    #[test]
    fn a_context_is_read_from_its_headers() {
        assert_eq!(sent(&[]), None);
        assert_eq!(sent(&[("tracestate", "a=1")]), None);
        assert_eq!(sent(&[("traceparent", "nonsense")]), None);
        assert_eq!(sent(&[("traceparent", A)]), Some((A.to_owned(), None)));
        assert_eq!(sent(&[("traceparent", A), ("traceparent", B)]), None);
        let states = [("traceparent", B), ("tracestate", "a=1"), ("tracestate", "b=2")];
        assert_eq!(sent(&states), Some((B.to_owned(), Some("a=1,b=2".to_owned()))));
    }
}
