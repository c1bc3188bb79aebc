//! What callers may ask for besides registering, changing and canceling one timer.

use std::time::Duration;

use serde_json::{Value, json};

use crate::rig::{Backend, Client, Receiver, Reply, Service, beside_others, callback_to, for_each_store, instant, micros, now};

const SOON: Duration = Duration::from_secs(15);

for_each_store!(
    a_failed_timer_shows_its_attempts_and_is_tried_again,
    a_timer_is_fired_before_its_time,
    many_are_registered_and_canceled_at_once,
    the_namespaced_api_keeps_timers_by_their_own_ids,
    what_was_due_a_moment_ago_is_due_now_unless_a_minimum_is_set,
);

async fn post(client: &Client, path: &str, body: &Value) -> Value {
    let answer = client.try_send("POST", path, Some(body.to_string())).await.expect("an answer");
    assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    answer.json()["data"].clone()
}

async fn what_was_due_a_moment_ago_is_due_now_unless_a_minimum_is_set(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::start();
    let ago = |seconds: i64| instant(now() - seconds * 1_000_000);
    let callback = callback_to(&receiver.url("/"), &json!(1));
    let mut service = Service::start_with(&backend, &[]).await;
    let client = service.client();
    let asked = now();
    for due in [json!({"delay": "0s"}), json!({"delay": "1ms"}), json!({"execute_at": ago(1)}), json!({"execute_at": ago(50)})] {
        let mut timer = due.clone();
        timer["callback"] = callback.clone();
        let id = client.create(&timer).await;
        let shown = client.wait_for_status(&id, "completed").await;
        assert!(micros(shown["execute_at"].as_str().expect("a due time")) >= asked, "{due}: {shown}");
        let far = client.create(&json!({"delay": "1d", "callback": callback})).await;
        let moved = client.try_update(&far, &due).await.expect("an answer");
        assert_eq!(moved.status, 200, "{due}: {}", moved.text);
        client.wait_for_status(&far, "completed").await;
    }
    let v1 = |id: &str, at: String| json!({"id": id, "executeAt": at, "callbackUrl": receiver.url("/")});
    assert_eq!(client.send("POST", "/api/v1/timers", Some(&v1("near", ago(50)))).await.status, 200);
    let far = client.create(&json!({"delay": "1d", "callback": callback})).await;
    for answer in [
        client.post(&json!({"execute_at": ago(61), "callback": callback}).to_string()).await,
        client.try_update(&far, &json!({"execute_at": ago(61)})).await.expect("an answer"),
        client.send("POST", "/api/v1/timers/create", Some(&v1("far", ago(61)))).await,
    ] {
        assert_eq!(answer.status, 400, "{}", answer.text);
        assert!(answer.message().ends_with("must be in the future"), "{}", answer.text);
    }
    service.stop().await;

    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "5s")]).await;
    let client = service.client();
    for due in [json!({"delay": "3s"}), json!({"execute_at": ago(1)}), json!({"execute_at": ago(-4)})] {
        assert_eq!(client.try_update(&far, &due).await.expect("an answer").status, 400, "{due}");
    }
    service.stop().await;
}

async fn a_failed_timer_shows_its_attempts_and_is_tried_again(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let receiver = Receiver::replying(|call| match call.header("x-timer-attempt") {
        "1" | "2" if call.json() == json!("stubborn") => Reply::Status(503),
        _ => Reply::Status(200),
    });
    let policy = json!({"max_retries": 1, "initial_interval": "10ms"});
    let timer = json!({"delay": "0s", "callback": callback_to(&receiver.url("/"), &json!("stubborn")), "retry_policy": policy});
    let id = client.create(&timer).await;
    let failed = client.wait_for_status(&id, "failed").await;
    let attempts = client.get(&format!("/timers/{id}/attempts")).await.json()["data"]["attempts"].clone();
    let seen: Vec<_> = attempts.as_array().expect("a list").iter().map(|a| (a["number"].clone(), a["status"].clone())).collect();
    assert_eq!(seen, [(json!(1), json!(503)), (json!(2), json!(503))], "{attempts}");

    service.kill();
    service.start_again().await;
    post(&client, &format!("/timers/{id}/retry"), &json!({})).await;
    receiver.wait_for(4, SOON).await;
    client.wait_for_status(&id, "failed").await;
    let ids: std::collections::HashSet<_> = receiver.calls().iter().map(|call| call.header("webhook-id").to_owned()).collect();
    assert_eq!(ids.len(), 1, "a retry is the same call: {failed}");
    assert_eq!(client.get(&format!("/timers/{id}/attempts")).await.json()["data"]["attempts"].as_array().map(Vec::len), Some(4));
    service.stop().await;
}

