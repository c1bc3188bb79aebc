//! Against a real server.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_nats::{Client, Message, Subscriber, jetstream};
use domain::{CorrelationId, ManualClock, Namespace, Timer, TimerId, Timestamp, TraceContext};
use futures_util::{StreamExt, future::join_all};
use rustls::RootCertStore;
use throwaway::{Nats, NatsUser};
use tokio::time::timeout;

use super::*;
use crate::{
    Config, Deliverer, NamespaceRules, Prepared, SigningSecrets,
    http::{Lookups, SystemNames},
    timers,
};

const TIMEOUT: Duration = Duration::from_secs(30);
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn deliverer(connection: Connection, config: Config) -> Deliverer {
    let clock = Arc::new(ManualClock::at(Timestamp::parse("now", "2030-01-31T12:00:00.75Z").unwrap()));
    let deliverer = Deliverer::with_outside(config, clock, Lookups::new(SystemNames), RootCertStore::empty()).unwrap();
    deliverer.with(NatsSender::new(connection, Arc::new(|_, _| Ok(())), watch::channel(true).1))
}

/// A deliverer that is connected to the server with this address.
async fn connected(url: &str) -> Deliverer {
    let connection = connect(url).await;
    deliverer(connection, Config::default())
}

async fn connect(url: &str) -> Connection {
    let (connection, driver) = ::nats::connection(::nats::Options::from_url("NATS_URL", url).unwrap(), "test");
    tokio::spawn(driver);
    until(|| connection.is_connected()).await;
    connection
}

async fn until(condition: impl Fn() -> bool) {
    let holds = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(TIMEOUT, holds).await.expect("what the test waits for does not happen");
}

/// Subscribes, and returns once the server knows it.
async fn subscribe(url: &str, subject: &str) -> (Client, Subscriber) {
    let client = async_nats::connect(url).await.unwrap();
    let subscriber = client.subscribe(subject.to_owned()).await.unwrap();
    let inbox = client.new_inbox();
    let mut echo = client.subscribe(inbox.clone()).await.unwrap();
    client.publish(inbox, "".into()).await.unwrap();
    echo.next().await.unwrap();
    (client, subscriber)
}

async fn next(subscriber: &mut Subscriber) -> Message {
    timeout(TIMEOUT, subscriber.next()).await.expect("no message came").unwrap()
}

fn headers(message: &Message) -> BTreeMap<String, String> {
    let headers = message.headers.as_ref().unwrap();
    headers.iter().map(|(name, values)| (name.to_string(), values[0].to_string())).collect()
}

async fn failure(deliverer: &Deliverer, timer: Timer) -> (FailureKind, String) {
    match deliverer.attempt(&timer, 1, Prepared::default()).await.outcome {
        Outcome::Failed(failure) => (failure.kind, failure.message),
        other => panic!("{other:?} is no failure"),
    }
}

