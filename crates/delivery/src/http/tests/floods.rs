//! Receivers that send without end do not hold the thread that everything else runs on, which is that of the test.

use std::time::Duration;

use tokio::{io::AsyncWriteExt, net::TcpListener, task::JoinSet};

use super::{receiver::Heard, *};

const INTERIM: &str = "HTTP/1.1 100 Continue\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const FLOODS: usize = 64;
/// Far beyond every limit, and no endless loop where there is none.
const FLOOD_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Listens on a thread of its own, so that it can always send. Every call gets `first`, and then `again` and again.
fn flooding(first: &'static str, again: &str) -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let addr = listener.local_addr().unwrap();
    let block = again.repeat(64 * 1024 / again.len());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener).unwrap();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let block = block.clone();
                tokio::spawn(async move {
                    Heard::read(&mut stream).await;
                    let mut sent = 0;
                    let mut result = stream.write_all(first.as_bytes()).await;
                    while result.is_ok() && sent < FLOOD_BYTES_MAX {
                        result = stream.write_all(block.as_bytes()).await;
                        sent += block.len();
                    }
                });
            }
        });
    });
    addr
}

/// How long, at worst, the thread worked without giving way to a task that wanted to run every few milliseconds while `work` was done.
/// CPU time of the thread, so that a machine that stands still does not count.
async fn held_up<T>(work: impl Future<Output = T>) -> (T, Duration) {
    const STEP: Duration = Duration::from_millis(5);
    let mut work = std::pin::pin!(work);
    let mut worst = Duration::ZERO;
    loop {
        let before = thread_cpu_time();
        let done = tokio::select! {
            done = work.as_mut() => Some(done),
            () = tokio::time::sleep(STEP) => None,
        };
        worst = worst.max(thread_cpu_time().saturating_sub(before));
        if let Some(done) = done {
            return (done, worst);
        }
    }
}

fn thread_cpu_time() -> Duration {
    rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).try_into().unwrap()
}

async fn outcomes_of(timers: Vec<domain::Timer>) -> Vec<Outcome> {
    let deliverer = Arc::new(deliverer());
    let mut calls = JoinSet::new();
    for timer in timers {
        let deliverer = Arc::clone(&deliverer);
        calls.spawn(async move { deliverer.attempt(&timer, 1, Prepared::default()).await.outcome });
    }
    calls.join_all().await
}

#[tokio::test]
async fn interim_responses_without_end_fail_the_call_and_hold_up_no_other() {
    let addr = flooding("", INTERIM);
    let timers = vec![timers::http(&format!("http://{addr}/"), r#","timeout":"20s""#); FLOODS];
    let (outcomes, worst) = held_up(outcomes_of(timers)).await;
    for outcome in outcomes {
        let failure = failure(outcome);
        assert_eq!(failure.kind, FailureKind::Answer, "{}", failure.message);
        assert_eq!(failure.message, format!("sent more than 8 interim responses (POST http://{addr}/)"));
    }
    assert!(worst < Duration::from_millis(500), "the thread was held for {worst:?}");
}

#[tokio::test]
async fn a_few_interim_responses_before_the_answer_are_passed_over() {
    let receiver = Receiver::answering(format!("{}{OK}", INTERIM.repeat(8))).await;
    let (deliverer, timer) = (deliverer(), timers::http(&receiver.url("/"), ""));
    // As many again on the same connection.
    for attempt in 1..=3 {
        assert_eq!(deliverer.attempt(&timer, attempt, Prepared::default()).await.outcome, Outcome::Delivered);
    }
    let receiver = Receiver::answering(format!("{}{OK}", INTERIM.repeat(9))).await;
    // All of it was read at once, and the answer with it.
    assert_eq!(call(&receiver.url("/"), "").await, Outcome::Delivered);
}

#[tokio::test]
async fn large_interim_responses_are_limited_by_their_bytes() {
    let large = format!("HTTP/1.1 103 Early Hints\r\nlink: {}\r\n\r\n", "x".repeat(60_000));
    let addr = flooding("", &large);
    let failure = failure(call(&format!("http://{addr}/"), r#","timeout":"20s""#).await);
    assert_eq!(failure.kind, FailureKind::Answer, "{}", failure.message);
    assert!(failure.message.starts_with("sent more than 262144 bytes before"), "{}", failure.message);
}

#[tokio::test]
async fn a_body_in_tiny_chunks_without_end_holds_up_no_other() {
    for protocol in ["webhook", "timer"] {
        let addr = flooding("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "1\r\nx\r\n");
        let more = format!(r#","protocol":"{protocol}","timeout":"20s""#);
        let timers = vec![timers::http(&format!("http://{addr}/"), &more); FLOODS];
        let (outcomes, worst) = held_up(outcomes_of(timers)).await;
        for outcome in outcomes {
            match protocol {
                "webhook" => assert_eq!(outcome, Outcome::Delivered),
                _ => assert_eq!(failure(outcome).kind, FailureKind::TooLarge),
            }
        }
        assert!(worst < Duration::from_millis(500), "{protocol}: the thread was held for {worst:?}");
    }
}
