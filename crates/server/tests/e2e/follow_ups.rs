//! Who is told how a timer has ended: once for each end, whatever happens to the service in between.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use serde_json::{Value, json};

use crate::rig::{
    Backend, Call, Chance, Receiver, Reply, Service, beside_others, callback_to, eventually, for_each_store, heavy,
};

const SOON: Duration = Duration::from_secs(30);
const PARENTS: usize = 60;
const KILLS: usize = 4;

for_each_store!(
    the_end_of_a_timer_is_told_to_the_callback_for_it,
    callbacks_for_the_end_keep_the_rules_of_callbacks,
    an_end_is_told_by_one_timer_over_kills,
);

fn with(mut timer: Value, fields: &Value) -> Value {
    timer.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    timer
}

async fn the_end_of_a_timer_is_told_to_the_callback_for_it(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::replying(|call| Reply::Status(if call.path == "/fails" { 503 } else { 200 }));
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s")]).await;
    let client = service.client();
    let register = async |path: &str, fields: Value| {
        let timer = json!({
            "delay": "0s", "key": path, "correlation_id": "c-7", "metadata": {"m": 1},
            "callback": callback_to(&receiver.url(path), &json!(1)),
            "on_success": callback_to(&receiver.url("/told/success"), &json!({"n": 1})),
            "on_failure": callback_to(&receiver.url("/told/failure"), &json!({"n": 2})),
        });
        client.create(&with(timer, &fields)).await
    };
    let policy = json!({"max_retries": 3, "initial_interval": "1h", "max_interval": "1h"});
    let succeeds = register("/succeeds", json!({})).await;
    let fails = register("/fails", json!({})).await;
    let expires = register(
        "/expires",
        json!({"key": "e", "callback": callback_to(&receiver.url("/fails"), &json!(1)),
        "retry_policy": policy, "expires_after": "30m"}),
    )
    .await;
    let told = async |id: &str| {
        let look = async || receiver.calls().into_iter().find(|call| call.path.starts_with("/told") && call.json()["id"] == id);
        eventually("the end is told", SOON, look).await
    };
    for (id, path, status, n) in [
        (&succeeds, "/told/success", "completed", 1),
        (&fails, "/told/failure", "failed", 2),
        (&expires, "/told/failure", "expired", 2),
    ] {
        let call: Call = told(id).await;
        let body = call.json();
        assert_eq!((call.path.as_str(), &body["status"]), (path, &json!(status)), "{body}");
        assert_eq!((&body["payload"], &body["attempt"]), (&json!({"n": n}), &json!(1)), "{body}");
        assert_eq!(body["last_error"].is_null(), status == "completed", "{body}");
        assert_eq!(call.header("x-correlation-id"), "c-7");
        let follow_up = client.wait_for_status(call.timer_id(), "completed").await;
        assert_eq!(follow_up["metadata"], json!({"m": 1}));
        client.wait_for_status(id, status).await;
    }
    // What is tried again and fails again is told again.
    assert_eq!(client.send("POST", &format!("/timers/{fails}/retry"), None).await.status, 200);
    let look = async || {
        let ids: HashSet<String> = told_ids(&receiver.calls(), &fails);
        (ids.len() == 2).then_some(())
    };
    eventually("the second end is told", SOON, look).await;
    // A cancel is no end that is told.
    let canceled = client
        .create(&json!({"delay": "1h", "callback": callback_to(&receiver.url("/never"), &json!(1)),
            "on_failure": callback_to(&receiver.url("/told/failure"), &json!(1))}))
        .await;
    client.try_cancel(&canceled).await.expect("an answer");
    client.wait_until_finished(SOON).await;
    assert!(told_ids(&receiver.calls(), &canceled).is_empty());
    service.stop().await;
}

/// The timers that have told of the end of this one.
fn told_ids(calls: &[Call], id: &str) -> HashSet<String> {
    let told = calls.iter().filter(|call| call.path.starts_with("/told") && call.json()["id"] == id);
    told.map(|call| call.timer_id().to_owned()).collect()
}

async fn callbacks_for_the_end_keep_the_rules_of_callbacks(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let timer = json!({"delay": "1h", "callback": callback_to("http://127.0.0.1:9/", &json!(1))});
    for (fields, field) in [
        (json!({"on_success": {"type": "http", "url": "ftp://a"}}), "on_success.url"),
        (json!({"on_failure": {"type": "event"}}), "on_failure.type"),
        (json!({"on_failure": {"type": "nats", "topic": "a"}}), "on_failure.type"),
        (json!({"on_failure": callback_to("http://127.0.0.1:9/", &json!("x".repeat(20_000)))}), "on_failure must not be longer"),
        (json!({"on_success": 1}), "on_success"),
    ] {
        let answer = client.post(&with(timer.clone(), &fields).to_string()).await;
        assert_eq!(answer.status, 400, "{fields}: {}", answer.text);
        assert!(answer.message().starts_with(field), "{fields}: {}", answer.text);
    }
    let id = client.create(&timer).await;
    let patch = json!({"on_success": callback_to("http://127.0.0.1:9/s", &json!(7))});
    assert_eq!(client.try_update(&id, &patch).await.expect("an answer").status, 200);
    let shown = client.get(&format!("/timers/{id}")).await.json()["data"].clone();
    assert_eq!((&shown["on_success"]["payload"], &shown["on_failure"]), (&json!(7), &Value::Null), "{shown}");
    assert_eq!(client.try_update(&id, &json!({"on_success": null})).await.expect("an answer").status, 200);
    assert_eq!(client.get(&format!("/timers/{id}")).await.json()["data"]["on_success"], Value::Null);
    service.stop().await;
}

async fn an_end_is_told_by_one_timer_over_kills(backend: Backend) {
    let _machine = heavy().await;
    let receiver = Receiver::replying(|_| Reply::OkAfter(Duration::from_millis(20)));
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s"), ("IN_FLIGHT_PER_DESTINATION_MAX", "8")]).await;
    let mut chance = Chance::new("kills between an end and its follow-up");
    let mut parents = Vec::new();
    for _ in 0..KILLS {
        let client = service.client();
        let timers: Vec<Value> = (0..PARENTS)
            .map(|n| {
                json!({
                    "delay": "0s", "callback": callback_to(&receiver.url("/parent"), &json!(n)),
                    "on_success": callback_to(&receiver.url("/told"), &json!(n)),
                })
            })
            .collect();
        let answer = client.send("POST", "/timers/batch", Some(&json!({"timers": timers}))).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let results = answer.json()["data"]["results"].as_array().expect("results").clone();
        parents.extend(results.iter().map(|result| result["timer"]["id"].as_str().expect("an id").to_owned()));
        receiver.wait_for(receiver.count() + 5, SOON).await;
        tokio::time::sleep(chance.millis(0..200)).await;
        service.kill();
        service.start_again().await;
    }
    let client = service.client();
    client.wait_until_finished(Duration::from_secs(60)).await;
    let mut told: HashMap<String, HashSet<String>> = HashMap::new();
    for call in receiver.calls().iter().filter(|call| call.path == "/told") {
        let id = call.json()["id"].as_str().expect("an id").to_owned();
        told.entry(id).or_default().insert(call.timer_id().to_owned());
    }
    for id in &parents {
        assert_eq!(told.get(id).map_or(0, HashSet::len), 1, "{id} is told by exactly one timer");
    }
    service.stop().await;
}
