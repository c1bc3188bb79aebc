use std::{
    collections::BTreeMap,
    convert::Infallible,
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use bytes::Bytes;
use domain::{Clock, Timestamp};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::{
    answers::{Answer, Answers, Reply},
    inbox::{Arrival, Inbox, without_query},
};

/// The largest body that is taken: more than any timer can carry.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Where it listens if it can: timers that stay in the store find it again after a restart.
const PORT: u16 = 8081;
const SHOWN_BYTES_MAX: usize = 500;

/// What a signature is made of, and the signature.
#[derive(Debug, Clone, Copy)]
pub struct SignedCall<'a> {
    pub id: &'a str,
    pub timestamp: &'a str,
    pub body: &'a [u8],
    /// The header with all signatures.
    pub signature: &'a str,
}

/// Whether one of the signatures of a call is right.
pub type CheckSignature = Arc<dyn Fn(SignedCall<'_>) -> bool + Send + Sync>;

/// A receiver that keeps every call in the inbox, shows it in the log, and answers as it was programmed: 200 unless it was.
#[derive(Clone)]
pub struct Receiver {
    pub inbox: Arc<Inbox>,
    pub answers: Arc<Answers>,
    pub clock: Arc<dyn Clock>,
    pub check_signature: CheckSignature,
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

impl Receiver {
    /// Listens on loopback, on a thread of its own that lives as long as the process. Says where.
    pub fn start(self) -> io::Result<SocketAddr> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let bind = |port| runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, port)));
        let listener = bind(PORT).or_else(|_| bind(0))?;
        let address = listener.local_addr()?;
        let receive = move || runtime.block_on(self.receive(listener));
        std::thread::Builder::new().name("receiver".to_owned()).spawn(receive)?;
        Ok(address)
    }

    async fn receive(self, listener: TcpListener) {
        let receiver = Arc::new(self);
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            let receiver = Arc::clone(&receiver);
            let service = service_fn(move |request| {
                let receiver = Arc::clone(&receiver);
                async move { Ok::<_, Infallible>(receiver.answer(request).await) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let body = match Limited::new(body, BODY_BYTES_MAX).collect().await {
            Ok(body) => body.to_bytes(),
            Err(_) => return with_status(StatusCode::PAYLOAD_TOO_LARGE),
        };
        let target = head.uri.path_and_query().map_or_else(|| head.uri.path(), |target| target.as_str());
        let Answer { delay, reply, .. } = self.answers.take(without_query(target)).unwrap_or_else(usual_answer);
        self.inbox.record(self.arrival(&head, target, &body, reply.as_ref()));
        let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES_MAX)]);
        tracing::info!(due = text(&head.headers, SCHEDULED_AT), body = %shown, "the receiver got {} {}", head.method, head.uri.path());
        let Some(reply) = reply else { return std::future::pending().await };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        response(reply)
    }

    fn arrival(&self, head: &Parts, target: &str, body: &[u8], reply: Option<&Reply>) -> Arrival {
        let (headers, at) = (&head.headers, self.clock.now());
        let due = Timestamp::parse(SCHEDULED_AT, text(headers, SCHEDULED_AT)).ok();
        let signature = text(headers, "webhook-signature");
        let signed =
            SignedCall { id: text(headers, "webhook-id"), timestamp: text(headers, "webhook-timestamp"), body, signature };
        Arrival {
            at,
            lateness_ms: due.map(|due| at.as_micros().saturating_sub(due.as_micros()).div_euclid(1_000)),
            timer_id: Some(text(headers, "x-timer-id").to_owned()).filter(|id| !id.is_empty()),
            attempt: text(headers, "x-timer-attempt").parse().ok(),
            method: head.method.to_string(),
            path: target.to_owned(),
            headers: shown_headers(headers),
            body: String::from_utf8_lossy(body).into_owned(),
            signature_valid: (!signature.is_empty()).then(|| (self.check_signature)(signed)),
            answered: reply.map(|reply| reply.status.as_u16()),
        }
    }
}

const SCHEDULED_AT: &str = "x-timer-scheduled-at";

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Values of the same name are joined, as HTTP reads them.
fn shown_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut shown: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        let joined = shown.entry(name.as_str().to_owned()).or_default();
        if !joined.is_empty() {
            joined.push_str(", ");
        }
        joined.push_str(&value);
    }
    shown
}

/// The answer to a path without one. Its body is for timers that speak the `timer` protocol.
fn usual_answer() -> Answer {
    let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    let reply = Reply { status: StatusCode::OK, headers, body: Bytes::from_static(br#"{"ok":true}"#) };
    Answer { path: None, times: None, delay: std::time::Duration::ZERO, reply: Some(reply) }
}

fn with_status(status: StatusCode) -> Response<Full<Bytes>> {
    response(Reply { status, headers: HeaderMap::new(), body: Bytes::new() })
}

fn response(Reply { status, headers, body }: Reply) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
