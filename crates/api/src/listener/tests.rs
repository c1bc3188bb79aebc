mod streams;

use std::net::SocketAddr;

use http::StatusCode;
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Semaphore,
    task::JoinHandle,
};

use super::*;
use crate::{
    limits,
    rig::{KEY, Rig},
};

pub(super) const SHORT: Duration = Duration::from_millis(150);
pub(super) const LONG: Duration = Duration::from_secs(20);

struct Served {
    rig: Rig,
    address: SocketAddr,
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
}

impl Served {
    async fn with(limits: Limits) -> Self {
        Self::routes(limits, |router| router).await
    }

    async fn routes(limits: Limits, add: impl FnOnce(Router) -> Router) -> Self {
        let rig = Rig::limited(limits);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(serve(listener, add(rig.router.clone()), BasePath::default(), limits, shutdown.clone()));
        Self { rig, address, shutdown, serving }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes and gives everything that comes back until the connection is closed.
    async fn exchange(&self, bytes: &[u8]) -> String {
        let mut socket = self.connect().await;
        socket.write_all(bytes).await.unwrap();
        rest(&mut socket).await
    }
}

pub(super) async fn rest(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    time::timeout(LONG, socket.read_to_end(&mut bytes)).await.expect("the connection must be closed").unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Reads one answer of a connection that stays open.
async fn answer(socket: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut byte = [0];
    let mut left = None;
    while left != Some(0) {
        assert_eq!(time::timeout(LONG, socket.read(&mut byte)).await.unwrap().unwrap(), 1, "closed after {text}");
        text.push(byte[0] as char);
        left = left.map(|left: usize| left - 1);
        if left.is_none() && text.ends_with("\r\n\r\n") {
            let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            left = Some(length.parse().unwrap());
        }
    }
    text
}

/// The statuses of all answers.
pub(super) fn statuses(text: &str) -> Vec<u16> {
    text.split("HTTP/1.1 ").skip(1).filter_map(|answer| answer.get(..3)?.parse().ok()).collect()
}

fn assert_envelope(text: &str, status: StatusCode) {
    assert_eq!(statuses(text), [status.as_u16()], "{text}");
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let json: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&json["code"], &json["data"]), (&Value::from(2), &Value::Null), "{text}");
    assert!(head.contains("x-request-id: ") && head.contains("connection: close"), "{head}");
}