#[tokio::test]
async fn the_payload_arrives_to_the_byte_with_all_headers() {
    let nats = throwaway::nats();
    let (_client, mut subscriber) = subscribe(&nats.url(), "exact.full").await;
    let payload = r#"{ "b":1.10,"a":12345678901234567890,"a":"\u00e9 é","n":null }"#;
    let more = format!(r#","key":"order 7","headers":{{"X-B":"1","x-a":"2\t3"}},"payload":{payload}"#);
    let mut timer = timers::nats("exact.full", &more);
    timer.definition.correlation_id = Some(CorrelationId::parse("order 7 é").unwrap());
    timer.definition.namespace = Namespace::parse("Größe 100%").unwrap();
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    timer.definition.options.trace = Some(Arc::new(TraceContext::parse(parent).unwrap().with_state("vendor=1")));
    let signing = SigningSecrets::parse(SECRET).unwrap();
    let deliverer = deliverer(connect(&nats.url()).await, Config { signing: Some(signing.clone()), ..Config::default() });

    assert_eq!(deliverer.attempt(&timer, 2, Prepared::default()).await.outcome, Outcome::Delivered);
    let message = next(&mut subscriber).await;
    assert_eq!((str::from_utf8(&message.payload), message.reply.is_none()), (Ok(payload), true));
    let at = Timestamp::parse("now", "2030-01-31T12:00:00.75Z").unwrap();
    let signature = signing.sign(&timer.webhook_id(), at, payload.as_bytes());
    let expected = [
        ("Content-Type", "application/json"),
        ("X-B", "1"),
        ("X-Correlation-Id", "order%207%20%C3%A9"),
        ("X-Timer-Attempt", "2"),
        ("X-Timer-Id", "0190163d-8694-739b-aea5-966c26f8ad91"),
        ("X-Timer-Key", "order 7"),
        ("X-Timer-Namespace", "Gr%C3%B6%C3%9Fe%20100%25"),
        ("X-Timer-Scheduled-At", "2030-01-31T12:00:00.250Z"),
        ("traceparent", parent),
        ("tracestate", "vendor=1"),
        ("webhook-id", "0190163d8694739baea5966c26f8ad91_6bc7c2273e090"),
        ("webhook-signature", signature.as_str()),
        ("webhook-timestamp", "1896091200"),
        ("x-a", "2\t3"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(headers(&message), BTreeMap::from(expected));
}

#[tokio::test]
async fn a_namespace_may_sign_with_a_secret_of_its_own() {
    const OF_ALL: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let nats = throwaway::nats();
    let (_client, mut subscriber) = subscribe(&nats.url(), "exact.signed").await;
    let rules = format!(r#"{{"billing":{{"signing_secret":"{SECRET}"}}}}"#);
    let namespaces = Arc::new(NamespaceRules::parse(&rules).unwrap());
    let config = Config { signing: Some(SigningSecrets::parse(OF_ALL).unwrap()), namespaces, ..Config::default() };
    let deliverer = deliverer(connect(&nats.url()).await, config);
    for (namespace, secret) in [("billing", SECRET), ("other", OF_ALL)] {
        let mut timer = timers::nats("exact.signed", "");
        timer.definition.namespace = Namespace::parse(namespace).unwrap();
        assert_eq!(deliverer.attempt(&timer, 1, Prepared::default()).await.outcome, Outcome::Delivered);
        let at = Timestamp::parse("now", "2030-01-31T12:00:00.75Z").unwrap();
        let signature = SigningSecrets::parse(secret).unwrap().sign(&timer.webhook_id(), at, b"");
        assert_eq!(headers(&next(&mut subscriber).await)["webhook-signature"], signature, "{namespace}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_sent() {
    let nats = throwaway::nats();
    let (_client, mut subscriber) = subscribe(&nats.url(), "exact.bare").await;
    assert_eq!(
        connected(&nats.url()).await.attempt(&timers::nats("exact.bare", ""), 1, Prepared::default()).await.outcome,
        Outcome::Delivered
    );
    let message = next(&mut subscriber).await;
    assert!(message.payload.is_empty());
    let headers = headers(&message);
    for name in ["X-Timer-Key", "X-Correlation-Id", "webhook-signature", "Nats-Msg-Id"] {
        assert_eq!(headers.get(name), None);
    }
}

#[tokio::test]
async fn what_the_caller_sets_is_not_set_again() {
    let nats = throwaway::nats();
    let (_client, mut subscriber) = subscribe(&nats.url(), "exact.own").await;
    let own = r#","headers":{"content-TYPE":"text/plain","x-correlation-id":"mine"},"payload":null"#;
    let mut timer = timers::nats("exact.own", own);
    timer.definition.correlation_id = Some(CorrelationId::parse("theirs").unwrap());
    assert_eq!(connected(&nats.url()).await.attempt(&timer, 1, Prepared::default()).await.outcome, Outcome::Delivered);
    let message = next(&mut subscriber).await;
    assert_eq!(message.payload.as_ref(), b"null");
    let headers = headers(&message);
    let named = |name: &str| {
        headers.iter().filter(|(set, _)| set.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str()).collect::<Vec<_>>()
    };
    assert_eq!((named("content-type"), named("x-correlation-id")), (vec!["text/plain"], vec!["mine"]));
}

#[tokio::test]
async fn a_stream_keeps_one_message_however_often_it_is_sent() {
    let nats = throwaway::nats();
    let context = jetstream::new(async_nats::connect(nats.url()).await.unwrap());
    let subjects = vec!["kept.>".to_owned()];
    let config = jetstream::stream::Config { name: "KEPT".to_owned(), subjects, ..Default::default() };
    let mut stream = context.create_stream(config).await.unwrap();
    let deliverer = connected(&nats.url()).await;
    let mut timer = timers::nats("kept.a", r#","jetstream":true,"payload":[1]"#);
    for attempt in 1..=3 {
        assert_eq!(deliverer.attempt(&timer, attempt, Prepared::default()).await.outcome, Outcome::Delivered);
    }
    assert_eq!(stream.info().await.unwrap().state.messages, 1);
    let stored = stream.get_raw_message(1).await.unwrap();
    assert_eq!(stored.payload.as_ref(), b"[1]");
    let id = timer.webhook_id();
    let ids = ["webhook-id", "Nats-Msg-Id"].map(|name| stored.headers.get(name).unwrap().as_str());
    assert_eq!(ids, [id.as_str(), id.as_str()]);

    // Another due time is another message.
    timer.execute_at = Timestamp::from_micros(timer.execute_at.as_micros() + 1);
    assert_eq!(deliverer.attempt(&timer, 1, Prepared::default()).await.outcome, Outcome::Delivered);
    assert_eq!(stream.info().await.unwrap().state.messages, 2);
}

#[tokio::test]
async fn each_reason_has_its_words() {
    let user = NatsUser::limited("timer", "secret", &["orders.ok.>", "_INBOX.>"], &["_INBOX.>"]);
    let nats = Nats::builder().max_payload_bytes(10_000).user(user).start();
    let connection = connect(&nats.url().replace("://", "://timer:secret@")).await;
    let deliverer = deliverer(connection.clone(), Config::default());

    let denied = (FailureKind::Denied, "no permission to publish to orders.late".to_owned());
    assert_eq!(failure(&deliverer, timers::nats("orders.late", "")).await, denied);
    assert_eq!(failure(&deliverer, timers::nats("orders.late", r#","jetstream":true"#)).await, denied);
    let no_stream = (FailureKind::NoStream, "no stream takes the subject orders.ok.a".to_owned());
    assert_eq!(failure(&deliverer, timers::nats("orders.ok.a", r#","jetstream":true"#)).await, no_stream);

    let large = timers::nats("orders.ok.a", &format!(r#","payload":"{}""#, "x".repeat(10_000)));
    let (kind, message) = failure(&deliverer, large).await;
    assert_eq!(kind, FailureKind::TooLarge);
    assert!(
        message.starts_with("the message has 10") && message.ends_with(" bytes, more than the 10000 that the NATS server takes"),
        "{message}"
    );

    nats.pause();
    let late = (FailureKind::Timeout, "the NATS server did not confirm the message within 5s".to_owned());
    assert_eq!(failure(&deliverer, timers::nats("orders.ok.a", "")).await, late);
    nats.stop_immediate();
    until(|| !connection.is_connected()).await;
    let away = (FailureKind::Disconnected, "not connected to the NATS server".to_owned());
    assert_eq!(failure(&deliverer, timers::nats("orders.ok.a", "")).await, away);
    assert_eq!(failure(&deliverer, timers::nats("orders.ok.a", r#","jetstream":true"#)).await, away);
    nats.start_again();
    timeout(TIMEOUT, async {
        while deliverer.attempt(&timers::nats("orders.ok.a", ""), 1, Prepared::default()).await.outcome != Outcome::Delivered {}
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_server_that_dies_during_the_call_delivers_nothing() {
    let nats = Nats::start();
    let deliverer = connected(&nats.url()).await;
    assert_eq!(deliverer.attempt(&timers::nats("dying", ""), 1, Prepared::default()).await.outcome, Outcome::Delivered);
    nats.pause();
    let (dying, ()) = tokio::join!(failure(&deliverer, timers::nats("dying", "")), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        nats.stop_immediate();
    });
    let lost = "the connection to the NATS server was lost before it confirmed the message".to_owned();
    assert_eq!(dying, (FailureKind::Reset, lost));
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_callbacks_in_one_burst_all_arrive() {
    let nats = throwaway::nats();
    let (_client, mut subscriber) = subscribe(&nats.url(), "burst.>").await;
    let deliverer = Arc::new(connected(&nats.url()).await);
    let calls = (0..10_000).map(|number| {
        let deliverer = deliverer.clone();
        tokio::spawn(async move {
            let mut timer = timers::nats(&format!("burst.{number}"), &format!(r#","payload":{number}"#));
            timer.definition.id = TimerId::random(timer.execute_at);
            deliverer.attempt(&timer, 1, Prepared::default()).await.outcome
        })
    });
    assert!(join_all(calls).await.into_iter().all(|outcome| outcome.unwrap() == Outcome::Delivered));
    let mut missing: std::collections::HashSet<_> = (0..10_000).collect();
    while !missing.is_empty() {
        let number: u32 = str::from_utf8(&next(&mut subscriber).await.payload).unwrap().parse().unwrap();
        assert!(missing.remove(&number), "{number} came twice");
    }
}
