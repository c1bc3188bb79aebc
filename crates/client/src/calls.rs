//! One request and its answer, with its repetitions.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use serde::Deserialize;
use tokio::time::Instant;

use crate::{Client, Error, Json, Refusal, pauses};

/// The largest answer that is read whole: a page of timers has no payloads, one timer a small one.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What is asked of the service.
#[derive(Debug, Clone)]
pub struct Request {
    method: Method,
    /// The path with its query.
    path: String,
    body: Option<String>,
    headers: Vec<(header::HeaderName, String)>,
    is_repeatable: bool,
    is_traced: bool,
    timeout: Option<Duration>,
}

/// A successful answer.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    /// What happened, for people.
    pub message: String,
    /// Exactly as the service sent it.
    pub data: Json,
}

#[derive(Deserialize)]
struct Envelope {
    code: u8,
    message: String,
    #[serde(default = "Json::null")]
    data: Json,
}

impl Request {
    /// A request. Everything but a `POST` may be repeated.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        let is_repeatable = method != Method::POST;
        Self { method, path: path.into(), body: None, headers: Vec::new(), is_repeatable, is_traced: false, timeout: None }
    }

    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    #[must_use]
    pub fn json(mut self, body: String) -> Self {
        self.body = Some(body);
        self
    }

    #[must_use]
    pub fn header(mut self, name: header::HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Says that carrying it out twice is the same as once.
    #[must_use]
    pub const fn repeatable(mut self) -> Self {
        self.is_repeatable = true;
        self
    }

    /// Only with this revision of the timer. It is not repeated then: its own first try would be what is in the way.
    #[must_use]
    pub fn if_revision(mut self, revision: u32) -> Self {
        self.is_repeatable = false;
        self.header(header::IF_MATCH, format!("\"{revision}\""))
    }

    /// Carries the trace context of the program.
    #[must_use]
    pub(crate) const fn traced(mut self) -> Self {
        self.is_traced = true;
        self
    }

    /// Another deadline than that of the client.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

impl Client {
    /// Makes any request of the native API, with the repetitions that it permits.
    pub async fn call(&self, request: &Request) -> Result<Answer, Error> {
        let deadline = Instant::now() + request.timeout.unwrap_or(self.0.timeout);
        let retries = if request.is_repeatable { self.0.retries } else { 0 };
        let mut tried = 0;
        loop {
            // One that hangs must leave time for another try.
            let left = deadline.saturating_duration_since(Instant::now());
            let time = if tried < retries { left / 2 } else { left };
            let error = match self.once(request, time).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let said = error.refusal().and_then(|refusal| refusal.retry_after);
            let pause = pauses::pause(tried, said, rand::random());
            if tried >= retries || !error.is_passing() || Instant::now() + pause >= deadline {
                return Err(error);
            }
            tried += 1;
            tokio::time::sleep(pause).await;
        }
    }

    async fn once(&self, request: &Request, time: Duration) -> Result<Answer, Error> {
        let answer = tokio::time::timeout(time, async {
            let (head, body) = self.send(request).await?;
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let text = body.map_err(|error| self.unreachable(root_cause(error.as_ref())))?.to_bytes();
            self.answer(head.status, &head.headers, &text)
        });
        match answer.await {
            Ok(answer) => answer,
            Err(_) => {
                let error = self.unreachable(format!("there was no answer within {} s", time.as_secs_f64()));
                self.observed(request, Err(&error.to_string()));
                Err(error)
            }
        }
    }

    /// An answer whose body is read as it comes. Only its head is waited for with a deadline.
    pub(crate) async fn stream(&self, request: &Request) -> Result<Incoming, Error> {
        let time = request.timeout.unwrap_or(self.0.timeout);
        let sent = tokio::time::timeout(time, self.send(request)).await;
        let (head, body) = sent.unwrap_or_else(|_| Err(self.unreachable(format!("there was no answer within {time:?}"))))?;
        if head.status == StatusCode::OK {
            return Ok(body);
        }
        let text = tokio::time::timeout(time, Limited::new(body, ANSWER_BYTES_MAX).collect()).await;
        let text = text.ok().and_then(Result::ok).map(|body| body.to_bytes()).unwrap_or_default();
        Err(self.refused(head.status, &head.headers, &text))
    }

    async fn send(&self, request: &Request) -> Result<(http::response::Parts, Incoming), Error> {
        let url = format!("{}{}", self.0.base, request.path);
        let mut made = http::Request::builder()
            .method(&request.method)
            .uri(&url)
            .header("x-api-key", &self.0.api_key)
            .header(header::USER_AGENT, concat!("timer-client/", env!("CARGO_PKG_VERSION")));
        if request.body.is_some() {
            made = made.header(header::CONTENT_TYPE, "application/json");
        }
        for (name, value) in &request.headers {
            made = made.header(name, value);
        }
        if let (true, Some(trace)) = (request.is_traced, &self.0.trace) {
            for (name, value) in &trace() {
                made = made.header(name, value);
            }
        }
        let body = Full::new(Bytes::from(request.body.clone().unwrap_or_default()));
        let made = made.body(body).map_err(|error| Error::Usage(format!("{url} cannot be asked: {error}")))?;
        match self.0.http.send(made).await {
            Ok(answer) => {
                self.observed(request, Ok(answer.status().as_u16()));
                Ok(answer.into_parts())
            }
            Err(error) => {
                let cause = root_cause(&error);
                self.observed(request, Err(&cause));
                Err(self.unreachable(cause))
            }
        }
    }

    fn observed(&self, request: &Request, outcome: Result<u16, &str>) {
        if let Some(observe) = &self.0.observe {
            observe(request.method.as_str(), &format!("{}{}", self.0.base, request.path), outcome);
        }
    }

    fn unreachable(&self, cause: String) -> Error {
        Error::Unreachable { url: self.0.base.clone(), cause }
    }

    fn answer(&self, status: StatusCode, headers: &HeaderMap, text: &[u8]) -> Result<Answer, Error> {
        match serde_json::from_slice(text) {
            Ok(Envelope { code: 0, message, data }) if status.is_success() => {
                Ok(Answer { status: status.as_u16(), message, data })
            }
            _ => Err(self.refused(status, headers, text)),
        }
    }

    fn refused(&self, status: StatusCode, headers: &HeaderMap, text: &[u8]) -> Error {
        let (code, message) = match serde_json::from_slice::<Envelope>(text) {
            Ok(Envelope { code, message, .. }) if code > 0 => (Some(code), message),
            _ => (None, format!("what answers at {} is no timer service", self.0.base)),
        };
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        Error::of(Refusal {
            code,
            status: status.as_u16(),
            message,
            request_id: header("x-request-id").map(str::to_owned),
            retry_after: header("retry-after").and_then(|value| pauses::retry_after(value, now())),
            envelope: String::from_utf8_lossy(text).into_owned(),
        })
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "an SDK has no other clock than that of the machine, and dates of headers are by it"
)]
pub(crate) fn now() -> crate::Instant {
    chrono::Utc::now()
}

/// The innermost error says what happened; those around it only where.
pub(crate) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
