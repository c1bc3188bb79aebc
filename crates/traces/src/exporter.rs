use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use domain::{Firing, Tracer};
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry::{KeyValue, trace::TracerProvider};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{Sampler as SdkSampler, SdkTracerProvider},
};
use rustls::crypto::ring;
use tokio::runtime::Handle;

use crate::tracer::OpenTelemetryTracer;

/// How long the collector may take to answer.
const EXPORT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long the last spans may take when the service stops.
const STOP_TIME_MAX: Duration = Duration::from_secs(3);
/// How much of an answer of the collector is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Where spans are sent, and which.
#[derive(Debug, Clone)]
pub struct Config {
    /// The URL that takes spans.
    pub endpoint: String,
    /// Headers that the collector asks for.
    pub headers: Vec<(String, String)>,
    /// What the spans are said to come from.
    pub service_name: String,
    pub service_version: String,
    pub resource_attributes: Vec<(String, String)>,
    pub sampler: Sampler,
    pub firing: Firing,
}

/// Which traces are recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    /// Whether the decision of the caller holds, where there is a caller.
    pub is_parent_based: bool,
    /// The share of all others, from 0 to 1.
    pub ratio: f64,
}

#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("traces cannot be exported: {0}")]
    Exporter(#[from] ExporterBuildError),
    #[error("traces cannot be sent over TLS: {0}")]
    Roots(#[from] std::io::Error),
}

/// The spans of this process on their way to the collector.
pub struct Traces {
    provider: SdkTracerProvider,
    firing: Firing,
}

impl Traces {
    /// Begins to send spans, by connections on this runtime. A collector that is away only costs spans.
    pub fn start(config: Config, runtime: Handle) -> Result<Self, SetupError> {
        let headers: HashMap<String, String> = config.headers.into_iter().collect();
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(CollectorClient::new(runtime)?)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(config.endpoint)
            .with_timeout(EXPORT_TIME_MAX)
            .with_headers(headers)
            .build()?;
        let attributes = config.resource_attributes.into_iter().map(|(name, value)| KeyValue::new(name, value));
        let resource = Resource::builder()
            .with_attribute(KeyValue::new("service.version", config.service_version))
            .with_attributes(attributes)
            .with_service_name(config.service_name)
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_sampler(config.sampler.of_sdk())
            .with_resource(resource)
            .build();
        Ok(Self { provider, firing: config.firing })
    }

    pub fn tracer(&self) -> Arc<dyn Tracer> {
        Arc::new(OpenTelemetryTracer { tracer: self.provider.tracer("timer"), firing: self.firing })
    }

    /// Sends what is left. Spans that end later are dropped.
    pub async fn finish(self) {
        // It waits for a thread that sends by means of the runtime, which must go on meanwhile.
        let stop = move || self.provider.shutdown_with_timeout(STOP_TIME_MAX);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(stop).await {
            tracing::warn!(%error, "the last spans could not be sent");
        }
    }
}

impl Sampler {
    fn of_sdk(self) -> SdkSampler {
        let root = match self.ratio {
            all if all >= 1.0 => SdkSampler::AlwaysOn,
            none if none <= 0.0 => SdkSampler::AlwaysOff,
            ratio => SdkSampler::TraceIdRatioBased(ratio),
        };
        if self.is_parent_based { SdkSampler::ParentBased(Box::new(root)) } else { root }
    }
}

/// Sends requests on a runtime of the service, for a thread of the SDK that has none.
#[derive(Debug, Clone)]
struct CollectorClient {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    runtime: Handle,
}

impl CollectorClient {
    fn new(runtime: Handle) -> Result<Self, std::io::Error> {
        let roots = HttpsConnectorBuilder::new().with_provider_and_native_roots(ring::default_provider())?;
        let client = Client::builder(TokioExecutor::new()).build(roots.https_or_http().enable_http1().build());
        Ok(Self { client, runtime })
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let sending = async move {
            let (head, body) = client.request(request.map(Full::new)).await?.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(head, body))
        };
        // The timeout begins within the task: this thread has no clock of a runtime.
        self.runtime.spawn(async { tokio::time::timeout(EXPORT_TIME_MAX, sending).await }).await??
    }
}
