//! What an answer means.

use domain::Span;
use tokio::io::AsyncWriteExt;

use super::{receiver::Heard, *};

fn status(code: u16, more: &str) -> String {
    format!("HTTP/1.1 {code} Whatever\r\ncontent-length: 0\r\n{more}\r\n")
}

#[tokio::test]
async fn only_a_2xx_is_a_success() {
    for code in [200, 201, 202, 204, 226, 299] {
        let receiver = Receiver::answering(status(code, "")).await;
        assert_eq!(call(&receiver.url("/"), "").await, Outcome::Delivered, "{code}");
    }
    for code in [300, 301, 304, 400, 401, 404, 408, 410, 429, 500, 502, 503, 599, 600, 999] {
        let receiver = Receiver::answering(status(code, "")).await;
        let failure = failure(call(&receiver.url("/"), "").await);
        assert_eq!(failure.kind, FailureKind::Status(code));
        assert!(failure.message.starts_with(&format!("answered {code}")), "{}", failure.message);
    }
}

#[tokio::test]
async fn an_interim_answer_is_not_the_answer() {
    let receiver = Receiver::answering(format!("HTTP/1.1 103 Early\r\nlink: x\r\n\r\n{}", status(500, ""))).await;
    assert_eq!(failure(call(&receiver.url("/"), "").await).kind, FailureKind::Status(500));
}

#[tokio::test]
async fn a_redirect_is_a_failure_and_leads_nowhere() {
    let mut target = Receiver::answering(status(200, "")).await;
    for code in [301, 302, 303, 307, 308] {
        let receiver = Receiver::answering(status(code, &format!("location: {}\r\n", target.url("/")))).await;
        let failure = failure(call(&receiver.url("/hook?secret=1"), "").await);
        assert_eq!(failure.kind, FailureKind::Status(code));
        assert!(failure.message.contains("redirects are not followed"), "{}", failure.message);
        assert!(!failure.message.contains("secret"), "{}", failure.message);
    }
    assert_eq!(target.connections().await, 0);
}

#[tokio::test]
async fn a_receiver_may_ask_for_time() {
    for (header, seconds) in [
        ("retry-after: 7\r\n", Some(7)),
        // The clock stands at 12:00:00.75.
        ("Retry-After: Thu, 31 Jan 2030 12:00:10 GMT\r\n", Some(10)),
        ("retry-after: later\r\n", None),
        ("", None),
    ] {
        for protocol in ["webhook", "timer"] {
            let receiver = Receiver::answering(status(429, header)).await;
            let failure = failure(call(&receiver.url("/"), &format!(r#","protocol":"{protocol}""#)).await);
            assert_eq!(failure.retry_after.map(Span::as_secs_up), seconds, "{header}");
        }
    }
}

async fn timer_answer(answer: String) -> Outcome {
    let receiver = Receiver::answering(answer).await;
    call(&receiver.url("/"), r#","protocol":"timer""#).await
}

fn with_body(code: u16, body: &str) -> String {
    format!("HTTP/1.1 {code} Whatever\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn the_timer_protocol_listens_to_the_body_of_a_200() {
    let at = Timestamp::parse("at", "2031-01-01T00:00:00Z").unwrap();
    let again = r#"{"ok":false,"nextExecuteAt":"2031-01-01T00:00:00Z"}"#;
    assert_eq!(timer_answer(with_body(200, r#"{"ok":true}"#)).await, Outcome::Delivered);
    assert_eq!(timer_answer(with_body(200, again)).await, Outcome::Rescheduled { at });
    for (code, body, kind) in [
        (200, r#"{"ok":false}"#, FailureKind::Answer),
        (200, "", FailureKind::Answer),
        (201, r#"{"ok":true}"#, FailureKind::Status(201)),
        (500, again, FailureKind::Status(500)),
    ] {
        assert_eq!(failure(timer_answer(with_body(code, body)).await).kind, kind, "{code} {body}");
    }
}

#[tokio::test]
async fn no_more_than_64_kib_of_a_timer_answer_is_read() {
    let padded = |bytes: usize| format!(r#"{{"ok":true{}}}"#, " ".repeat(bytes - 11));
    assert_eq!(timer_answer(with_body(200, &padded(64 * 1024))).await, Outcome::Delivered);
    let too_large = failure(timer_answer(with_body(200, &padded(64 * 1024 + 1))).await);
    assert_eq!(too_large.kind, FailureKind::TooLarge);
}

#[tokio::test]
async fn half_a_timer_answer_is_none() {
    let receiver = Receiver::doing(|mut stream, _| async move {
        Heard::read(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{\"ok\":true}").await.unwrap();
    })
    .await;
    let failure = failure(call(&receiver.url("/"), r#","protocol":"timer""#).await);
    assert_eq!(failure.kind, FailureKind::Reset);
}

#[tokio::test]
async fn a_timer_answer_that_does_not_end_is_too_late() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{\"ok\":true}").await;
    let failure = failure(call(&receiver.url("/"), r#","protocol":"timer","timeout":"150ms""#).await);
    assert_eq!(failure.kind, FailureKind::Timeout);
}
