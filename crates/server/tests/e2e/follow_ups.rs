//! Who is told how a timer has ended: once for each end, whatever happens to the service in between.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use serde_json::{Value, json};

use crate::rig::{
    Backend, Call, Chance, Receiver, Reply, Service, beside_others, callback_to, eventually, for_each_store, heavy, micros,
    wait_for_wall,
};

const SOON: Duration = Duration::from_secs(30);
const PARENTS: usize = 60;
const KILLS: usize = 4;
/// More than are changed while the client waits.
const LET_EXPIRE: usize = 1_100;

for_each_store!(
    the_end_of_a_timer_is_told_to_the_callback_for_it,
    callbacks_for_the_end_keep_the_rules_of_callbacks,
    an_end_is_told_by_one_timer_over_kills,
    an_end_that_a_client_asks_for_is_told_as_well,
    what_an_operation_lets_expire_is_told_by_one_timer_over_kills,
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

async fn an_end_that_a_client_asks_for_is_told_as_well(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::start();
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s")]).await;
    let client = service.client();
    let register = async |key: &str, delay: &str| {
        let timer = json!({
            "delay": delay, "key": key, "callback": callback_to(&receiver.url("/never"), &json!(1)),
            "on_failure": callback_to(&receiver.url("/told"), &json!(key)),
        });
        client.create(&timer).await
    };
    let pause = async |id: &str| {
        let answer = client.send("POST", &format!("/timers/{id}/pause"), None).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    };
    let (pending, paused) = (register("let-pending", "1h").await, register("let-paused", "1h").await);
    pause(&paused).await;
    let canceled = register("let-canceled", "1h").await;
    client.try_cancel(&canceled).await.expect("an answer");
    let expire = json!({"action": "expire", "filter": {"key_prefix": "let-"}, "expected_max": 3});
    let answer = client.send("POST", "/timers/bulk", Some(&expire)).await;
    assert_eq!(answer.json()["data"], json!({"changed": 2, "skipped": 1}), "{}", answer.text);

    let missed = register("missed", "700ms").await;
    pause(&missed).await;
    let due = client.timer(&missed).await["execute_at"].as_str().map(micros).expect("a due time");
    wait_for_wall(due + 1).await;
    let resume = json!({"missed": "expire"});
    let answer = client.send("POST", &format!("/timers/{missed}/resume"), Some(&resume)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);

    for (id, key, error) in [
        (&pending, "let-pending", "expired by a client"),
        (&paused, "let-paused", "expired by a client"),
        (&missed, "missed", "was due while it was paused"),
    ] {
        let timer = client.wait_for_status(id, "expired").await;
        assert_eq!((&timer["last_error"], &timer["attempt"]), (&json!(error), &json!(0)), "{timer}");
        let look = async || receiver.calls().into_iter().find(|call| call.json()["id"] == json!(id));
        let body = eventually("the end is told", SOON, look).await.json();
        let said = (&body["status"], &body["payload"], &body["last_error"], &body["execute_at"]);
        assert_eq!(said, (&json!("expired"), &json!(key), &json!(error), &timer["execute_at"]), "{body}");
    }
    client.wait_until_finished(SOON).await;
    assert_eq!(receiver.calls().iter().map(|call| call.path.as_str()).collect::<Vec<_>>(), ["/told"; 3], "and nothing else");
    service.stop().await;
}

async fn what_an_operation_lets_expire_is_told_by_one_timer_over_kills(backend: Backend) {
    let _machine = heavy().await;
    let receiver = Receiver::start();
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s")]).await;
    let client = service.client();
    let timers: Vec<Value> = (0..LET_EXPIRE)
        .map(|n| {
            json!({
                "delay": "1h", "callback": callback_to(&receiver.url("/never"), &json!(n)),
                "on_failure": callback_to(&receiver.url("/told"), &json!(n)),
            })
        })
        .collect();
    let mut parents = Vec::new();
    for batch in timers.chunks(1_000) {
        let answer = client.send("POST", "/timers/batch", Some(&json!({"timers": batch}))).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let results = answer.json()["data"]["results"].as_array().expect("results").clone();
        parents.extend(results.iter().map(|result| result["timer"]["id"].as_str().expect("an id").to_owned()));
    }
    let expire = json!({"action": "expire", "filter": {"status": "pending"}, "expected_max": LET_EXPIRE});
    let started = client.send("POST", "/timers/bulk", Some(&expire)).await;
    assert_eq!(started.status, 202, "{}", started.text);
    let path = format!("/operations/{}", started.json()["data"]["operation"]["id"].as_str().expect("an id"));
    for told in [1, LET_EXPIRE / 2] {
        receiver.wait_for(told, SOON).await;
        service.kill();
        service.start_again().await;
    }
    let client = service.client();
    let ended = eventually("the operation ends", SOON, async || {
        Some(client.get(&path).await.json()["data"].clone()).filter(|operation| operation["state"] != "running")
    })
    .await;
    assert_eq!((&ended["state"], &ended["changed"]), (&json!("done"), &json!(LET_EXPIRE)), "{ended}");
    client.wait_until_finished(Duration::from_secs(60)).await;
    let mut told: HashMap<String, HashSet<String>> = HashMap::new();
    for call in receiver.calls() {
        assert_eq!(call.path, "/told", "what expires is not called");
        told.entry(call.json()["id"].as_str().expect("an id").to_owned()).or_default().insert(call.timer_id().to_owned());
    }
    for id in &parents {
        assert_eq!(told.get(id).map_or(0, HashSet::len), 1, "{id} is told by exactly one timer");
    }
    assert_eq!(client.count("expired").await, LET_EXPIRE as u64);
    service.stop().await;
}
