//! Receivers that fail, lag or mean harm.

use std::time::{Duration, Instant};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc,
};

use super::{receiver::Heard, *};

/// How long something took, by the watch on the wall of the test.
#[expect(clippy::disallowed_methods, reason = "a timeout of the network is measured in the time of the network")]
async fn timed<T>(future: impl Future<Output = T>) -> (T, Duration) {
    let started = Instant::now();
    (future.await, started.elapsed())
}

const QUICK: &str = r#","timeout":"200ms""#;
const QUICK_BOUNDS: std::ops::Range<Duration> = Duration::from_millis(200)..Duration::from_millis(1500);

async fn assert_times_out(url: &str) {
    let (outcome, took) = timed(call(url, QUICK)).await;
    let failure = failure(outcome);
    assert_eq!((failure.kind, QUICK_BOUNDS.contains(&took)), (FailureKind::Timeout, true), "{took:?}");
    assert!(failure.message.starts_with("no answer within 200ms (POST http"), "{}", failure.message);
}

#[tokio::test]
async fn a_receiver_that_hangs_is_left() {
    let (gone, mut is_gone) = mpsc::channel(1);
    let receiver = Receiver::doing(move |mut stream, _| {
        let gone = gone.clone();
        async move {
            Heard::read(&mut stream).await;
            // Ends when the caller hangs up.
            let _ = stream.read_u8().await;
            gone.send(()).await.unwrap();
        }
    })
    .await;
    assert_times_out(&receiver.url("/")).await;
    is_gone.recv().await.unwrap();
}

#[tokio::test]
async fn a_connection_that_served_a_patient_call_does_not_lend_its_patience_to_the_next() {
    let mut receiver = Receiver::doing(|mut stream, ear| async move {
        while let Some(heard) = Heard::read(&mut stream).await {
            let is_patient = heard.head.starts_with("POST /patient ");
            ear.send(heard).await.unwrap();
            if is_patient {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            }
        }
    })
    .await;
    let (deliverer, root) = (deliverer(), receiver.url(""));
    let call = async |path: &str, more: &str| {
        deliverer.attempt(&timers::http(&format!("{root}{path}"), more), 2, Prepared::default()).await.outcome
    };
    let patient = r#","timeout":"60s""#;
    assert_eq!(call("/patient", patient).await, Outcome::Delivered);
    let (outcome, took) = timed(call("/hangs", QUICK)).await;
    assert_eq!((failure(outcome).kind, QUICK_BOUNDS.contains(&took)), (FailureKind::Timeout, true), "{took:?}");
    assert_eq!(receiver.connections().await, 1, "both calls were made over one");
    assert_eq!(call("/patient", patient).await, Outcome::Delivered);
    assert_eq!(receiver.connections().await, 1, "that one was not kept");
}

#[tokio::test]
async fn a_listener_that_never_accepts_is_left() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    assert_times_out(&format!("http://{}/", listener.local_addr().unwrap())).await;
}

