//! The API: creates, and what `timer bench` asks besides.

use std::{cell::Cell, convert::Infallible, fmt::Write as _, net::TcpListener, rc::Rc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{Method, Request, Response, StatusCode, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpStream,
    sync::{mpsc, oneshot},
    task::spawn_local,
};

use crate::{
    Result, clock,
    queue::Queue,
    request::{Batch, Create},
    store::{BATCH_MAX, Database, Session},
    timer::{Due, Timer},
};

/// While one batch is written, the next one gathers and is sent.
const WRITERS: usize = 2;
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// What the benchmark asks for to see that the service is ready.
const CLUSTER: &str = r#"{"data":{"nodes":[{"version":"nearly nothing"}],"shards":[{"owner":"floor"}]}}"#;
const CANCELED: &str = r#"{"data":{}}"#;

/// The creates of one request, which are answered together.
struct Waiting {
    timers: Vec<Timer>,
    written: oneshot::Sender<()>,
}

struct Api {
    next_id: Cell<i64>,
    creates: Queue<Waiting>,
    /// For what is not a create.
    session: Session,
}

/// Answers requests. The timers that are on disk go to `created`.
pub async fn serve(listener: TcpListener, database: &Database, created: mpsc::Sender<Vec<Due>>) -> Result<()> {
    // Ids never come twice: no more timers are created than microseconds pass.
    let next_id = Cell::new(clock::now_micros());
    let api = Rc::new(Api { next_id, creates: Queue::new(), session: database.session().await? });
    for _ in 0..WRITERS {
        spawn_local(write(api.clone(), database.session().await?, created.clone()));
    }
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(spawn_local(answer_all(stream, api.clone()))),
            // The usual cause is too many open files, and some are about to be closed.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Writes one batch of creates after the other.
async fn write(api: Rc<Api>, session: Session, created: mpsc::Sender<Vec<Due>>) {
    loop {
        let (mut timers, mut written) = (Vec::new(), Vec::new());
        for waiting in api.creates.batch(BATCH_MAX, |waiting| waiting.timers.len()).await {
            timers.extend(waiting.timers);
            written.push(waiting.written);
        }
        let due = timers.iter().map(|timer| timer.due).collect();
        session.create(timers).await;
        for written in written {
            // A client that has gone does not wait.
            let _ = written.send(());
        }
        if created.send(due).await.is_err() {
            return;
        }
    }
}

async fn answer_all(stream: TcpStream, api: Rc<Api>) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let service = service_fn(|request| {
        let api = api.clone();
        async move { Ok::<_, Infallible>(api.answer(request).await) }
    });
    // A connection that breaks is the client's affair.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

impl Api {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let body = match Limited::new(body, BODY_BYTES_MAX).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return refusal(StatusCode::PAYLOAD_TOO_LARGE, "too long"),
            Err(error) => return refusal(StatusCode::BAD_REQUEST, &error.to_string()),
        };
        match (&head.method, head.uri.path()) {
            (&Method::POST, "/timers") => self.create(&body).await,
            (&Method::POST, "/timers/batch") => self.create_batch(&body).await,
            // There are no namespaces, so it is everything that is canceled.
            (&Method::POST, "/timers/cancel") => {
                self.session.clear().await;
                json(StatusCode::OK, CANCELED)
            }
            (&Method::GET, "/cluster") => json(StatusCode::OK, CLUSTER),
            _ => refusal(StatusCode::NOT_FOUND, "nothing else is here"),
        }
    }

    async fn create(&self, body: &[u8]) -> Response<Full<Bytes>> {
        let create = serde_json::from_slice::<Create<'_>>(body).map_err(|error| error.to_string());
        match create.and_then(|create| create.parse(self.id())) {
            Ok(timer) => {
                let id = timer.due.id;
                self.write(vec![timer]).await;
                json(StatusCode::CREATED, format!(r#"{{"data":{{"id":"{id}"}}}}"#))
            }
            Err(why) => refusal(StatusCode::BAD_REQUEST, &why),
        }
    }

    async fn create_batch(&self, body: &[u8]) -> Response<Full<Bytes>> {
        let batch = serde_json::from_slice::<Batch<'_>>(body).map_err(|error| error.to_string());
        let timers = batch.and_then(|batch| batch.timers.into_iter().map(|create| create.parse(self.id())).collect());
        let timers: Vec<Timer> = match timers {
            Ok(timers) => timers,
            Err(why) => return refusal(StatusCode::BAD_REQUEST, &why),
        };
        let mut answer = r#"{"data":["#.to_owned();
        for (number, timer) in timers.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = write!(answer, r#"{comma}{{"status":201,"id":"{}"}}"#, timer.due.id);
        }
        answer.push_str("]}");
        self.write(timers).await;
        json(StatusCode::OK, answer)
    }

    /// Returns when the timers are on disk.
    async fn write(&self, timers: Vec<Timer>) {
        let (written, done) = oneshot::channel();
        self.creates.push(Waiting { timers, written });
        // The writers end with the process only.
        let _ = done.await;
    }

    fn id(&self) -> i64 {
        self.next_id.replace(self.next_id.get() + 1)
    }
}

fn json(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

fn refusal(status: StatusCode, why: &str) -> Response<Full<Bytes>> {
    json(status, serde_json::json!({ "message": why }).to_string())
}
