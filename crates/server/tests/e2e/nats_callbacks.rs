//! What subscribers get when a timer publishes over NATS.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use throwaway::Nats;

use crate::{
    lateness::Lateness,
    rig::{
        Backend, Bus, Client, Message, Receiver, Service, beside_others, blocking, by_tier, callback_to, for_each_store, heavy,
        instant, micros, now, stored_at, told_to, tolerated,
    },
};

const SOON: Duration = Duration::from_secs(10);
const BURST: usize = 10_000;
/// More than the permits of a service, and than what it records at once.
const BURST_IN_A_BUILD: usize = 5_000;
const BURST_DRAINED_WITHIN: Duration = Duration::from_secs(60);
const REGISTERED_AT_ONCE: usize = 48;
/// The server that hangs is given these, all at once, and HTTP receivers the others, one after another.
const HANGING: usize = 500;
const OTHERS: usize = 150;
const OTHERS_BETWEEN_MICROS: i64 = 20_000;
const OTHERS_LATENESS_MILLIS_MAX: f64 = 1_000.0;

for_each_store!(
    subscribers_get_the_payload_as_the_text_it_was,
    a_message_has_every_header_that_was_promised,
    a_stream_holds_a_message_once_under_its_webhook_id,
    messages_due_at_one_instant_all_arrive_once,
);

