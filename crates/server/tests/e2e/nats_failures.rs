//! A message that no NATS server has taken is never `completed`, and its timer says why.

use std::{collections::HashMap, time::Duration};

use async_nats::ConnectOptions;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use throwaway::{Nats, NatsUser};

use crate::rig::{
    Backend, Bus, Message, Service, beside_others, blocking, eventually, for_each_store, instant, now, stored_at, told_to,
};

/// Confirmations are waited for up to five seconds.
const UNCONFIRMED_WITHIN: Duration = Duration::from_secs(20);
const SOON: Duration = Duration::from_secs(10);
/// Together more refusals than the library of the service holds for it.
const ALLOWED_AND_DENIED: usize = 600;
const REGISTERED_AT_ONCE: usize = 48;

for_each_store!(
    a_server_that_is_away_makes_a_failed_timer_with_the_reason,
    a_retry_policy_outlives_a_server_that_is_away,
    what_the_server_refuses_fails_with_the_reason,
    a_server_that_stands_still_has_taken_nothing,
);

async fn a_server_that_is_away_makes_a_failed_timer_with_the_reason(backend: Backend) {
    let _machine = beside_others().await;
    let nats = blocking(Nats::start);
    let mut service = Service::start_with_nats(&backend, &nats.url()).await;
    let client = service.client();
    // Registered while it is there, due when it is not.
    let at = now() + 4_000_000;
    let register = async |callback: Value| client.create(&json!({"execute_at": instant(at), "callback": callback})).await;
    let ids = [register(told_to("gone", &json!(1))).await, register(stored_at("gone", &json!(1))).await];
    blocking(|| nats.stop_immediate());
    assert!(now() < at, "stopped too late to mean anything");

    for id in &ids {
        let timer = client.wait_for_status(id, "failed").await;
        assert_failed_because(&timer, "not connected to the NATS server");
        assert_eq!(timer["attempt"], 1, "{timer}");
    }
    // And registered when it is not there: it may well be back in time.
    let id = client.create(&json!({"delay": "1ms", "callback": told_to("gone", &json!(1))})).await;
    assert_failed_because(&client.wait_for_status(&id, "failed").await, "not connected to the NATS server");
    service.stop().await;
}

async fn a_retry_policy_outlives_a_server_that_is_away(backend: Backend) {
    let _machine = beside_others().await;
    let nats = blocking(Nats::start);
    let bus = Bus::connect(&nats.url()).await;
    // A stream takes what is published without asking for one, too: so it can tell what the server took of both kinds.
    bus.make_stream("AWAY", "away.>", 1).await;
    let mut service = Service::start_with_nats(&backend, &nats.url()).await;
    let client = service.client();
    blocking(|| nats.stop_immediate());
    let policy = json!({"max_retries": 100, "initial_interval": "200ms", "max_interval": "500ms"});
    let register =
        async |callback: Value| client.create(&json!({"delay": "1ms", "retry_policy": policy, "callback": callback})).await;
    let ids = [register(told_to("away.told", &json!(1))).await, register(stored_at("away.stored", &json!(2))).await];
    for id in &ids {
        eventually("it was tried in vain", SOON, async || {
            Some(client.timer(id).await).filter(|timer| timer["attempt"].as_u64() >= Some(2))
        })
        .await;
    }
    blocking(|| nats.start_again());
    for id in &ids {
        client.wait_for_status(id, "completed").await;
    }
    let stored = bus.witness("AWAY").wait_for(2, SOON).await.to_vec();
    let mut told: Vec<_> = stored.iter().map(|message| (message.subject.as_str(), message.header("X-Timer-Id"))).collect();
    told.sort_unstable();
    assert_eq!(told, [("away.stored", ids[1].as_str()), ("away.told", ids[0].as_str())]);
    assert!(stored.iter().all(|message| message.header("X-Timer-Attempt") != "1"), "{stored:?}");
    service.stop().await;
}

async fn what_the_server_refuses_fails_with_the_reason(backend: Backend) {
    let _machine = beside_others().await;
    let limited = NatsUser::limited("timer", "t", &["allowed.>", "_INBOX.>"], &["_INBOX.>"]);
    let nats = blocking(|| Nats::builder().max_payload_bytes(8192).user(limited).user(NatsUser::unlimited("boss", "b")).start());
    let options = ConnectOptions::with_user_and_password("boss".to_owned(), "b".to_owned());
    let bus = Bus::connect_as(&nats.url(), options).await;
    bus.make_stream("ALLOWED", "allowed.stored", 1).await;
    let url = nats.url().replace("nats://", "nats://timer:t@");
    let mut service = Service::start_with_nats(&backend, &url).await;
    let client = service.client();
    let large = json!("x".repeat(9000));
    for (callback, reason) in [
        (told_to("denied.told", &json!(1)), "no permission to publish to denied.told"),
        (stored_at("denied.stored", &json!(1)), "no permission to publish to denied.stored"),
        (stored_at("allowed.nowhere", &json!(1)), "no stream takes the subject allowed.nowhere"),
        (told_to("allowed.told", &large), "8192"),
        (stored_at("allowed.stored", &large), "8192"),
    ] {
        let id = client.create(&json!({"delay": "1ms", "callback": callback})).await;
        let timer = client.wait_for_status(&id, "failed").await;
        assert_failed_because(&timer, reason);
        assert_eq!(timer["attempt"], 1, "{timer}");
    }
    // What is allowed goes on as before.
    for callback in [told_to("allowed.told", &json!(1)), stored_at("allowed.stored", &json!(1))] {
        let id = client.create(&json!({"delay": "1ms", "callback": callback})).await;
        client.wait_for_status(&id, "completed").await;
    }
    assert_eq!(bus.witness("ALLOWED").read().await.len(), 1);
    service.stop().await;
}

