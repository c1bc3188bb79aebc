//! A paused timer is left alone until it is resumed, also by a service that starts again.

use std::time::Duration;

use serde_json::json;

use crate::rig::{Backend, Receiver, Service, callback_to, for_each_store};

for_each_store!(mariadb too: a_paused_timer_waits_through_a_restart_and_fires_when_it_is_resumed);

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
