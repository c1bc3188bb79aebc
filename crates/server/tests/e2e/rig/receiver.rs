use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, sync::oneshot};

use super::{eventually, now, tolerated};

/// One request that arrived.
#[derive(Debug, Clone)]
pub struct Call {
    pub method: String,
    pub path: String,
    pub headers: HeaderMap,
    pub body: String,
    /// When its headers were there, by the wall clock, in microseconds.
    pub arrived: i64,
}

impl Call {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().expect("a header in ASCII")).unwrap_or_default()
    }

    pub fn timer_id(&self) -> &str {
        self.header("x-timer-id")
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).expect("a body of JSON")
    }
}

/// What a receiver does with a call.
#[derive(Debug, Clone, Copy)]
pub enum Reply {
    Status(u16),
    /// 200, but not at once.
    OkAfter(Duration),
    Never,
}

/// A real HTTP server on a thread of its own that records every call before it answers.
pub struct Receiver {
    address: SocketAddr,
    calls: Arc<Mutex<Vec<Call>>>,
    /// Dropped with this: the thread ends.
    _stop: oneshot::Sender<()>,
}

type Behaviour = Arc<dyn Fn(&Call) -> Reply + Send + Sync>;

impl Receiver {
    /// Answers 200 to everything.
    pub fn start() -> Self {
        Self::replying(|_| Reply::Status(200))
    }

    /// The same, for many large calls: their bodies are not kept.
    pub fn counting() -> Self {
        Self::keeping(false, |_| Reply::Status(200))
    }

    pub fn replying(behaviour: impl Fn(&Call) -> Reply + Send + Sync + 'static) -> Self {
        Self::keeping(true, behaviour)
    }

    fn keeping(bodies: bool, behaviour: impl Fn(&Call) -> Reply + Send + Sync + 'static) -> Self {
        let recorder = Recorder { bodies, calls: Arc::default(), behaviour: Arc::new(behaviour) };
        let calls = Arc::clone(&recorder.calls);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (address_is, address) = std::sync::mpsc::sync_channel(1);
        let (stop, stopped) = oneshot::channel();
        std::thread::spawn(move || {
            runtime.block_on(async {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port of 127.0.0.1");
                address_is.send(listener.local_addr().expect("its own address")).expect("the starter waits for it");
                tokio::select! {
                    () = accept(listener, recorder) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { address: address.recv().expect("the address of the receiver"), calls, _stop: stop }
    }

    /// The address of a path of this receiver, which starts with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn count(&self) -> usize {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Waits until at least this many calls have arrived; all of them.
    pub async fn wait_for(&self, calls: usize, limit: Duration) -> Vec<Call> {
        let what = format!("{calls} calls");
        let seen = eventually(&what, limit, async || {
            let count = self.count();
            (count >= calls).then_some(())
        });
        if tokio::time::timeout(tolerated(limit), seen).await.is_err() {
            panic!("not in time: {what}, only {}", self.count());
        }
        self.calls()
    }
}

/// What becomes of calls.
#[derive(Clone)]
struct Recorder {
    bodies: bool,
    calls: Arc<Mutex<Vec<Call>>>,
    behaviour: Behaviour,
}

async fn accept(listener: TcpListener, recorder: Recorder) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        drop(stream.set_nodelay(true));
        let recorder = recorder.clone();
        let answer = service_fn(move |request| take(request, recorder.clone()));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
    }
}

async fn take(request: Request<Incoming>, recorder: Recorder) -> Result<Response<Empty<Bytes>>, Infallible> {
    let arrived = now();
    let (head, body) = request.into_parts();
    // A caller that dies within its body has not made a call.
    let Ok(body) = body.collect().await else { return Ok(Response::new(Empty::new())) };
    let mut call = Call {
        method: head.method.to_string(),
        path: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        headers: head.headers,
        body: String::from_utf8(body.to_bytes().into()).expect("bodies are UTF-8"),
        arrived,
    };
    let reply = (recorder.behaviour)(&call);
    if !recorder.bodies {
        call.body = String::new();
    }
    recorder.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    let status = match reply {
        Reply::Status(status) => status,
        Reply::OkAfter(pause) => {
            tokio::time::sleep(pause).await;
            200
        }
        Reply::Never => std::future::pending().await,
    };
    let mut response = Response::new(Empty::new());
    *response.status_mut() = http::StatusCode::from_u16(status).expect("a status");
    Ok(response)
}
