//! What one client does to the API costs no other its answers: searches, slow bodies, and connections.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

use crate::rig::{API_KEY, Backend, Client, Service, for_each_store};

for_each_store!(
    a_key_searches_once_at_a_time,
    slow_batches_of_one_key_leave_permits_for_another,
    silent_connections_of_one_address_leave_the_api_to_others,
    wrong_keys_of_one_address_are_limited_and_right_ones_are_let_in,
    rights_are_checked_before_the_body
);

/// Less than the 15 s that a body may take, on a busy machine, too.
const AT_ONCE: Duration = Duration::from_secs(10);

const METADATA_BYTES: usize = 60_000;
const LARGE_TIMERS: usize = 240;

async fn register_large_metadata(client: &Client, namespace: &str) {
    let padding = "x".repeat(METADATA_BYTES);
    let timer = |n: usize| {
        let callback = json!({"type": "http", "url": "http://127.0.0.1:9/"});
        json!({"delay": "1h", "namespace": namespace, "metadata": {"n": n % 2, "x": padding}, "callback": callback})
    };
    let timers: Vec<Value> = (0..LARGE_TIMERS).map(timer).collect();
    for batch in timers.chunks(120) {
        let answer = client.send("POST", "/timers/batch", Some(&json!({"timers": batch}))).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
}

async fn a_key_searches_once_at_a_time(backend: Backend) {
    let service = Service::start(&backend).await;
    let (searching, other) = (service.client().tenant("searching").await, service.client().tenant("other").await);
    register_large_metadata(&searching, "searching").await;
    let nothing = json!({"metadata": {"n": 7}, "expected_max": 10});
    let search = async |client: &Client| client.send("POST", "/timers/cancel", Some(&nothing)).await;

    let (answers, of_another) = tokio::join!(join_all((0..8).map(|_| search(&searching))), search(&other));
    assert_eq!(of_another.status, 200, "{}", of_another.text);
    let (searched, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
    assert!(!searched.is_empty() && !refused.is_empty(), "{} searched at the same time", searched.len());
    for refusal in refused {
        assert_eq!((refusal.status, &refusal.json()["code"]), (429, &json!(5)), "{}", refusal.text);
        assert_eq!(refusal.headers["retry-after"], "1");
        assert!(refusal.message().starts_with("another bulk request with this key is running"), "{}", refusal.message());
    }

    let half = json!({"metadata": {"n": 1}, "expected_max": LARGE_TIMERS});
    let canceled = searching.send("POST", "/timers/cancel", Some(&half)).await;
    assert_eq!(canceled.json()["data"], json!({"matched": LARGE_TIMERS / 2, "canceled": LARGE_TIMERS / 2}), "{}", canceled.text);
}

/// The head of a batch with this key, and the first byte of its body.
async fn begin_batch(port: u16, key: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
    let head = format!(
        "POST /timers/batch HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.expect("the head of a request");
    stream
}

async fn slow_batches_of_one_key_leave_permits_for_another(backend: Backend) {
    let service = Service::start(&backend).await;
    let (slow, other) = (service.client().tenant("slow").await, service.client().tenant("other").await);
    let held = join_all((0..32).map(|_| begin_batch(service.port(), slow.key()))).await;
    let timer = json!({"delay": "1h", "namespace": "other", "callback": {"type": "http", "url": "http://127.0.0.1:9/"}});
    for _ in 0..4 {
        let batch = json!({"timers": [timer]}).to_string();
        let answer = timeout(AT_ONCE, other.try_send("POST", "/timers/batch", Some(batch))).await;
        let answer = answer.expect("an answer beside slow bodies of another key").expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    drop(held);
}

async fn rights_are_checked_before_the_body(backend: Backend) {
    let service = Service::start(&backend).await;
    let reading = json!({"name": "reading", "namespaces": ["a"], "rights": "read"});
    let reading = service.client().send("POST", "/keys", Some(&reading)).await.json()["data"]["key"].clone();
    for (key, status) in [(reading.as_str().expect("a key"), "403"), ("wrong", "401")] {
        let mut stream = begin_batch(service.port(), key).await;
        let mut start = [0; 12];
        timeout(AT_ONCE, stream.read_exact(&mut start)).await.expect("an answer before the body").expect("an answer");
        assert_eq!(String::from_utf8_lossy(&start), format!("HTTP/1.1 {status}"));
    }
}

async fn silent_connections_of_one_address_leave_the_api_to_others(backend: Backend) {
    let service = Service::start_with(&backend, &[("CONNECTIONS_PER_ADDRESS_MAX", "64")]).await;
    let port = service.port();
    let mut silent = Vec::new();
    for _ in 0..600 {
        silent.push(TcpStream::connect(("127.0.0.1", port)).await.expect("a connection"));
    }
    assert_eq!(ask(port, "127.0.0.1", "/healthz").await, "HTTP/1.1 200");
    assert_eq!(ask(port, "127.0.0.1", "/ping").await, "HTTP/1.1 200");
    assert_eq!(ask(port, "127.0.0.1", "/timers").await, "HTTP/1.1 200", "a silent one of the same address gives way");
    assert_eq!(ask(port, "127.0.0.2", "/timers").await, "HTTP/1.1 200");
    drop(silent);
}

/// The status line of an answer to a client at this address.
async fn ask(port: u16, from: &str, path: &str) -> String {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(format!("{from}:0").parse().expect("an address")).expect("an address of this machine");
    let mut stream = socket.connect(format!("127.0.0.1:{port}").parse().expect("an address")).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {API_KEY}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("a request");
    let mut start = [0; 12];
    timeout(AT_ONCE, stream.read_exact(&mut start)).await.expect("an answer in time").expect("an answer");
    String::from_utf8_lossy(&start).into_owned()
}

async fn wrong_keys_of_one_address_are_limited_and_right_ones_are_let_in(backend: Backend) {
    let service = Service::start(&backend).await;
    let client = service.client();
    let guessing = client.with_key("wrong");
    let mut limited = 0;
    for _ in 0..200 {
        let answer = guessing.get("/timers").await;
        if answer.status == 429 {
            limited += 1;
            assert_eq!(
                (&answer.json()["code"], answer.headers.contains_key("retry-after")),
                (&json!(5), true),
                "{}",
                answer.text
            );
        } else {
            assert_eq!(answer.status, 401, "{}", answer.text);
        }
        assert_eq!(client.get("/timers?limit=1").await.status, 200, "a right key of the same address");
    }
    assert!(limited > 20, "{limited} of 200 were told to wait");
    assert_eq!(guessing.get("/ping").await.status, 200);
}
