//! A collector of traces: takes what a service exports over OTLP/HTTP, and understands it.

use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value},
    trace::v1::{Span, status::StatusCode},
};
use prost::Message;
use tokio::{net::TcpListener, task::JoinHandle};

use super::eventually;

/// A span as it arrived.
#[derive(Debug, Clone)]
pub struct Recorded {
    pub name: String,
    pub service: String,
    /// In hexadecimal, as headers and logs have them.
    pub trace_id: String,
    pub span_id: String,
    /// Empty at the beginning of a trace.
    pub parent_id: String,
    /// Trace and span of each.
    pub links: Vec<(String, String)>,
    pub attributes: Vec<(String, String)>,
    pub is_error: bool,
}

impl Recorded {
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    fn of(span: Span, service: &str) -> Self {
        Self {
            name: span.name,
            service: service.to_owned(),
            trace_id: hex(&span.trace_id),
            span_id: hex(&span.span_id),
            parent_id: hex(&span.parent_span_id),
            links: span.links.iter().map(|link| (hex(&link.trace_id), hex(&link.span_id))).collect(),
            attributes: span.attributes.iter().map(text_of).collect(),
            is_error: span.status.is_some_and(|status| status.code() == StatusCode::Error),
        }
    }
}

fn text_of(attribute: &KeyValue) -> (String, String) {
    let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
    let text = match value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    (attribute.key.clone(), text)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

type Spans = Arc<Mutex<Vec<Recorded>>>;

/// Ends with this.
pub struct Collector {
    address: SocketAddr,
    spans: Spans,
    task: JoinHandle<()>,
}

impl Collector {
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port of 127.0.0.1");
        let address = listener.local_addr().expect("its own address");
        let spans = Spans::default();
        let task = tokio::spawn(accept(listener, Arc::clone(&spans)));
        Self { address, spans, task }
    }

    /// What `OTEL_EXPORTER_OTLP_ENDPOINT` names.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits for a span of this name for which the condition holds.
    pub async fn wait_for(&self, name: &str, is_meant: impl Fn(&Recorded) -> bool) -> Recorded {
        let found = || self.spans().into_iter().find(|span| span.name == name && is_meant(span));
        eventually(&format!("a span {name}"), Duration::from_secs(20), async || found()).await
    }

    pub fn spans(&self) -> Vec<Recorded> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, spans: Spans) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let spans = Arc::clone(&spans);
        let answer = service_fn(move |request| take(request, Arc::clone(&spans)));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
    }
}

async fn take(request: Request<Incoming>, spans: Spans) -> Result<Response<Empty<Bytes>>, Infallible> {
    assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/v1/traces"));
    assert_eq!(request.headers()["content-type"], "application/x-protobuf");
    let Ok(body) = request.into_body().collect().await else { return Ok(Response::new(Empty::new())) };
    let exported = ExportTraceServiceRequest::decode(body.to_bytes()).expect("OTLP");
    for of_resource in exported.resource_spans {
        let attributes = of_resource.resource.map(|resource| resource.attributes).unwrap_or_default();
        let service = attributes.iter().map(text_of).find(|(name, _)| name == "service.name").map(|(_, value)| value);
        let service = service.unwrap_or_default();
        let arrived = of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
        let arrived = arrived.map(|span| Recorded::of(span, &service));
        spans.lock().unwrap_or_else(PoisonError::into_inner).extend(arrived);
    }
    Ok(Response::new(Empty::new()))
}