#[tokio::test]
async fn headers_that_drip_do_not_stretch_the_time() {
    let receiver = Receiver::doing(|mut stream, _| async move {
        Heard::read(&mut stream).await;
        for byte in "HTTP/1.1 200 OK\r\nx: ".bytes().chain(std::iter::repeat(b'y')) {
            if stream.write_all(&[byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_times_out(&receiver.url("/")).await;
}

#[tokio::test]
async fn a_dropped_attempt_hangs_up() {
    let (gone, mut is_gone) = mpsc::channel(1);
    let mut receiver = Receiver::doing(move |mut stream, ear| {
        let gone = gone.clone();
        async move {
            ear.send(Heard::read(&mut stream).await.unwrap()).await.unwrap();
            let _ = stream.read_u8().await;
            gone.send(()).await.unwrap();
        }
    })
    .await;
    let (deliverer, timer) = (deliverer(), timers::http(&receiver.url("/"), ""));
    tokio::select! {
        outcome = deliverer.attempt(&timer, 1, Prepared::default()) => panic!("{outcome:?}"),
        _ = receiver.heard() => {}
    }
    is_gone.recv().await.unwrap();
}

#[tokio::test]
async fn a_closed_port_refuses() {
    let addr = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let failure = failure(call(&format!("http://{addr}/hook?token=secret"), "").await);
    assert_eq!(failure.kind, FailureKind::Refused);
    assert_eq!(failure.message, format!("connection refused (POST http://{addr}/hook)"));
}

#[tokio::test]
async fn a_connection_that_ends_before_the_answer_is_a_failure() {
    for (written, is_reset) in
        [("", true), ("", false), ("HTTP/1.1 200 OK\r\ncontent-le", true), ("HTTP/1.1 200 OK\r\ncontent-le", false)]
    {
        let mut receiver = Receiver::doing(move |mut stream, ear| async move {
            ear.send(Heard::read(&mut stream).await.unwrap()).await.unwrap();
            stream.write_all(written.as_bytes()).await.unwrap();
            if is_reset {
                stream.set_zero_linger().unwrap();
            }
        })
        .await;
        assert_eq!(failure(call(&receiver.url("/"), "").await).kind, FailureKind::Reset, "{written:?} {is_reset}");
        receiver.heard().await;
        // The call may have arrived, so it is not repeated unless the retry policy says so.
        assert_eq!(receiver.connections().await, 1);
    }
}

#[tokio::test]
async fn a_2xx_counts_whatever_happens_after_its_headers() {
    for is_reset in [true, false] {
        let receiver = Receiver::doing(move |mut stream, _| async move {
            Heard::read(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await.unwrap();
            if is_reset {
                // A reset throws away what has not been read: the caller, on the same thread, gets its turns first.
                for _ in 0..1000 {
                    tokio::task::yield_now().await;
                }
                stream.set_zero_linger().unwrap();
            }
        })
        .await;
        assert_eq!(call(&receiver.url("/"), "").await, Outcome::Delivered, "{is_reset}");
    }
}

#[tokio::test]
async fn an_endless_body_is_not_listened_to() {
    for head in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 1099511627776\r\n\r\n"] {
        let (sent, mut was_sent) = mpsc::channel(1);
        let receiver = Receiver::doing(move |mut stream, _| {
            let sent = sent.clone();
            async move {
                Heard::read(&mut stream).await;
                stream.write_all(head.as_bytes()).await.unwrap();
                let (piece, mut bytes) = ([b'x'; 16 * 1024], 0_usize);
                while let Ok(written) = stream.write(&piece).await {
                    bytes += written;
                }
                sent.send(bytes).await.unwrap();
            }
        })
        .await;
        let (outcome, took) = timed(call(&receiver.url("/"), "")).await;
        assert_eq!(outcome, Outcome::Delivered);
        assert!(took < Duration::from_secs(2), "{took:?}");
        // What got away went into the buffers of the sockets: the writer failed because the connection was dropped.
        let bytes = was_sent.recv().await.unwrap();
        assert!(bytes < 16 * 1024 * 1024, "{bytes}");
    }
}

#[tokio::test]
async fn a_body_that_drips_costs_its_connection_and_not_the_success() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell").await;
    let (outcome, took) = timed(call(&receiver.url("/"), "")).await;
    assert_eq!(outcome, Outcome::Delivered);
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test]
async fn after_a_dropped_connection_the_next_call_gets_a_new_one() {
    let mut receiver =
        Receiver::answering(format!("HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n{}", "x".repeat(100_000))).await;
    let (deliverer, timer) = (deliverer(), timers::http(&receiver.url("/"), ""));
    for attempt in 1..=3 {
        assert_eq!(deliverer.attempt(&timer, attempt, Prepared::default()).await.outcome, Outcome::Delivered);
    }
    assert_eq!(receiver.connections().await, 3);
}

#[tokio::test]
async fn an_idle_connection_that_the_receiver_has_closed_costs_nothing_but_a_new_one() {
    let close = Arc::new(tokio::sync::Notify::new());
    let closed = Arc::new(tokio::sync::Notify::new());
    let (asked, done) = (Arc::clone(&close), Arc::clone(&closed));
    let mut receiver = Receiver::doing(move |mut stream, _| {
        let (asked, done) = (Arc::clone(&asked), Arc::clone(&done));
        async move {
            if Heard::read(&mut stream).await.is_some() {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
                asked.notified().await;
                drop(stream);
                done.notify_one();
            }
        }
    })
    .await;
    let (deliverer, timer) = (deliverer(), timers::http(&receiver.url("/"), ""));
    for attempt in 1..=3 {
        let (attempted, took) = timed(deliverer.attempt(&timer, attempt, Prepared::default())).await;
        assert_eq!(attempted.outcome, Outcome::Delivered);
        assert!(took < Duration::from_secs(5), "{took:?}");
        close.notify_one();
        closed.notified().await;
    }
    assert_eq!(receiver.connections().await, 3);
}

#[tokio::test]
async fn an_answer_has_at_most_100_headers_and_64_kib_of_them() {
    let with = |headers: String| format!("HTTP/1.1 200 OK\r\n{headers}\r\n");
    let many = |count: usize| (1..count).map(|n| format!("x-{n}: v\r\n")).collect::<String>() + "content-length: 0\r\n";
    let long = |bytes: usize| format!("content-length: 0\r\nx-long: {}\r\n", "v".repeat(bytes));
    for (headers, is_taken) in
        [(many(100), true), (many(101), false), (long(65_500), true), (long(65_536), false), (long(1 << 20), false)]
    {
        let receiver = Receiver::answering(with(headers)).await;
        let outcome = call(&receiver.url("/"), "").await;
        if is_taken {
            assert_eq!(outcome, Outcome::Delivered);
        } else {
            assert_eq!(failure(outcome).kind, FailureKind::TooLarge);
        }
    }
}

#[tokio::test]
async fn what_is_not_http_is_no_answer() {
    for answer in ["SSH-2.0-OpenSSH_9.9\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n"] {
        let receiver = Receiver::answering(answer).await;
        assert_eq!(failure(call(&receiver.url("/"), "").await).kind, FailureKind::Answer, "{answer}");
    }
}

#[tokio::test]
async fn a_message_shows_the_place_but_not_the_query_and_not_for_ever() {
    let receiver = Receiver::answering("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n").await;
    let url = receiver.url(&format!("/{}?secret=1", "p".repeat(1000)));
    let message = failure(call(&url, "").await).message;
    assert!(message.starts_with("answered 500 Internal Server Error (POST http://127.0.0.1:"), "{message}");
    assert!(message.ends_with("ppp…)") && message.len() < 260 && !message.contains("secret"), "{message}");
}

#[tokio::test]
async fn a_nats_callback_without_a_server_says_so() {
    let mut timer = timers::http("http://127.0.0.1/", "");
    timer.definition.callback = domain::Callback::from_json(r#"{"type":"nats","topic":"a.b"}"#).unwrap();
    let failure = failure(deliverer().attempt(&timer, 1, Prepared::default()).await.outcome);
    assert_eq!(failure.kind, FailureKind::NotConfigured);
    assert!(failure.message.contains("no NATS server is configured"));
}
