//! Timers that are wanted only for a while: no attempt starts at or after their expiry.

use std::time::Duration;

use serde_json::{Value, json};

use crate::rig::{
    Backend, Client, Receiver, Reply, Service, beside_others, callback_to, for_each_store, instant, now, wait_for_wall,
};

const SOON: Duration = Duration::from_secs(20);

for_each_store!(
    a_timer_that_was_due_during_an_outage_expires_instead_of_being_called,
    a_retry_that_would_come_after_the_expiry_is_not_waited_for,
    an_expiry_is_checked_and_shown,
);

async fn a_timer_that_was_due_during_an_outage_expires_instead_of_being_called(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::start();
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s")]).await;
    let client = service.client();
    let due = now() + 3_000_000;
    let register = async |expiry: Value| {
        let mut timer = json!({"execute_at": instant(due), "callback": callback_to(&receiver.url("/"), &json!(1))});
        timer.as_object_mut().expect("an object").extend(expiry.as_object().expect("an object").clone());
        client.create(&timer).await
    };
    let at = register(json!({"expires_at": instant(due + 1_000_000)})).await;
    let after = register(json!({"expires_after": "1s"})).await;
    let wanted = register(json!({"expires_after": "10m"})).await;
    service.stop().await;
    wait_for_wall(due + 1_500_000).await;
    service.start_again().await;

    let client = service.client();
    client.wait_for_status(&wanted, "completed").await;
    for id in [&at, &after] {
        let expired = client.wait_for_status(id, "expired").await;
        assert!(expired["last_error"].as_str().is_some_and(|error| error.starts_with("expired")), "{expired}");
        assert_eq!(expired["attempt"], 0, "nothing was sent: {expired}");
        let answer = client.send("POST", &format!("/timers/{id}/retry"), None).await;
        assert_eq!(answer.status, 409, "{}", answer.text);
        assert!(answer.message().starts_with("cannot retry timer: it expired at "), "{}", answer.text);
    }
    assert_eq!(listed(&client, "expired").await, 2);
    assert_eq!(receiver.calls().iter().map(|call| call.timer_id()).collect::<Vec<_>>(), [wanted.as_str()]);
    assert!(client.get("/metrics").await.text.contains("timer_expired_total 2"));
    service.stop().await;
}

async fn listed(client: &Client, status: &str) -> u64 {
    client.get(&format!("/timers?status={status}")).await.json()["data"]["total"].as_u64().expect("a number")
}

async fn a_retry_that_would_come_after_the_expiry_is_not_waited_for(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::replying(|_| Reply::Status(503));
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s")]).await;
    let client = service.client();
    let policy = json!({"max_retries": 5, "initial_interval": "1h", "max_interval": "1h"});
    let timer = json!({
        "delay": "0s", "callback": callback_to(&receiver.url("/"), &json!(1)), "retry_policy": policy, "expires_after": "30m",
    });
    let id = client.create(&timer).await;
    receiver.wait_for(1, SOON).await;
    let expired = client.wait_for_status(&id, "expired").await;
    assert_eq!(expired["attempt"], 1, "{expired}");
    let error = expired["last_error"].as_str().expect("an error");
    assert!(error.contains("503") && error.contains("; expired"), "{error}");
    // Its own expiry has not come, so that the client may have it tried again.
    let answer = client.send("POST", &format!("/timers/{id}/retry"), None).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    receiver.wait_for(2, SOON).await;
    service.stop().await;
}

async fn an_expiry_is_checked_and_shown(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s")]).await;
    let client = service.client();
    let timer = |fields: Value| {
        let mut timer = json!({"execute_at": "2099-01-01T00:00:00Z", "callback": callback_to("http://127.0.0.1:9/", &json!(1))});
        timer.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        timer
    };
    for (fields, message) in [
        (json!({"expires_at": "2099-01-01T00:00:00Z"}), "expires_at must be later than the due time"),
        (json!({"expires_at": "2098-01-01T00:00:00Z"}), "expires_at must be later than the due time"),
        (json!({"expires_after": "0s"}), "expires_after must be longer than 0s"),
        (
            json!({"expires_after": "1s", "expires_at": "2099-01-02T00:00:00Z"}),
            "expires_after must not be given together with expires_at",
        ),
    ] {
        let answer = client.post(&timer(fields).to_string()).await;
        assert_eq!((answer.status, answer.message().as_str()), (400, message), "{}", answer.text);
    }
    let id = client.create(&timer(json!({"expires_after": "30m"}))).await;
    let shown = async |fields: &[&str]| {
        let data = client.get(&format!("/timers/{id}")).await.json()["data"].clone();
        fields.iter().map(|field| data[field].clone()).collect::<Vec<_>>()
    };
    assert_eq!(shown(&["expires_at", "expires_after"]).await, ["2099-01-01T00:30:00Z", "30m"]);
    // It moves with the due time, until it is given as an instant.
    let update = async |patch: Value| client.try_update(&id, &patch).await.expect("an answer");
    assert_eq!(update(json!({"execute_at": "2099-01-02T00:00:00Z"})).await.status, 200);
    assert_eq!(shown(&["expires_at"]).await, ["2099-01-02T00:30:00Z"]);
    assert_eq!(update(json!({"expires_at": "2099-01-03T00:00:00Z"})).await.status, 200);
    let refused = update(json!({"execute_at": "2099-01-03T00:00:00Z"})).await;
    assert_eq!((refused.status, refused.message().as_str()), (400, "expires_at must be later than the due time"));
    assert_eq!(update(json!({"metadata": 1})).await.status, 200);
    assert_eq!(shown(&["expires_at", "expires_after"]).await, [json!("2099-01-03T00:00:00Z"), Value::Null]);
    assert_eq!(update(json!({"expires_at": null})).await.status, 200);
    assert_eq!(shown(&["expires_at", "expires_after"]).await, [Value::Null, Value::Null]);
    service.stop().await;
}
