//! What is remembered of a call.

use domain::{Attempt, AttemptLog};
use tokio::{io::AsyncWriteExt, net::TcpListener};

use super::{receiver::Heard, *};

async fn record(attempt_log: AttemptLog, url: &str, more: &str) -> Option<Attempt> {
    let config = Config { attempt_log, ..config() };
    let deliverer = Deliverer::with_outside(config, clock(), Lookups::new(SystemNames), RootCertStore::empty()).unwrap();
    deliverer.attempt(&timers::http(url, more), 2, Prepared::default()).await.record
}

fn answer(code: u16, body: &str) -> String {
    format!("HTTP/1.1 {code} Whatever\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

const TIMER: &str = r#","protocol":"timer","timeout":"500ms""#;

#[tokio::test]
async fn the_status_and_the_beginning_of_the_answer_are_remembered() {
    use AttemptLog::{Everything, Failures, Nothing};
    let long = "é".repeat(2000);
    let kept = "é".repeat(256);
    for (attempt_log, protocol, code, body, remembered) in [
        (Nothing, "", 503, "out of stock", None),
        (Failures, "", 503, "out of\nstock", Some(("status_5xx", "out of stock"))),
        (Failures, "", 404, long.as_str(), Some(("status_4xx", kept.as_str()))),
        (Failures, "", 200, "thanks", None),
        (Everything, "", 200, "thanks", Some(("delivered", "thanks"))),
        (Failures, TIMER, 429, "later", Some(("status_4xx", "later"))),
        (Failures, TIMER, 200, "thanks", Some(("answer", "thanks"))),
        (Failures, TIMER, 200, r#"{"ok":true}"#, None),
        (Everything, TIMER, 200, r#"{"ok":true}"#, Some(("delivered", r#"{"ok":true}"#))),
    ] {
        let receiver = Receiver::answering(answer(code, body)).await;
        let met = record(attempt_log, &receiver.url("/"), protocol).await;
        let met = met.map(|attempt| (attempt.number, attempt.outcome, attempt.status, attempt.detail));
        let expected = remembered.map(|(outcome, detail)| (2, outcome.to_owned(), Some(code), Some(detail.to_owned())));
        assert_eq!(met, expected, "{attempt_log:?} {protocol} {code}");
    }
}

#[tokio::test]
async fn without_an_answer_the_reason_is_remembered_and_no_query() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let met = record(AttemptLog::Failures, &format!("http://{closed}/hook?key=secret"), "").await.unwrap();
    assert_eq!((met.outcome.as_str(), met.status), ("refused", None));
    assert_eq!(met.detail, Some(format!("connection refused (POST http://{closed}/hook)")));
}

/// Says these bytes and then nothing more, without hanging up.
async fn stuck(said: &'static str) -> Receiver {
    Receiver::doing(move |mut stream, _| async move {
        while Heard::read(&mut stream).await.is_some() {
            stream.write_all(said.as_bytes()).await.unwrap();
        }
    })
    .await
}

#[tokio::test]
async fn an_answer_that_does_not_end_is_remembered_as_far_as_it_came() {
    let receiver = stuck("HTTP/1.1 500 Oops\r\ncontent-length: 100\r\n\r\nout of").await;
    let met = record(AttemptLog::Failures, &receiver.url("/"), r#","timeout":"20s""#).await.unwrap();
    assert_eq!((met.status, met.detail.as_deref()), (Some(500), Some("out of")));
    assert_eq!(met.outcome, "status_5xx");

    let receiver = stuck("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{").await;
    let met = record(AttemptLog::Failures, &receiver.url("/"), TIMER).await.unwrap();
    assert_eq!((met.outcome.as_str(), met.status), ("timeout", Some(200)));
    assert!(met.detail.unwrap().starts_with("no answer within 500ms"));
}

#[tokio::test]
async fn an_answer_that_is_not_read_is_not_read_for_the_record_either() {
    let receiver = stuck("HTTP/1.1 500 Oops\r\ncontent-length: 65537\r\n\r\nout of").await;
    let met = record(AttemptLog::Everything, &receiver.url("/"), r#","timeout":"20s""#).await.unwrap();
    assert_eq!(met.status, Some(500));
    assert!(met.detail.unwrap().starts_with("answered 500 "));
}