async fn subscribers_get_the_payload_as_the_text_it_was(backend: Backend) {
    let _machine = beside_others().await;
    let nats = throwaway::nats();
    let topic = format!("verbatim.{}", backend.name());
    let listener = Bus::connect(&nats.url()).await.listen(&topic).await;
    let mut service = Service::start_with_nats(&backend, &nats.url()).await;
    let client = service.client();
    let payloads = [
        Some(r#"{"b":1.10,"a":12345678901234567890,"é":" "}"#),
        Some(r#"{"z":1E+2,"n":-0,"z2":"\u00e9 é e\u0301 😀","list":[1, 2 ,3]}"#),
        Some(r#"{ "b" : 1 , "a" : {} }"#),
        Some(r#""just a text""#),
        Some("0.1000"),
        Some("null"),
        None,
    ];
    for (n, payload) in payloads.into_iter().enumerate() {
        let payload_field = payload.map(|payload| format!(r#","payload":{payload}"#)).unwrap_or_default();
        let body = format!(r#"{{"delay":"1ms","callback":{{"type":"nats","topic":"{topic}"{payload_field}}}}}"#);
        let created = client.post(&body).await;
        assert_eq!(created.status, 201, "{}", created.text);
        let heard = listener.wait_for(n + 1, SOON).await;
        assert_eq!(heard[n].text(), payload.unwrap_or_default());
        assert_eq!(heard[n].header("X-Timer-Id"), created.id());
        let timer = client.wait_for_status(&created.id(), "completed").await;
        assert_eq!((&timer["attempt"], &timer["last_error"]), (&json!(1), &Value::Null), "{timer}");
        let shown = client.get(&format!("/timers/{}", created.id())).await.text;
        assert!(shown.contains(&payload_field), "{payload_field} in {shown}");
    }
    assert_eq!(listener.count(), payloads.len());
    service.stop().await;
}

async fn a_message_has_every_header_that_was_promised(backend: Backend) {
    let _machine = beside_others().await;
    let nats = throwaway::nats();
    let topic = format!("headers.{}", backend.name());
    let listener = Bus::connect(&nats.url()).await.listen(&topic).await;
    let settings = [("MIN_DELAY", "0s"), ("NATS_URL", &nats.url()), ("SIGNING_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")];
    let mut service = Service::start_with(&backend, &settings).await;
    let client = service.client();
    client.wait_for_health("nats", "connected").await;
    let at = now() + 300_000;
    let mut callback = told_to(&topic, &json!({"order": 456}));
    callback["key"] = json!("order-456 / blue");
    callback["headers"] = json!({"X-Team": "billing", "Authorization": "Bearer token", "x-empty": ""});
    let timer =
        json!({"execute_at": instant(at), "namespace": "shop", "key": "order-1", "correlation_id": "c-7", "callback": callback});
    let id = client.create(&timer).await;
    let heard = &listener.wait_for(1, SOON).await[0];

    for (name, value) in [
        ("X-Timer-Id", id.as_str()),
        ("X-Timer-Namespace", "shop"),
        ("X-Timer-Attempt", "1"),
        ("X-Timer-Key", "order-456 / blue"),
        ("X-Correlation-Id", "c-7"),
        ("X-Team", "billing"),
        ("Authorization", "Bearer token"),
        ("x-empty", ""),
    ] {
        let values: Vec<&str> = heard.headers.get_all(name).map(|value| value.as_str()).collect();
        assert_eq!(values, [value], "{name} in {heard:?}");
    }
    assert_eq!(micros(heard.header("X-Timer-Scheduled-At")), at);
    assert!(heard.at >= at, "early by {} µs", at - heard.at);
    assert!(!heard.header("webhook-id").is_empty());
    let stamp: i64 = heard.header("webhook-timestamp").parse().expect("seconds");
    assert!((stamp - now() / 1_000_000).abs() <= 30, "{stamp}");
    assert!(heard.header("webhook-signature").starts_with("v1,"), "{heard:?}");
    assert_eq!(heard.text(), r#"{"order":456}"#);
    client.wait_for_status(&id, "completed").await;
    assert!(!service.log().contains("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") && !service.log().contains("Bearer token"));
    service.stop().await;
}

async fn a_stream_holds_a_message_once_under_its_webhook_id(backend: Backend) {
    let _machine = beside_others().await;
    let nats = throwaway::nats();
    let stream = format!("STORED-{}", backend.name());
    let topic = format!("stored.{}", backend.name());
    let bus = Bus::connect(&nats.url()).await;
    bus.make_stream(&stream, &topic, 1).await;
    let mut service = Service::start_with_nats(&backend, &nats.url()).await;
    let client = service.client();
    let mut callback = stored_at(&topic, &json!({"n": 1}));
    callback["headers"] = json!({"X-Team": "billing"});
    let id = client.create(&json!({"delay": "1ms", "callback": callback})).await;
    client.wait_for_status(&id, "completed").await;

    // It is completed, so it is there: the test does not wait for it.
    let stored = bus.witness(&stream).read().await.to_vec();
    assert_eq!(stored.len(), 1, "{stored:?}");
    assert_eq!((stored[0].text(), stored[0].subject.as_str()), (r#"{"n":1}"#, topic.as_str()));
    assert_eq!((stored[0].header("X-Team"), stored[0].header("X-Timer-Id")), ("billing", id.as_str()));
    assert!(!stored[0].header("webhook-id").is_empty());
    assert_eq!(stored[0].header("Nats-Msg-Id"), stored[0].header("webhook-id"));
    service.stop().await;
}

async fn messages_due_at_one_instant_all_arrive_once(backend: Backend) {
    let _machine = heavy().await;
    let nats = blocking(Nats::start);
    let listener = Bus::connect(&nats.url()).await.listen("burst").await;
    let mut service = Service::start_with_nats(&backend, &nats.url()).await;

    let (due, ids) = register_burst(&service.client(), &told_to("burst", &json!(1))).await;
    let heard = listener.wait_for(burst(), BURST_DRAINED_WITHIN).await;
    service.client().wait_until_finished(SOON).await;

    print_rate(&backend, "core", due, &heard);
    assert_same_timers(&ids, &listener.heard());
    assert_eq!(service.client().count("completed").await, burst() as u64);
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_for_a_stream_due_at_one_instant_are_all_in_it_once() {
    let _machine = heavy().await;
    let backend = Backend::sqlite();
    let nats = blocking(Nats::start);
    let bus = Bus::connect(&nats.url()).await;
    bus.make_stream("BURST", "burst", 1).await;
    let mut service = Service::start_with_nats(&backend, &nats.url()).await;

    let (due, ids) = register_burst(&service.client(), &stored_at("burst", &json!(1))).await;
    let mut witness = bus.witness("BURST");
    witness.wait_for(burst(), BURST_DRAINED_WITHIN).await;
    service.client().wait_until_finished(SOON).await;

    let stored = witness.read().await;
    print_rate(&backend, "JetStream", due, stored);
    assert_same_timers(&ids, stored);
    assert_eq!(service.client().count("completed").await, burst() as u64);
    service.stop().await;
}

fn burst() -> usize {
    by_tier(BURST, BURST_IN_A_BUILD)
}

/// Registers timers that are all due at one instant, and says when; their ids.
async fn register_burst(client: &Client, callback: &Value) -> (i64, HashSet<String>) {
    // As long as registering takes on a slow machine; those that were registered first must not be called before the last.
    let due = now() + 8_000_000;
    let timer = json!({"execute_at": instant(due), "callback": callback});
    let ids: HashSet<String> =
        stream::iter(0..burst()).map(async |_| client.create(&timer).await).buffer_unordered(REGISTERED_AT_ONCE).collect().await;
    println!("{} timers were registered {:.1} s before they were due", ids.len(), (due - now()) as f64 / 1e6);
    (due, ids)
}

fn print_rate(backend: &Backend, kind: &str, due: i64, messages: &[Message]) {
    let last = messages.iter().map(|message| message.at).max().unwrap_or_default();
    let took = (last - due) as f64 / 1e6;
    let rate = messages.len() as f64 / took;
    println!("{}: {} messages ({kind}) in one burst arrived in {took:.2} s, {rate:.0}/s", backend.name(), messages.len());
}

fn assert_same_timers(ids: &HashSet<String>, messages: &[Message]) {
    let told: HashSet<String> = messages.iter().map(|message| message.header("X-Timer-Id").to_owned()).collect();
    let webhook_ids: HashSet<&str> = messages.iter().map(|message| message.header("webhook-id")).collect();
    assert_eq!((told.len(), messages.len(), webhook_ids.len()), (ids.len(), ids.len(), ids.len()), "lost or twice");
    assert_eq!(told, *ids);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_over_http_are_on_time_while_the_nats_server_hangs() {
    let _machine = heavy().await;
    let backend = Backend::sqlite();
    let nats = blocking(Nats::start);
    let receiver = Receiver::start();
    let mut service = Service::start_with_nats(&backend, &nats.url()).await;
    let client = service.client();
    let register =
        async |at: i64, callback: Value| client.create(&json!({"execute_at": instant(at), "callback": callback})).await;

    let first = now() + 5_000_000;
    let hanging: Vec<String> = stream::iter(0..HANGING)
        .map(|n| register(first, if n % 2 == 0 { told_to("hangs", &json!(n)) } else { stored_at("hangs.too", &json!(n)) }))
        .buffer_unordered(REGISTERED_AT_ONCE)
        .collect()
        .await;
    blocking(|| nats.pause());
    let due: HashMap<String, i64> = stream::iter(0..OTHERS)
        .map(async |n| {
            let at = first + OTHERS_BETWEEN_MICROS * n as i64;
            (register(at, callback_to(&receiver.url("/beside"), &json!(n))).await, at)
        })
        .buffer_unordered(REGISTERED_AT_ONCE)
        .collect()
        .await;
    assert!(now() < first, "registered too late to mean anything");
    let calls = receiver.wait_for(OTHERS, Duration::from_secs(20)).await;

    let lateness = Lateness::of(calls.iter().map(|call| call.arrived - due[call.timer_id()]));
    println!("{}: beside {HANGING} timers whose NATS server hangs: {lateness}", backend.name());
    assert!(lateness.max() < tolerated(OTHERS_LATENESS_MILLIS_MAX), "{lateness}");
    for id in &hanging {
        assert_ne!(client.timer(id).await["status"], "completed", "no server took it");
    }
    blocking(|| nats.resume());
    client.wait_until_finished(Duration::from_secs(60)).await;
    service.stop().await;
}