async fn a_server_that_stands_still_has_taken_nothing(backend: Backend) {
    let _machine = beside_others().await;
    let nats = blocking(Nats::start);
    let bus = Bus::connect(&nats.url()).await;
    bus.make_stream("STILL", "still.>", 1).await;
    let mut service = Service::start_with_nats(&backend, &nats.url()).await;
    let client = service.client();
    // By then the service knows which subjects are its own, which it would ask the server for in vain later.
    let first = client.create(&json!({"delay": "1ms", "callback": told_to("first", &json!(1))})).await;
    client.wait_for_status(&first, "completed").await;
    blocking(|| nats.pause());
    let policy = json!({"max_retries": 100, "initial_interval": "300ms", "max_interval": "300ms"});
    let register = async |callback: Value, policy: &Value| {
        client.create(&json!({"delay": "1ms", "retry_policy": policy, "callback": callback})).await
    };
    let once = [
        register(told_to("still.told", &json!("once")), &Value::Null).await,
        register(stored_at("still.stored", &json!("once")), &Value::Null).await,
    ];
    let again = [
        register(told_to("still.told", &json!("again")), &policy).await,
        register(stored_at("still.stored", &json!("again")), &policy).await,
    ];
    for id in &once {
        let timer = eventually("it is given up", UNCONFIRMED_WITHIN, async || {
            Some(client.timer(id).await).filter(|timer| timer["status"] == "failed")
        })
        .await;
        assert_failed_because(&timer, "did not confirm the message within");
    }
    for id in &again {
        assert_ne!(client.timer(id).await["status"], "completed", "no server can have taken it");
    }
    blocking(|| nats.resume());
    for id in &again {
        client.wait_for_status(id, "completed").await;
    }
    let mut witness = bus.witness("STILL");
    let are_there = |stored: &[Message]| again.iter().all(|id| !of(stored, id).is_empty());
    let stored = witness.wait_until("what is completed was taken", SOON, are_there).await;
    assert_eq!(of(stored, &again[1]).len(), 1, "the stream drops repetitions: {stored:?}");
    service.stop().await;
}

/// Many refusals at once: not one of them may be overlooked, and none may be held against a neighbour.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn denied_messages_among_allowed_ones_are_told_apart() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let limited = NatsUser::limited("timer", "t", &["allowed", "_INBOX.>"], &["_INBOX.>"]);
    let nats = blocking(|| Nats::builder().user(limited).user(NatsUser::unlimited("boss", "b")).start());
    let options = ConnectOptions::with_user_and_password("boss".to_owned(), "b".to_owned());
    let listener = Bus::connect_as(&nats.url(), options).await.listen(">").await;
    let mut service = Service::start_with_nats(&backend, &nats.url().replace("nats://", "nats://timer:t@")).await;
    let client = service.client();
    let at = now() + 8_000_000;
    let register = async |n: usize| {
        let topic = if n.is_multiple_of(2) { "allowed".to_owned() } else { format!("denied.{}", n % 7) };
        (client.create(&json!({"execute_at": instant(at), "callback": told_to(&topic, &json!(n))})).await, topic)
    };
    let topics: HashMap<String, String> =
        stream::iter(0..2 * ALLOWED_AND_DENIED).map(register).buffer_unordered(REGISTERED_AT_ONCE).collect().await;
    assert!(now() < at, "registered too late to mean anything");
    client.wait_until_finished(Duration::from_secs(30)).await;

    for (id, topic) in &topics {
        let timer = client.timer(id).await;
        if topic == "allowed" {
            assert_eq!(timer["status"], "completed", "{timer}");
        } else {
            assert_eq!(timer["status"], "failed", "{timer}");
            assert_failed_because(&timer, &format!("no permission to publish to {topic}"));
        }
    }
    let heard: Vec<Message> = listener.heard().into_iter().filter(|message| message.subject == "allowed").collect();
    assert_eq!(heard.len(), ALLOWED_AND_DENIED);
    assert!(!listener.heard().iter().any(|message| message.subject.starts_with("denied")));
    service.stop().await;
}

fn assert_failed_because(timer: &Value, reason: &str) {
    assert!(timer["last_error"].as_str().is_some_and(|error| error.contains(reason)), "{reason} in {timer}");
}

fn of<'a>(stored: &'a [Message], id: &str) -> Vec<&'a Message> {
    stored.iter().filter(|message| message.header("X-Timer-Id") == id).collect()
}
