//! Clients that send slowly are cut, and other clients are answered meanwhile.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use crate::rig::{API_KEY, Backend, Service, beside_others, for_each_store, now, tolerated};

const SLOW_CLIENTS: usize = 50;
const SLOWEST_MICROS_MAX: i64 = 2_000_000;
/// The limits are 10 s for the headers and 15 s for the body.
const CUT_WITHIN: Duration = Duration::from_secs(25);

for_each_store!(slow_clients_are_cut_and_others_are_answered_meanwhile);

async fn slow_clients_are_cut_and_others_are_answered_meanwhile(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let port = service.port();
    let mut slow = JoinSet::new();
    for n in 0..SLOW_CLIENTS {
        if n % 2 == 0 {
            slow.spawn(drip_headers(port));
        } else {
            slow.spawn(stall_in_body(port));
        }
    }

    let client = service.client();
    let mut slowest = 0;
    let mut answered = 0;
    let all_cut = async {
        while let Some(cut) = slow.join_next().await {
            cut.expect("a slow client that was cut in time");
        }
    };
    tokio::pin!(all_cut);
    loop {
        tokio::select! {
            () = &mut all_cut => break,
            () = tokio::time::sleep(Duration::from_millis(50)) => {
                let asked = now();
                assert_eq!(client.get("/timers").await.status, 200);
                slowest = slowest.max(now() - asked);
                answered += 1;
            }
        }
    }
    println!(
        "{}: {answered} answers beside {SLOW_CLIENTS} slow clients, the slowest after {} ms",
        backend.name(),
        slowest / 1000
    );
    assert!(answered > 20, "{answered} answers");
    assert!(slowest < tolerated(SLOWEST_MICROS_MAX), "{slowest} µs");
    service.stop().await;
}

/// Sends a header byte by byte until the connection is closed. Panics if that takes too long.
async fn drip_headers(port: u16) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
    stream.write_all(b"GET /ping HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").await.expect("the first bytes");
    let (mut reading, mut writing) = stream.split();
    let drip = async {
        loop {
            if writing.write_all(b"x").await.is_err() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::select! {
        answer = tokio::time::timeout(tolerated(CUT_WITHIN), read_to_end(&mut reading)) => {
            let answer = answer.expect("the connection is closed in time");
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
        }
        () = drip => {}
    }
}

/// Promises a body and sends half of it.
async fn stall_in_body(port: u16) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
    let head = format!(
        "POST /timers HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {API_KEY}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("the head");
    stream.write_all(b"{\"delay\":").await.expect("a part of the body");
    let answer =
        tokio::time::timeout(tolerated(CUT_WITHIN), read_to_end(&mut stream)).await.expect("the connection is closed in time");
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
}

/// Everything up to the end of the connection, however it ends.
async fn read_to_end(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut bytes = Vec::new();
    drop(stream.read_to_end(&mut bytes).await);
    String::from_utf8_lossy(&bytes).into_owned()
}
