//! What arrives at a receiver.

use std::{pin::pin, time::Duration};

use domain::{CorrelationId, Key, Namespace, TraceContext};
use futures_util::future::join_all;
use tokio::time::timeout;

use super::*;
use crate::{NamespaceRules, SigningSecrets, http::connect_limiter::CONNECTS_PENDING_MAX};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

#[tokio::test]
async fn the_payload_arrives_to_the_byte_with_all_headers() {
    let mut receiver = Receiver::answering(OK).await;
    let payload = r#"{ "b":1.10,"a":12345678901234567890,"a":"\u00e9 é","n":null }"#;
    let mut timer =
        timers::http(&receiver.url("/hook/a?key=v%20w"), &format!(r#","headers":{{"X-B":"1","x-a":"2 3"}},"payload":{payload}"#));
    timer.definition.correlation_id = Some(CorrelationId::parse("order 7 é").unwrap());

    assert_eq!(deliverer().attempt(&timer, 2, Prepared::default()).await.outcome, Outcome::Delivered);
    let heard = receiver.heard().await;
    assert_eq!(heard.text(), payload);
    let head = [
        "POST /hook/a?key=v%20w HTTP/1.1",
        "x-b: 1",
        "x-a: 2 3",
        "content-type: application/json",
        "user-agent: timer-platform/1.2.3",
        "x-correlation-id: order%207%20%C3%A9",
        "x-timer-id: 0190163d-8694-739b-aea5-966c26f8ad91",
        "x-timer-namespace: default",
        "x-timer-attempt: 2",
        "x-timer-scheduled-at: 2030-01-31T12:00:00.250Z",
        "webhook-id: 0190163d8694739baea5966c26f8ad91_6bc7c2273e090",
        "webhook-timestamp: 1896091200",
        &format!("host: {}", receiver.addr),
        &format!("content-length: {}", payload.len()),
        "",
        "",
    ];
    assert_eq!(heard.head.split("\r\n").collect::<Vec<_>>(), head);
}

#[tokio::test]
async fn a_callback_without_payload_has_an_empty_body() {
    let mut receiver = Receiver::answering(OK).await;
    assert_eq!(call(&receiver.url(""), "").await, Outcome::Delivered);
    let heard = receiver.heard().await;
    assert_eq!((heard.header("content-length"), heard.text()), (Some("0"), ""));
    assert_eq!((heard.header("accept-encoding"), heard.header("webhook-signature")), (None, None));
}

#[tokio::test]
async fn the_largest_payload_arrives_whole() {
    let mut receiver = Receiver::answering(OK).await;
    let payload = format!("\"{}\"", "x".repeat(domain::limits::PAYLOAD_BYTES_MAX - 2));
    assert_eq!(call(&receiver.url("/"), &format!(r#","payload":{payload}"#)).await, Outcome::Delivered);
    assert!(receiver.heard().await.text() == payload);
}

#[tokio::test]
async fn what_the_caller_sets_is_not_set_again() {
    let mut receiver = Receiver::answering(OK).await;
    let own = r#","headers":{"Content-Type":"text/plain","USER-AGENT":"me","x-correlation-id":"mine"}"#;
    let mut timer = timers::http(&receiver.url("/"), own);
    timer.definition.correlation_id = Some(CorrelationId::parse("theirs").unwrap());
    assert_eq!(deliverer().attempt(&timer, 1, Prepared::default()).await.outcome, Outcome::Delivered);
    let heard = receiver.heard().await;
    let values = ["content-type", "user-agent", "x-correlation-id"].map(|name| heard.header(name));
    assert_eq!(values, [Some("text/plain"), Some("me"), Some("mine")]);
}

#[tokio::test]
async fn the_trace_of_the_creation_is_passed_on_unless_the_client_sets_its_own() {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let own = "00-aaaabbbbccccddddaaaabbbbccccdddd-1111222233334444-00";
    for (more, expected) in [
        (String::new(), [Some(parent), Some("vendor=1")]),
        (format!(r#","headers":{{"TraceParent":"{own}"}}"#), [Some(own), None]),
    ] {
        let mut receiver = Receiver::answering(OK).await;
        let mut timer = timers::http(&receiver.url("/"), &more);
        timer.definition.options.trace = Some(Arc::new(TraceContext::parse(parent).unwrap().with_state("vendor=1")));
        assert_eq!(deliverer().attempt(&timer, 1, Prepared::default()).await.outcome, Outcome::Delivered);
        let heard = receiver.heard().await;
        assert_eq!(["traceparent", "tracestate"].map(|name| heard.header(name)), expected);
    }
}

#[tokio::test]
async fn a_namespace_of_any_characters_arrives() {
    let mut receiver = Receiver::answering(OK).await;
    let mut timer = timers::http(&receiver.url("/"), "");
    timer.definition.namespace = Namespace::parse("Größe 100%").unwrap();
    assert_eq!(deliverer().attempt(&timer, 1, Prepared::default()).await.outcome, Outcome::Delivered);
    assert_eq!(receiver.heard().await.header("x-timer-namespace"), Some("Gr%C3%B6%C3%9Fe%20100%25"));
}

#[tokio::test]
async fn what_is_signed_is_what_is_sent() {
    let mut receiver = Receiver::answering(OK).await;
    let secrets = SigningSecrets::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let config = Config { signing: Some(secrets.clone()), ..config() };
    let deliverer = Deliverer::with_outside(config, clock(), Lookups::new(SystemNames), RootCertStore::empty()).unwrap();
    for more in ["", r#","payload":{"a":1}"#, r#","payload":[1],"protocol":"timer""#] {
        deliverer.attempt(&timers::http(&receiver.url("/"), more), 1, Prepared::default()).await;
        let heard = receiver.heard().await;
        let at = Timestamp::from_micros(heard.header("webhook-timestamp").unwrap().parse::<i64>().unwrap() * 1_000_000);
        let signature = secrets.sign(heard.header("webhook-id").unwrap(), at, &heard.body);
        assert_eq!(heard.header("webhook-signature"), Some(signature.as_str()), "{more}");
    }
}

#[tokio::test]
async fn a_namespace_may_sign_with_a_secret_of_its_own() {
    const OWN: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const OF_ALL: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let mut receiver = Receiver::answering(OK).await;
    let rules = format!(r#"{{"billing":{{"signing_secret":"{OWN}"}},"plain":{{"retry_policy":{{}}}}}}"#);
    for (namespace, of_all, expected) in [
        ("billing", Some(OF_ALL), Some(OWN)),
        ("plain", Some(OF_ALL), Some(OF_ALL)),
        ("other", Some(OF_ALL), Some(OF_ALL)),
        ("billing", None, Some(OWN)),
        ("plain", None, None),
    ] {
        let secrets = |text: Option<&str>| text.map(|text| SigningSecrets::parse(text).unwrap());
        let namespaces = Arc::new(NamespaceRules::parse(&rules).unwrap());
        let config = Config { signing: secrets(of_all), namespaces, ..config() };
        let deliverer = Deliverer::with_outside(config, clock(), Lookups::new(SystemNames), RootCertStore::empty()).unwrap();
        let mut timer = timers::http(&receiver.url("/"), r#","payload":1"#);
        timer.definition.namespace = Namespace::parse(namespace).unwrap();
        deliverer.attempt(&timer, 1, Prepared::default()).await;
        let heard = receiver.heard().await;
        let at = Timestamp::from_micros(heard.header("webhook-timestamp").unwrap().parse::<i64>().unwrap() * 1_000_000);
        let signature = secrets(expected).map(|secrets| secrets.sign(heard.header("webhook-id").unwrap(), at, &heard.body));
        assert_eq!(heard.header("webhook-signature"), signature.as_deref(), "{namespace} {of_all:?}");
    }
}

#[tokio::test]
async fn the_timer_protocol_wraps_the_payload() {
    let mut receiver = Receiver::answering(OK).await;
    let mut timer = timers::http(&receiver.url("/"), r#","payload":{ "a":1.10 },"protocol":"timer""#);
    deliverer().attempt(&timer, 3, Prepared::default()).await;
    let body = r#"{"timerId":"0190163d-8694-739b-aea5-966c26f8ad91","namespace":"default","executeAt":"2030-01-31T12:00:00.250Z","attempt":3,"payload":{ "a":1.10 }}"#;
    assert_eq!(receiver.heard().await.text(), body);

    timer = timers::http(&receiver.url("/"), r#","protocol":"timer""#);
    timer.definition.key = Some(Key::parse("order \"7\" é").unwrap());
    timer.definition.namespace = Namespace::parse("a\\b").unwrap();
    deliverer().attempt(&timer, 1, Prepared::default()).await;
    let body =
        r#"{"timerId":"order \"7\" é","namespace":"a\\b","executeAt":"2030-01-31T12:00:00.250Z","attempt":1,"payload":null}"#;
    assert_eq!(receiver.heard().await.text(), body);
}

#[tokio::test]
async fn every_url_that_is_accepted_can_be_called() {
    let mut receiver = Receiver::answering(OK).await;
    // All of ASCII in path and query, and more; what must be encoded is.
    let odd: String = (0x20..=0x7e_u8).map(char::from).filter(|c| !matches!(c, '#' | '?' | '"' | '\\')).collect();
    for path in [format!("/{odd}"), format!("/?{odd}"), "/é/😀?ü=ß".to_owned(), "//a/../b/./c".to_owned(), "?q".to_owned()] {
        assert_eq!(call(&receiver.url(&path), "").await, Outcome::Delivered, "{path}");
        receiver.heard().await;
    }
}

#[tokio::test]
async fn connections_are_used_again() {
    for answer in [
        OK,
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        "HTTP/1.1 503 Busy\r\ncontent-length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ] {
        for protocol in ["webhook", "timer"] {
            let mut receiver = Receiver::answering(answer).await;
            let deliverer = deliverer();
            let timer = timers::http(&receiver.url("/"), &format!(r#","protocol":"{protocol}""#));
            for attempt in 1..=20 {
                deliverer.attempt(&timer, attempt, Prepared::default()).await;
                assert_eq!(receiver.heard().await.header("x-timer-attempt"), Some(attempt.to_string().as_str()));
            }
            assert_eq!(receiver.connections().await, 1, "{protocol} {answer}");
        }
    }
}

#[tokio::test]
async fn the_time_of_a_call_begins_when_it_can_go_out() {
    let receiver = Receiver::answering(OK).await;
    let (deliverer, timer) = (deliverer(), timers::http(&receiver.url("/"), r#","timeout":"1s""#));
    let others = join_all((0..CONNECTS_PENDING_MAX).map(|_| deliverer.prepare(&timer))).await;
    let mut call = pin!(deliverer.attempt(&timer, 1, Prepared::default()));
    assert!(timeout(Duration::from_millis(1_100), call.as_mut()).await.is_err(), "there is no permit for it");
    drop(others);
    assert_eq!(call.await.outcome, Outcome::Delivered);
}