pub(super) fn create(body: &str) -> String {
    format!(
        "POST /timers HTTP/1.1\r\nhost: a\r\nx-api-key: {KEY}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub(super) const TIMER: &str = r#"{"seconds":90,"url":"http://a"}"#;
const CLOSING_PING: &str = "GET /ping HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
pub(super) const PING: &str = "GET /ping HTTP/1.1\r\nhost: a\r\n\r\n";

#[tokio::test]
async fn one_connection_carries_many_requests() {
    let served = Served::with(Limits::default()).await;
    let mut socket = served.connect().await;
    for _ in 0..3 {
        socket.write_all(create(TIMER).as_bytes()).await.unwrap();
        assert!(answer(&mut socket).await.starts_with("HTTP/1.1 201 "));
    }
    // Several at once are answered one after the other, bodies and all.
    let at_once = format!("{PING}{}\r\n{}{PING}", create(TIMER), create(TIMER));
    socket.write_all(at_once.as_bytes()).await.unwrap();
    for status in [200, 201, 201, 200] {
        assert!(answer(&mut socket).await.starts_with(&format!("HTTP/1.1 {status} ")));
    }
    assert_eq!(served.rig.count().await, 5);
}

#[tokio::test]
async fn a_body_in_chunks_is_read_and_ends_the_connection() {
    let served = Served::with(Limits::default()).await;
    let head = format!(
        "POST /timers HTTP/1.1\r\nhost: a\r\nx-api-key: {KEY}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    let (left, right) = TIMER.split_at(10);
    let text = served.exchange(format!("{head}a\r\n{left}\r\n{:x}\r\n{right}\r\n0\r\n\r\n{PING}", right.len()).as_bytes()).await;
    assert_eq!(statuses(&text), [201], "what follows is not read: {text}");
    assert_eq!(served.rig.count().await, 1);
    for bad in ["zz\r\n", "5\nhello\r\n0\r\n\r\n", "5\r\nhelloX\r\n0\r\n\r\n"] {
        let text = served.exchange(format!("{head}{bad}{PING}").as_bytes()).await;
        assert_eq!(statuses(&text), [400], "{bad:?}: {text}");
    }
    assert_eq!(served.rig.count().await, 1);
}

#[tokio::test]
async fn what_could_be_read_in_two_ways_is_a_400_and_the_end() {
    let served = Served::with(Limits::default()).await;
    let smuggled = create(TIMER);
    for head in [
        "POST /ping HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /ping HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ncontent-length: 0\r\n\r\n0\r\n\r\n",
        "POST /ping HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\ncontent-length: 0\r\n\r\n",
        "POST /ping HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\ncontent-length: 5\r\n\r\n",
        "POST /ping HTTP/1.1\r\nhost: a\r\ntransfer-encoding: identity\r\n\r\n",
        "POST /ping HTTP/1.1\r\nhost: a\r\ntransfer-encoding : chunked\r\n\r\n",
        "GET /ping HTTP/1.1\nhost: a\n\n",
        "GET /ping HTTP/1.1\r\nhost: a\nx: y\r\n\r\n",
        "GET /ping HTTP/1.1\r\nhost: a\r\n folded\r\n\r\n",
        "GET /ping HTTP/1.1\r\nhost: a\r\nx: \0\r\n\r\n",
        "GET /ping HTTP/1.1\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "nonsense\r\n\r\n",
    ] {
        assert_envelope(&served.exchange(format!("{head}{smuggled}").as_bytes()).await, StatusCode::BAD_REQUEST);
    }
    // The same behind a good request, with a body and without.
    for good in [PING.to_owned(), create("{}")] {
        let text = served.exchange(format!("{good}GET /ping HTTP/1.1\nhost: a\n\n{smuggled}").as_bytes()).await;
        assert_eq!(statuses(&text).len(), 2, "{text}");
        assert_eq!(statuses(&text)[1], 400, "{text}");
    }
    assert_eq!(served.rig.count().await, 0);
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused_in_the_envelope() {
    let served = Served::with(Limits::default()).await;
    let head = |target: &str, headers: &str| format!("GET {target} HTTP/1.1\r\nhost: a\r\n{headers}\r\n");
    for (head, status) in [
        (head("/ping", &"x: y\r\n".repeat(63)), 200),
        (head("/ping", &"x: y\r\n".repeat(64)), 431),
        (head("/ping", &format!("x: {}\r\n", "y".repeat(16 * 1024))), 431),
        (head(&format!("/ping?{}", "y".repeat(8 * 1024 - 6)), ""), 200),
        (head(&format!("/ping?{}", "y".repeat(8 * 1024)), ""), 414),
        (head(&format!("/ping?{}", "y".repeat(200 * 1024)), ""), 414),
    ] {
        let mut socket = served.connect().await;
        socket.write_all(head.as_bytes()).await.unwrap();
        if status == 200 {
            assert!(answer(&mut socket).await.starts_with("HTTP/1.1 200 "), "{}", head.len());
        } else {
            assert_envelope(&rest(&mut socket).await, StatusCode::from_u16(status).unwrap());
        }
    }
}

#[tokio::test]
async fn what_is_refused_before_it_is_routed_is_refused_in_the_words_of_its_dialect() {
    let served = Served::with(Limits { head_time_max: SHORT, ..Limits::default() }).await;
    let long = "y".repeat(8 * 1024);
    for (head, status, code) in [
        (format!("GET /api/v1/timers/a/{long} HTTP/1.1\r\nhost: a\r\n\r\n"), 414, "URI_TOO_LONG"),
        (format!("GET /api/v1/timers/a/b HTTP/1.1\r\nhost: a\r\nx: {long}{long}\r\n\r\n"), 431, "HEADERS_TOO_LARGE"),
        ("GET /api/v1/timers/a/b HTTP/1.1\r\n\r\n".to_owned(), 400, "MALFORMED_REQUEST"),
        ("POST /api/v1/timers HT".to_owned(), 408, "REQUEST_TIMEOUT"),
    ] {
        let text = served.exchange(head.as_bytes()).await;
        assert_eq!(statuses(&text), [status], "{text}");
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let json: Value = serde_json::from_str(body).unwrap();
        assert_eq!((&json["error"], &json["details"]), (&Value::from(code), &serde_json::json!({})), "{text}");
        assert_eq!(json["timestamp"], "2030-01-01T00:00:00Z");
        assert!(head.contains("x-request-id: ") && head.contains("connection: close"), "{head}");
        assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
    }
}

#[tokio::test]
async fn an_answer_without_a_body_leaves_the_connection_usable() {
    let served = Served::with(Limits::default()).await;
    served.rig.created(r#"{"delay":"1h","callback":{"type":"http","url":"http://a"},"key":"k"}"#).await;
    let delete = format!("DELETE /api/v1/timers/default/k HTTP/1.1\r\nhost: a\r\nx-api-key: {KEY}\r\n\r\n");
    let text = served.exchange(format!("{delete}{delete}{CLOSING_PING}").as_bytes()).await;
    assert_eq!(statuses(&text), [204, 204, 200], "{text}");
    let gone = text.split("HTTP/1.1 ").nth(1).unwrap();
    assert!(gone.ends_with("\r\n\r\n") && !gone.contains("content-length") && !gone.contains("content-type"), "{gone}");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_a_413_that_arrives() {
    let served = Served::with(Limits::default()).await;
    let huge = create(&"x".repeat(3 * 1024 * 1024));
    assert_envelope(&served.exchange(huge.as_bytes()).await, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn a_head_that_does_not_come_is_a_408() {
    let served = Served::with(Limits { head_time_max: SHORT, ..Limits::default() }).await;
    assert_envelope(&served.exchange(b"GET /ping HT").await, StatusCode::REQUEST_TIMEOUT);
    // Sending a little at a time does not help.
    let mut socket = served.connect().await;
    let (mut reading, mut writing) = socket.split();
    let drip = async {
        for byte in PING.bytes().cycle().filter(|byte| *byte != b'\n') {
            if writing.write_all(&[byte]).await.is_err() {
                break;
            }
            time::sleep(SHORT / 10).await;
        }
    };
    let mut text = String::new();
    tokio::select! {
        () = drip => panic!("it must be answered first"),
        read = time::timeout(LONG, reading.read_to_string(&mut text)) => read.unwrap().unwrap(),
    };
    assert_envelope(&text, StatusCode::REQUEST_TIMEOUT);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_a_408() {
    let served = Served::with(Limits { body_time_max: SHORT, ..Limits::default() }).await;
    let request = create(TIMER);
    assert_envelope(&served.exchange(&request.as_bytes()[..request.len() - 5]).await, StatusCode::REQUEST_TIMEOUT);
    assert_eq!(served.rig.count().await, 0);
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed() {
    let served = Served::with(Limits { idle_time_max: SHORT, ..Limits::default() }).await;
    assert_eq!(served.exchange(b"").await, "");
    let mut socket = served.connect().await;
    socket.write_all(PING.as_bytes()).await.unwrap();
    assert!(answer(&mut socket).await.starts_with("HTTP/1.1 200 "));
    assert_eq!(rest(&mut socket).await, "");
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answer_is_let_go() {
    let limits = Limits { write_stall_max: SHORT, connections_max: 1, ..Limits::default() };
    let large = || async { "x".repeat(64 * 1024 * 1024) };
    let served = Served::routes(limits, |router| router.route("/large", axum::routing::get(large))).await;
    let mut stalled = served.connect().await;
    stalled.write_all(b"GET /large HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    let closing_list = CLOSING_PING.replace("/ping", "/timers");
    // Its permit is free for another one before long.
    let other = async {
        while statuses(&served.exchange(closing_list.as_bytes()).await) != [401] {
            tokio::task::yield_now().await;
        }
    };
    time::timeout(LONG, other).await.unwrap();
}

const LIST: &str = "GET /timers HTTP/1.1\r\nhost: a\r\n\r\n";

#[tokio::test]
async fn too_many_connections_are_told_so_and_probes_are_answered_all_the_same() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _collecting = ::metrics::set_default_local_recorder(&recorder);
    let served = Served::with(Limits { connections_max: 2, ..Limits::default() }).await;
    let mut held = [served.connect().await, served.connect().await];
    for socket in &mut held {
        socket.write_all(PING.as_bytes()).await.unwrap();
        assert!(answer(socket).await.starts_with("HTTP/1.1 200 "));
    }
    let mut silent = Vec::new();
    for _ in 0..2 * limits::RESERVED_CONNECTIONS_MAX {
        silent.push(served.connect().await);
    }
    let refused = served.exchange(LIST.as_bytes()).await;
    assert_eq!(statuses(&refused), [503]);
    assert!(refused.ends_with(r#"{"code":1,"message":"too many connections: try again later","data":null}"#), "{refused}");
    for path in ["/ping", "/healthz"] {
        let text = served.exchange(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n{LIST}").as_bytes()).await;
        assert_eq!(statuses(&text), [200], "{text}");
    }
    held[0].write_all(PING.as_bytes()).await.unwrap();
    assert!(answer(&mut held[0]).await.starts_with("HTTP/1.1 200 "));
    let shown = recorder.handle().render();
    assert!(shown.contains("timer_http_connections_refused_total 1\n"), "probes that are answered are not refused: {shown}");
}

#[tokio::test]
async fn the_oldest_idle_connection_of_an_address_gives_way_to_its_next_one() {
    let served = Served::with(Limits { connections_per_address_max: 2, ..Limits::default() }).await;
    let mut held = [served.connect().await, served.connect().await];
    for socket in &mut held {
        socket.write_all(PING.as_bytes()).await.unwrap();
        assert!(answer(socket).await.starts_with("HTTP/1.1 200 "));
    }
    let mut new = served.connect().await;
    new.write_all(LIST.as_bytes()).await.unwrap();
    assert!(answer(&mut new).await.starts_with("HTTP/1.1 401 "), "it is served");
    assert_eq!(rest(&mut held[0]).await, "", "the oldest is closed");
    held[1].write_all(PING.as_bytes()).await.unwrap();
    assert!(answer(&mut held[1]).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn idle_connections_of_the_greediest_address_give_way_to_another_address() {
    let served = Served::with(Limits { connections_max: 3, ..Limits::default() }).await;
    let mut greedy = Vec::new();
    for _ in 0..3 {
        let mut socket = served.connect().await;
        socket.write_all(PING.as_bytes()).await.unwrap();
        assert!(answer(&mut socket).await.starts_with("HTTP/1.1 200 "));
        greedy.push(socket);
    }
    let other = tokio::net::TcpSocket::new_v4().unwrap();
    other.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut other = other.connect(served.address).await.unwrap();
    other.write_all(LIST.as_bytes()).await.unwrap();
    assert!(answer(&mut other).await.starts_with("HTTP/1.1 401 "), "it is served");
    assert_eq!(rest(&mut greedy[0]).await, "", "the oldest is closed");
    greedy[1].write_all(PING.as_bytes()).await.unwrap();
    assert!(answer(&mut greedy[1]).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_shutdown_finishes_what_is_in_flight_and_takes_nothing_new() {
    let (begun, mut has_begun) = tokio::sync::mpsc::channel::<()>(1);
    let go_on = Arc::new(Semaphore::new(0));
    let strict_reader = go_on.clone();
    let slow = move || async move {
        begun.send(()).await.unwrap();
        strict_reader.acquire().await.unwrap().forget();
        "done"
    };
    let served = Served::routes(Limits::default(), |router| router.route("/slow", axum::routing::get(slow))).await;
    let mut idle = served.connect().await;
    idle.write_all(PING.as_bytes()).await.unwrap();
    answer(&mut idle).await;
    let mut busy = served.connect().await;
    busy.write_all(format!("GET /slow HTTP/1.1\r\nhost: a\r\n\r\n{PING}").as_bytes()).await.unwrap();
    has_begun.recv().await.unwrap();

    served.shutdown.cancel();
    assert_eq!(rest(&mut idle).await, "", "an idle connection is closed at once");
    drop(idle);
    go_on.add_permits(1);
    let text = rest(&mut busy).await;
    assert_eq!(statuses(&text), [200], "{text}");
    assert!(text.ends_with("done"));
    drop(busy);
    time::timeout(LONG, served.serving).await.unwrap().unwrap();
    assert!(TcpStream::connect(served.address).await.is_err());
}

#[tokio::test]
async fn a_request_that_does_not_end_does_not_hold_up_the_shutdown_for_ever() {
    let (begun, mut has_begun) = tokio::sync::mpsc::channel::<()>(1);
    let never = move || async move {
        begun.send(()).await.unwrap();
        std::future::pending::<()>().await;
    };
    let limits = Limits { drain_time_max: SHORT, ..Limits::default() };
    let served = Served::routes(limits, |router| router.route("/never", axum::routing::get(never))).await;
    let mut socket = served.connect().await;
    socket.write_all(b"GET /never HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    has_begun.recv().await.unwrap();
    served.shutdown.cancel();
    time::timeout(LONG, served.serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_client_that_goes_away_does_not_cancel_what_it_asked_for() {
    let (begun, mut has_begun) = tokio::sync::mpsc::channel::<()>(1);
    let (done, mut is_done) = tokio::sync::mpsc::channel::<()>(1);
    let go_on = Arc::new(Semaphore::new(0));
    let strict_reader = go_on.clone();
    let slow = move || async move {
        begun.send(()).await.unwrap();
        strict_reader.acquire().await.unwrap().forget();
        done.send(()).await.unwrap();
    };
    let served = Served::routes(Limits::default(), |router| router.route("/slow", axum::routing::get(slow))).await;
    let mut socket = served.connect().await;
    socket.write_all(b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    has_begun.recv().await.unwrap();
    drop(socket);
    // A request of another client goes all the way meanwhile: the server has seen the end of the first connection.
    assert_eq!(statuses(&served.exchange(CLOSING_PING.as_bytes()).await), [200]);
    go_on.add_permits(1);
    time::timeout(LONG, is_done.recv()).await.unwrap().unwrap();
}
