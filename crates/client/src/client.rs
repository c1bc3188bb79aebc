use std::{env, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Uri};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, ResponseFuture, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::crypto::ring;

use crate::{
    Error,
    keys::Keys,
    operations::{Groups, Operations},
    service::Stats,
    timers::Timers,
};

const TIMEOUT: Duration = Duration::from_secs(10);
const RETRIES: u32 = 3;
const URL_OF_THIS_MACHINE: &str = "http://127.0.0.1:8080";

/// A client of one service. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Client(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub http: Transport,
    /// Without a slash at its end.
    pub base: String,
    pub api_key: HeaderValue,
    pub timeout: Duration,
    pub retries: u32,
    pub observe: Option<Observe>,
    pub trace: Option<Trace>,
}

/// Is told of every try: method, URL, and the status or why there was none.
pub(crate) type Observe = Arc<dyn Fn(&str, &str, Result<u16, &str>) + Send + Sync>;

/// The headers of the current trace context.
pub(crate) type Trace = Arc<dyn Fn() -> HeaderMap + Send + Sync>;

/// The roots of trust of the machine are read only where they are needed.
pub(crate) enum Transport {
    Plain(legacy::Client<HttpConnector, Full<Bytes>>),
    Tls(legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

impl Transport {
    pub fn send(&self, request: http::Request<Full<Bytes>>) -> ResponseFuture {
        match self {
            Self::Plain(client) => client.request(request),
            Self::Tls(client) => client.request(request),
        }
    }
}

/// How a client is made.
#[derive(Clone)]
pub struct Builder {
    url: String,
    api_key: String,
    timeout: Duration,
    retries: u32,
    observe: Option<Observe>,
    trace: Option<Trace>,
}

impl Builder {
    /// The deadline of a call over all its tries; 10 s unless given.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How often a request is repeated at most; 3 times unless given.
    #[must_use]
    pub const fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Is told of every try: method, URL, and the status or why there was none.
    #[must_use]
    pub fn observe(mut self, observe: impl Fn(&str, &str, Result<u16, &str>) + Send + Sync + 'static) -> Self {
        self.observe = Some(Arc::new(observe));
        self
    }

    /// The trace context that creates carry, as W3C Trace Context writes it: `traceparent` and `tracestate`. With OpenTelemetry, let its
    /// propagator inject the current context into the headers.
    #[must_use]
    pub fn trace(mut self, trace: impl Fn() -> HeaderMap + Send + Sync + 'static) -> Self {
        self.trace = Some(Arc::new(trace));
        self
    }

    pub fn build(self) -> Result<Client, Error> {
        let base = self.url.trim_end_matches('/').to_owned();
        let uri: Uri = base.parse().map_err(|_| not_a_url())?;
        // A name and a password in it would mean nothing to the service, and be shown with the URL.
        if uri.authority().is_none_or(|authority| authority.as_str().contains('@')) || uri.query().is_some() {
            return Err(not_a_url());
        }
        let mut plain = HttpConnector::new();
        plain.set_nodelay(true);
        let client = legacy::Client::builder(TokioExecutor::new());
        let http = match uri.scheme_str() {
            Some("http") => Transport::Plain(client.build(plain)),
            Some("https") => {
                plain.enforce_http(false);
                let roots = HttpsConnectorBuilder::new().with_provider_and_native_roots(ring::default_provider());
                let roots = roots.map_err(|error| Error::Usage(format!("this machine has no roots of trust: {error}")))?;
                Transport::Tls(client.build(roots.https_only().enable_http1().wrap_connector(plain)))
            }
            _ => return Err(not_a_url()),
        };
        let mut api_key =
            HeaderValue::from_str(&self.api_key).map_err(|_| Error::Usage("the API key is not fit for a header".to_owned()))?;
        api_key.set_sensitive(true);
        let Self { timeout, retries, observe, trace, .. } = self;
        Ok(Client(Arc::new(Shared { http, base, api_key, timeout, retries, observe, trace })))
    }
}

fn not_a_url() -> Error {
    Error::Usage("the URL of the service must be such as http://127.0.0.1:8080 or https://timers.example.com".to_owned())
}

impl Client {
    pub fn builder(url: impl Into<String>, api_key: impl Into<String>) -> Builder {
        Builder { url: url.into(), api_key: api_key.into(), timeout: TIMEOUT, retries: RETRIES, observe: None, trace: None }
    }

    pub fn new(url: impl Into<String>, api_key: impl Into<String>) -> Result<Self, Error> {
        Self::builder(url, api_key).build()
    }

    /// The service that `TIMER_URL` names, or the one on this machine, with the key in `TIMER_API_KEY` or `API_KEY`.
    pub fn from_env() -> Result<Self, Error> {
        let read = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let api_key = read("TIMER_API_KEY").or_else(|| read("API_KEY"));
        let api_key = api_key.ok_or_else(|| Error::Usage("TIMER_API_KEY is required".to_owned()))?;
        Self::new(read("TIMER_URL").unwrap_or_else(|| URL_OF_THIS_MACHINE.to_owned()), api_key)
    }

    /// Where the service is.
    pub fn url(&self) -> &str {
        &self.0.base
    }

    pub const fn timers(&self) -> Timers<'_> {
        Timers { client: self, revision: None }
    }

    pub const fn groups(&self) -> Groups<'_> {
        Groups(self)
    }

    pub const fn operations(&self) -> Operations<'_> {
        Operations(self)
    }

    pub const fn stats(&self) -> Stats<'_> {
        Stats(self)
    }

    pub const fn keys(&self) -> Keys<'_> {
        Keys(self)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.0.base).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_url_of_a_service_is_taken_and_the_key_is_never_shown() {
        for url in ["", "127.0.0.1:8080", "ftp://a", "http://user:secret@a", "http://a/?b=c", "/timers"] {
            assert!(matches!(Client::new(url, "k"), Err(Error::Usage(_))), "{url}");
        }
        assert!(matches!(Client::new("http://a", "a\nb"), Err(Error::Usage(_))));
        let client = Client::new("http://a:1/base/", "Tr0ub4dor").unwrap();
        assert_eq!(format!("{client:?}"), r#"Client { url: "http://a:1/base", .. }"#);
    }
}