async fn a_timer_is_fired_before_its_time(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let receiver = Receiver::start();
    let id = client.create(&json!({"delay": "1h", "callback": callback_to(&receiver.url("/"), &json!(1))})).await;
    post(&client, &format!("/timers/{id}/fire"), &json!({})).await;
    client.wait_for_status(&id, "completed").await;
    assert_eq!(receiver.count(), 1);
    let again = client.try_send("POST", &format!("/timers/{id}/fire"), Some("{}".to_owned())).await.expect("an answer");
    assert_eq!((again.status, again.message().as_str()), (400, "cannot fire timer with status 'completed'"));
    service.stop().await;
}

async fn many_are_registered_and_canceled_at_once(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let receiver = Receiver::start();
    let timer = |n: usize| {
        let callback = callback_to(&receiver.url("/"), &json!(n));
        json!({"delay": "1h", "key": format!("order-{n}"), "metadata": {"parity": n % 2}, "callback": callback})
    };
    let mut timers: Vec<Value> = (0..999).map(timer).collect();
    timers.push(json!({"delay": "1h"}));
    let results = post(&client, "/timers/batch", &json!({"timers": timers})).await["results"].clone();
    let statuses: Vec<_> = results.as_array().expect("a list").iter().map(|result| result["status"].as_u64()).collect();
    assert_eq!((statuses.len(), statuses[998], statuses[999]), (1000, Some(201), Some(400)));
    let odd = json!({"key_prefix": "order-", "metadata": {"parity": 1}, "expected_max": 498});
    let refused = client.try_send("POST", "/timers/cancel", Some(odd.to_string())).await.expect("an answer");
    assert_eq!((refused.status, client.count("pending").await), (409, 999), "{}", refused.text);
    let odd = json!({"key_prefix": "order-", "metadata": {"parity": 1}, "expected_max": 499});
    let canceled = post(&client, "/timers/cancel", &odd).await;
    assert_eq!((canceled["matched"].as_u64(), canceled["canceled"].as_u64()), (Some(499), Some(499)));
    assert_eq!((client.count("pending").await, client.count("canceled").await), (500, 499));
    service.stop().await;
}

async fn the_namespaced_api_keeps_timers_by_their_own_ids(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let receiver = Receiver::start();
    let send = async |method: &str, path: &str, body: Option<&Value>| {
        client.try_send(method, path, body.map(Value::to_string)).await.expect("an answer")
    };
    let timer = |at: &str| json!({"id": "call/1", "groupId": "acme", "executeAt": at, "callbackUrl": receiver.url("/v1")});
    let (first, other) = (timer("2099-01-01T00:00:00Z"), timer("2099-01-02T00:00:00Z"));
    let path = "/api/v1/timers/acme/call%2F1";
    assert_eq!(send("POST", "/api/v1/timers", Some(&first)).await.status, 200);
    assert_eq!(send("POST", "/api/v1/timers", Some(&first)).await.status, 200);
    let conflict = send("POST", "/api/v1/timers", Some(&other)).await;
    assert_eq!(
        (conflict.status, conflict.json()["error"].as_str().map(str::to_owned)),
        (409, Some("TIMER_ALREADY_EXISTS".to_owned()))
    );
    assert_eq!(send("POST", "/api/v1/timers/create", Some(&other)).await.status, 200);
    let read = send("GET", path, None).await.json();
    assert_eq!((read["executeAt"].as_str(), read["groupId"].as_str()), (Some("2099-01-02T00:00:00Z"), Some("acme")), "{read}");
    let now = json!({"executeAt": (crate::rig::instant(crate::rig::now() + 200_000))});
    assert_eq!(send("PUT", path, Some(&now)).await.status, 200);
    let calls = receiver.wait_for(1, SOON).await;
    assert_eq!((calls[0].json()["timerId"].as_str(), calls[0].json()["attempt"].as_u64()), (Some("call/1"), Some(1)));
    let missing = send("GET", "/api/v1/timers/acme/unknown", None).await;
    assert_eq!((missing.status, missing.json()["error"].as_str().map(str::to_owned)), (404, Some("TIMER_NOT_FOUND".to_owned())));
    service.stop().await;
}
