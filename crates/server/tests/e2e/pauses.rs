//! A paused timer is left alone until it is resumed, also by a service that starts again.

use std::time::Duration;

use serde_json::json;

use crate::rig::{
    Backend, Client, Crowd, Receiver, Service, alone, callback_to, eventually, fill, for_each_store, now, tolerated,
};

const MANY: usize = 100_000;
/// Near enough that pending ones are in memory, and far enough that none is due before it is paused.
const MANY_DUE_MICROS: i64 = 540_000_000;
const OPERATION_TIME: Duration = Duration::from_secs(300);
const REST: Duration = Duration::from_secs(5);
/// The part of one core that it may use at rest; an idle service needs about as much.
const REST_CPU_MAX: f64 = 0.05;

for_each_store!(mariadb in soak: a_paused_timer_waits_through_a_restart_and_fires_when_it_is_resumed);
for_each_store!(soak: many_paused_timers_cost_nothing_at_rest);

async fn a_paused_timer_waits_through_a_restart_and_fires_when_it_is_resumed(backend: Backend) {
    let receiver = Receiver::start();
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let timer =
        |key: &str| json!({"delay": "1s", "key": key, "callback": callback_to(&receiver.url("/pause"), &json!({"key": key}))});
    let resumed = client.create(&timer("resumed")).await;
    let missed = client.create(&timer("missed")).await;
    for id in [&resumed, &missed] {
        let answer = client.send("POST", &format!("/timers/{id}/pause"), Some(&json!({"note": "until noon"}))).await;
        assert_eq!((answer.status, &answer.json()["data"]["status"]), (200, &json!("paused")), "{}", answer.text);
    }
    service.kill();
    service.start_again().await;
    let client = service.client();
    // One that is due later fires: the paused ones had their time.
    let other = client.create(&json!({"delay": "1200ms", "callback": callback_to(&receiver.url("/other"), &json!(1))})).await;
    client.wait_for_status(&other, "completed").await;
    assert!(receiver.calls().iter().all(|call| call.timer_id() == other), "a paused timer was called");
    let shown = client.timer(&resumed).await;
    assert_eq!((&shown["status"], &shown["pause_note"]), (&json!("paused"), &json!("until noon")));

    let expired = client.send("POST", &format!("/timers/{missed}/resume"), Some(&json!({"missed": "expire"}))).await;
    assert_eq!(expired.json()["data"]["status"], "expired", "{}", expired.text);
    let answer = client.send("POST", &format!("/timers/{resumed}/resume"), None).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    client.wait_for_status(&resumed, "completed").await;
    receiver.wait_for(2, Duration::from_secs(5)).await;
    assert!(receiver.calls().iter().all(|call| call.timer_id() != missed), "an expired timer was called");
    service.stop().await;
}

/// Changes all timers but the one that `fill` has copied, by an operation, and waits for its end.
async fn change_many(client: &Client, change: serde_json::Value) {
    let answer = client.send("POST", "/timers/bulk", Some(&change)).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    let path = format!("/operations/{}", answer.json()["data"]["operation"]["id"].as_str().expect("an id"));
    let ended = eventually("the operation ends", OPERATION_TIME, async || {
        Some(client.get(&path).await.json()["data"].clone()).filter(|operation| operation["state"] != "running")
    })
    .await;
    assert_eq!((&ended["state"], &ended["changed"]), (&json!("done"), &json!(MANY)), "{ended}");
}

/// How much of one core the service uses while no request is made; fails the test when a timer is claimed meanwhile.
async fn cpu_at_rest(service: &Service, client: &Client) -> f64 {
    let claims = client.metric("timer_claims_total").await;
    let before = service.cpu_seconds();
    tokio::time::sleep(REST).await;
    let used = service.cpu_seconds() - before;
    assert_eq!(client.metric("timer_claims_total").await, claims, "a claim was made");
    used / REST.as_secs_f64()
}

async fn many_paused_timers_cost_nothing_at_rest(backend: Backend) {
    let _machine = alone().await;
    let receiver = Receiver::start();
    let at = format!("{} + n", now() + MANY_DUE_MICROS);
    fill(&backend, &receiver, &Crowd { timers: MANY, payload: &json!(1), at }).await;
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let due_to = crate::rig::instant(now() + 2 * MANY_DUE_MICROS);
    change_many(&client, json!({"action": "pause", "filter": {"status": "pending", "due_to": due_to}, "expected_max": MANY}))
        .await;
    let ahead = cpu_at_rest(&service, &client).await;
    // Their time passes, as it does in a long pause.
    let overdue = json!({"execute_at": crate::rig::instant(now())});
    change_many(&client, json!({"action": "reschedule", "filter": {"status": "paused"}, "set": overdue, "expected_max": MANY}))
        .await;
    let past = cpu_at_rest(&service, &client).await;
    println!(
        "{}: {MANY} paused timers at rest: {:.1} % of a core before their time, {:.1} % after it",
        backend.name(),
        100.0 * ahead,
        100.0 * past
    );
    assert_eq!((receiver.count(), client.count("paused").await), (0, MANY as u64));
    assert!(ahead.max(past) < tolerated(REST_CPU_MAX), "{ahead} {past} of a core");
    service.stop().await;
}
