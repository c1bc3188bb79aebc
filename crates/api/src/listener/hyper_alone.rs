//! What hyper lets through by itself, with every limit that it has. It is why a strict reader stands in front of it, and fails as soon
//! as a version of hyper does more: see ADR 12.

use std::net::SocketAddr;

use axum::{body::Body, extract::Request};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::tests::{LONG, PING, SHORT, TIMER, create, rest, statuses};
use crate::{
    Connected, Limits,
    rig::{KEY, Rig},
};

/// Serves the API on hyper alone.
async fn serve_by_hyper_alone(rig: &Rig, limits: Limits) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = rig.router.clone();
    tokio::spawn(async move {
        while let Ok((socket, peer)) = listener.accept().await {
            let router = router.clone();
            let service = service_fn(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(Connected { address: peer.ip(), stopping: CancellationToken::new() });
                tower::Service::call(&mut router.clone(), request.map(Body::new))
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.head_time_max)
                .max_headers(limits.headers_max)
                .max_buf_size(limits.head_bytes_max)
                .half_close(true)
                .serve_connection(TokioIo::new(socket), service);
            tokio::spawn(connection);
        }
    });
    address
}

/// Sends bytes and no more, and gives everything that comes back.
async fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(bytes).await.unwrap();
    socket.shutdown().await.unwrap();
    rest(&mut socket).await
}

/// Behind each of them stands another request, which the strict reader never lets in.
#[tokio::test]
async fn hyper_reads_what_could_be_read_in_two_ways() {
    let chunked = |headers: &str| {
        let head = format!("POST /timers HTTP/1.1\r\nhost: a\r\nx-api-key: {KEY}\r\ncontent-type: application/json\r\n");
        format!("{head}{headers}\r\n{:x}\r\n{TIMER}\r\n0\r\n\r\n", TIMER.len())
    };
    let table: [(String, &[u16]); 11] = [
        // It believes the chunks, carries the request out, and reads nothing after it.
        (chunked("content-length: 4\r\ntransfer-encoding: chunked\r\n"), &[201]),
        (chunked("transfer-encoding: chunked\r\ncontent-length: 4\r\n"), &[201]),
        // These it answers, and goes on to the next.
        ("POST /ping HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\ncontent-length: 0\r\n\r\n".into(), &[405, 201]),
        ("GET /ping HTTP/1.1\nhost: a\n\n".into(), &[200, 201]),
        ("GET /ping HTTP/1.1\r\nhost: a\nx: y\r\n\r\n".into(), &[200, 201]),
        ("GET /ping HTTP/1.1\r\n\r\n".into(), &[200, 201]),
        // These it refuses as well, without a word.
        ("POST /ping HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\ncontent-length: 5\r\n\r\n".into(), &[400]),
        ("POST /ping HTTP/1.1\r\nhost: a\r\ntransfer-encoding: identity\r\n\r\n".into(), &[400]),
        ("POST /ping HTTP/1.1\r\nhost: a\r\ntransfer-encoding : chunked\r\n\r\n".into(), &[400]),
        ("GET /ping HTTP/1.1\r\nhost: a\r\n folded\r\n\r\n".into(), &[400]),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(), &[]),
    ];
    for (request, expected) in table {
        let rig = Rig::new();
        let address = serve_by_hyper_alone(&rig, Limits::default()).await;
        let text = exchange(address, format!("{request}{}", create(TIMER)).as_bytes()).await;
        assert_eq!(statuses(&text), expected, "{request:?}: {text}");
        let created = expected.iter().filter(|status| **status == 201).count() as u64;
        assert_eq!(rig.count().await as u64, created, "{request:?}");
        assert_eq!(expected == [400], text.ends_with("\r\n\r\n") && !text.is_empty(), "no body: {text}");
    }
}

#[tokio::test]
async fn hyper_has_no_limit_for_the_target_and_refuses_large_heads_without_a_word() {
    let rig = Rig::new();
    let address = serve_by_hyper_alone(&rig, Limits::default()).await;
    let head = |target: &str, headers: &str| format!("GET {target} HTTP/1.1\r\nhost: a\r\n{headers}\r\n");
    for (head, expected) in [
        (head(&format!("/ping?{}", "y".repeat(15 * 1024)), ""), 200),
        (head("/ping", &"x: y\r\n".repeat(64)), 431),
        (head("/ping", &format!("x: {}\r\n", "y".repeat(16 * 1024))), 431),
    ] {
        let text = exchange(address, head.as_bytes()).await;
        assert_eq!(statuses(&text), [expected], "{text}");
        assert_eq!(expected == 431, text.ends_with("\r\n\r\n"), "no body: {text}");
    }
}

/// One time limit for both: a head that takes as long as an idle connection may, or connections that are closed while idle.
#[tokio::test]
async fn hyper_has_one_time_for_slow_heads_and_idle_connections_and_closes_without_a_word() {
    let limits = Limits { head_time_max: SHORT, idle_time_max: LONG, ..Limits::default() };
    let rig = Rig::limited(limits);
    let address = serve_by_hyper_alone(&rig, limits).await;
    for (sent, expected) in [("GET /ping HT", [].as_slice()), (PING, &[200])] {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let begun = Instant::now();
        socket.write_all(sent.as_bytes()).await.unwrap();
        assert_eq!(statuses(&rest(&mut socket).await), expected);
        assert!(begun.elapsed() < LONG, "closed after the time for a head");
    }
}
