//! What the operator decides for the timers of one namespace, and which attempts are remembered.

use std::time::Duration;

use serde_json::{Value, json};

use crate::rig::{Backend, Client, Receiver, Reply, Service, beside_others, callback_to, for_each_store};

const SOON: Duration = Duration::from_secs(15);

for_each_store!(
    a_timer_without_a_retry_policy_has_that_of_its_namespace,
    a_waiting_timer_gets_the_policy_that_its_namespace_has_when_it_is_due,
    attempts_are_remembered_as_the_setting_says,
);

/// The environment's name for a file with a policy of three calls in all for the namespace `stubborn`.
fn rules(backend: &Backend) -> String {
    let file = backend.home().join("namespaces.json");
    let rules = json!({"stubborn": {"retry_policy": {"max_retries": 2, "initial_interval": "10ms"}}, "plain": {}});
    std::fs::write(&file, rules.to_string()).expect("a file in the directory of the test");
    file.display().to_string()
}

async fn a_timer_without_a_retry_policy_has_that_of_its_namespace(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s"), ("NAMESPACES_FILE", &rules(&backend))]).await;
    let client = service.client();
    let receiver = Receiver::replying(|_| Reply::Status(503));
    let own = json!({"max_retries": 1, "initial_interval": "10ms"});
    for (namespace, policy, calls) in [
        ("stubborn", None, 3),
        ("stubborn", Some(&own), 2),
        ("stubborn", Some(&json!({"max_retries": 0})), 1),
        ("plain", None, 1),
        ("plain", Some(&own), 2),
        ("default", None, 1),
    ] {
        let callback = callback_to(&receiver.url("/native"), &json!(1));
        let mut timer = json!({"delay": "0s", "namespace": namespace, "callback": callback});
        if let Some(policy) = policy {
            timer["retry_policy"] = policy.clone();
        }
        let id = client.create(&timer).await;
        let failed = client.wait_for_status(&id, "failed").await;
        assert_eq!(calls_of(&receiver, &id), calls, "{timer}");
        assert_eq!(failed["retry_policy"].is_null(), policy.is_none(), "only the timer's own policy shows: {failed}");
    }

    let timer = json!({"id": "v1", "groupId": "stubborn", "executeAt": crate::rig::instant(crate::rig::now() + 200_000),
        "callbackUrl": receiver.url("/v1")});
    let made = client.try_send("POST", "/api/v1/timers", Some(timer.to_string())).await.expect("an answer");
    assert_eq!(made.status, 200, "{}", made.text);
    // Not by counting those that are pending and then those that are executing: between two attempts it is neither for long.
    let calls = || receiver.calls().iter().filter(|call| call.path == "/v1").count();
    crate::rig::eventually("the other API's timer has been tried", SOON, async || (calls() >= 3).then_some(())).await;
    client.wait_until_finished(SOON).await;
    assert_eq!(calls(), 3, "the other API");
    service.stop().await;
}

async fn a_waiting_timer_gets_the_policy_that_its_namespace_has_when_it_is_due(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::replying(|_| Reply::Status(503));
    let mut before = Service::start(&backend).await;
    let timer = json!({"delay": "1h", "namespace": "stubborn", "callback": callback_to(&receiver.url("/"), &json!(1))});
    let id = before.client().create(&timer).await;
    before.stop().await;

    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s"), ("NAMESPACES_FILE", &rules(&backend))]).await;
    let client = service.client();
    let fired = client.try_send("POST", &format!("/timers/{id}/fire"), Some("{}".to_owned())).await.expect("an answer");
    assert_eq!(fired.status, 200, "{}", fired.text);
    client.wait_for_status(&id, "failed").await;
    assert_eq!(calls_of(&receiver, &id), 3);
    service.stop().await;
}

async fn attempts_are_remembered_as_the_setting_says(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::replying(|call| Reply::Status(if call.header("x-timer-attempt") == "1" { 503 } else { 200 }));
    let mut kept = Vec::new();
    for (setting, remembered) in [
        (None, vec![(1, 503)]),
        (Some("failures"), vec![(1, 503)]),
        (Some("all"), vec![(1, 503), (2, 200)]),
        (Some("off"), vec![]),
    ] {
        let mut settings = vec![("MIN_DELAY", "0s")];
        settings.extend(setting.map(|value| ("ATTEMPTS", value)));
        let mut service = Service::start_with(&backend, &settings).await;
        let client = service.client();
        let policy = json!({"max_retries": 1, "initial_interval": "10ms"});
        let callback = callback_to(&receiver.url("/"), &json!(setting));
        let id = client.create(&json!({"delay": "0s", "callback": callback, "retry_policy": policy})).await;
        client.wait_for_status(&id, "completed").await;
        assert_eq!(calls_of(&receiver, &id), 2);
        kept.push((id, remembered));
        // What earlier settings have kept is still there, whatever holds now.
        for (id, remembered) in &kept {
            assert_eq!(&attempts(&client, id).await, remembered, "{id} with ATTEMPTS={setting:?}");
        }
        service.stop().await;
    }
}

/// Number and HTTP status of each.
async fn attempts(client: &Client, id: &str) -> Vec<(i64, i64)> {
    let answer = client.get(&format!("/timers/{id}/attempts")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let number = |attempt: &Value, field: &str| attempt[field].as_i64().unwrap_or_else(|| panic!("{field} in {attempt}"));
    let attempts = answer.json()["data"]["attempts"].clone();
    attempts.as_array().expect("a list").iter().map(|one| (number(one, "number"), number(one, "status"))).collect()
}

fn calls_of(receiver: &Receiver, id: &str) -> usize {
    receiver.calls().iter().filter(|call| call.timer_id() == id).count()
}
