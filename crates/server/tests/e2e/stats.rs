//! Statistics for operators and tenants: what is due, what was fired and how late, how receivers are, what namespaces have.

use std::time::Duration;

use serde_json::{Value, json};

use crate::rig::{
    Act, Backend, Client, Nodes, Receiver, Reply, Scripted, Service, beside_others, callback_to, eventually, for_each_store,
    heavy, http_answer,
};

const SOON: Duration = Duration::from_secs(15);
/// Nodes write down what they did every ten seconds.
const WRITTEN_WITHIN: Duration = Duration::from_secs(20);

for_each_store!(
    what_is_due_is_counted_by_time_and_namespace,
    what_was_fired_is_counted_with_its_lateness_and_outlives_a_restart,
    receivers_are_told_apart_by_how_their_calls_end,
    namespaces_show_what_they_have_and_no_secret,
    answers_are_kept_with_attempts_where_that_is_switched_on,
    alerts_have_their_gauges,
);

async fn data(client: &Client, path: &str) -> Value {
    let answer = client.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    answer.json()["data"].clone()
}

/// The sum of a field over all buckets.
async fn sum(client: &Client, path: &str, field: &str) -> u64 {
    // On a busy machine the time for counting may be over before all shards are counted.
    let data = eventually("all shards are counted", SOON, async || {
        Some(data(client, path).await).filter(|data| data["pending_is_estimate"] != true)
    })
    .await;
    data["buckets"].as_array().expect("buckets").iter().map(|bucket| bucket[field].as_u64().expect("a number")).sum()
}

fn due_in(delay: &str, namespace: &str, url: &str) -> Value {
    json!({"delay": delay, "namespace": namespace, "callback": callback_to(url, &json!(1))})
}

async fn what_is_due_is_counted_by_time_and_namespace(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let tenant = client.tenant("a").await;
    for (namespace, delay) in [("a", "30m"), ("a", "30m"), ("a", "90m"), ("b", "30m"), ("default", "30m"), ("b", "100d")] {
        client.create(&due_in(delay, namespace, "http://127.0.0.1:9/")).await;
    }
    for (asked, client, pending) in [
        ("", &client, 4),
        ("?step=2m", &client, 5),
        ("?namespace=b", &client, 1),
        ("?namespace=default,b", &client, 2),
        ("?namespace=unknown", &client, 0),
        ("", &tenant, 2),
        ("?step=1h", &tenant, 3),
    ] {
        assert_eq!(sum(client, &format!("/stats/due{asked}"), "pending").await, pending, "{asked}");
    }
    assert_eq!(tenant.get("/stats/due?namespace=b").await.status, 403);
    assert_eq!(client.get("/stats/due?step=1s").await.status, 400);
    service.stop().await;
}

async fn what_was_fired_is_counted_with_its_lateness_and_outlives_a_restart(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s")]).await;
    let client = service.client();
    let receiver = Receiver::replying(|call| Reply::Status(if call.path == "/bad" { 503 } else { 200 }));
    for _ in 0..5 {
        client.create(&due_in("0s", "a", &receiver.url("/good"))).await;
    }
    let mut twice = due_in("0s", "b", &receiver.url("/bad"));
    twice["retry_policy"] = json!({"max_retries": 1, "initial_interval": "10ms"});
    client.create(&twice).await;
    client.wait_until_finished(SOON).await;
    let counted = async |client: &Client, namespace: &str| {
        let mut sums = Vec::new();
        for field in ["created", "fired", "completed", "failed", "retried"] {
            sums.push(sum(client, &format!("/stats/fired{namespace}"), field).await);
        }
        sums
    };
    let all = [6, 7, 5, 1, 1];
    eventually("everything is counted", SOON, async || (counted(&client, "").await == all).then_some(())).await;
    assert_eq!(counted(&client, "?namespace=a").await, [5, 5, 5, 0, 0]);
    assert_eq!(counted(&client.tenant("b").await, "").await, [1, 2, 0, 1, 1]);
    assert_eq!(counted(&client.tenant("c").await, "").await, [0, 0, 0, 0, 0]);
    let minutes = data(&client, "/stats/fired?namespace=a").await["buckets"].clone();
    let lates: Vec<_> = minutes.as_array().expect("buckets").iter().filter(|bucket| bucket["fired"] != 0).collect();
    for bucket in &lates {
        let late = |field: &str| bucket[field].as_f64().unwrap_or_else(|| panic!("{field} in {bucket}"));
        let (p50, p99, max) = (late("lateness_p50_ms"), late("lateness_p99_ms"), late("lateness_max_ms"));
        assert!(0.0 < p50 && p50 <= p99 && p99 <= max, "{bucket}");
    }
    service.stop().await;

    let mut service = Service::start(&backend).await;
    assert_eq!(counted(&service.client(), "").await, all, "written down when the service stopped");
    service.stop().await;
}

async fn receivers_are_told_apart_by_how_their_calls_end(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s")]).await;
    let client = service.client();
    let (good, bad) = (Receiver::start(), Receiver::replying(|_| Reply::Status(503)));
    for _ in 0..3 {
        client.create(&due_in("0s", "a", &good.url("/secret-path?token=1"))).await;
    }
    let mut later = due_in("0s", "b", &bad.url("/secret-path?token=1"));
    later["retry_policy"] = json!({"max_retries": 1, "initial_interval": "1h", "max_interval": "2h"});
    let id = client.create(&later).await;
    good.wait_for(3, SOON).await;
    bad.wait_for(1, SOON).await;
    eventually("the failed call is on record", SOON, async || {
        (client.timer(&id).await["last_error"] != Value::Null).then_some(())
    })
    .await;
    let seen = async |client: &Client| {
        let shown = data(client, "/destinations").await;
        assert!(!shown.to_string().contains("secret") && !shown.to_string().contains("token"), "{shown}");
        assert_eq!(shown["complete"], true);
        shown["destinations"].as_array().expect("a list").clone()
    };
    let authority = |receiver: &Receiver| receiver.url("").trim_start_matches("http://").to_owned();
    let of = |seen: &[Value], receiver: &Receiver| {
        seen.iter().find(|one| one["destination"] == authority(receiver)).cloned().unwrap_or_default()
    };
    eventually("both are shown", SOON, async || {
        let seen = seen(&client).await;
        let (good, bad) = (of(&seen, &good), of(&seen, &bad));
        let is_good = good["health"] == "good" && good["ok_1m"] == 3 && good["failed_10m"] == 0 && good["in_flight"] == 0;
        let is_bad = bad["health"] == "failing" && bad["failed_1m"] == 1 && bad["failures_in_a_row"] == 1;
        (is_good && is_bad && good["p99_ms"].is_number() && bad["pending_retries"] == 1).then_some(())
    })
    .await;
    let seen = seen(&client.tenant("b").await).await;
    assert_eq!((seen.len(), &seen[0]["last_error"]), (1, &json!("answered 503 Service Unavailable")));
    service.stop().await;
}

async fn namespaces_show_what_they_have_and_no_secret(backend: Backend) {
    let _machine = beside_others().await;
    let file = backend.home().join("namespaces.json");
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let rules = json!({"a": {"signing_secret": secret}, "quiet": {"retry_policy": {"max_retries": 2}, "subjects": []}});
    std::fs::write(&file, rules.to_string()).expect("a file in the directory of the test");
    let settings = [("MIN_DELAY", "0s"), ("NAMESPACES_FILE", &*file.display().to_string())];
    let mut service = Service::start_with(&backend, &settings).await;
    let client = service.client();
    let bad = Receiver::replying(|_| Reply::Status(503));
    client.create(&due_in("1h", "a", "http://127.0.0.1:9/")).await;
    let id = client.create(&due_in("0s", "b", &bad.url("/"))).await;
    client.wait_for_status(&id, "failed").await;
    let all = data(&client, "/namespaces").await;
    assert!(!all.to_string().contains("whsec"), "{all}");
    let shown: Vec<_> = all["namespaces"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| {
            let words = ["pending", "failed", "has_retry_policy", "has_signing_secret", "has_subjects"].map(|field| &one[field]);
            json!([one["name"], words])
        })
        .collect();
    assert_eq!(
        shown,
        [
            json!(["a", [1, 0, false, true, false]]),
            json!(["b", [0, 1, false, false, false]]),
            json!(["default", [0, 0, false, false, false]]),
            json!(["quiet", [0, 0, true, false, true]]),
        ]
    );
    let own = data(&client.tenant("b").await, "/namespaces").await["namespaces"].clone();
    assert_eq!((own.as_array().map(Vec::len), &own[0]["name"], &own[0]["failed"]), (Some(1), &json!("b"), &json!(1)));
    service.stop().await;
}

async fn answers_are_kept_with_attempts_where_that_is_switched_on(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Scripted::start(|call| {
        let body = if call.path == "/long" { "x".repeat(5_000) } else { "out of \"stock\"".to_owned() };
        Act::Say(http_answer("503 Service Unavailable", "Content-Type: text/plain\r\nX-Secret: 1\r\n", &body))
    });
    for (setting, kept) in [(None, None), (Some("1k"), Some(1_024)), (Some("64k"), Some(5_000)), (Some("off"), None)] {
        let mut settings = vec![("MIN_DELAY", "0s")];
        settings.extend(setting.map(|value| ("ATTEMPTS_BODY", value)));
        let mut service = Service::start_with(&backend, &settings).await;
        let client = service.client();
        for (path, body) in [("/short", Some("out of \"stock\"".to_owned())), ("/long", kept.map(|bytes| "x".repeat(bytes)))] {
            let id = client.create(&due_in("0s", "default", &receiver.url(path))).await;
            client.wait_for_status(&id, "failed").await;
            let attempt = data(&client, &format!("/timers/{id}/attempts")).await["attempts"][0].clone();
            assert_eq!(attempt["status"], 503);
            let answer = &attempt["answer"];
            match kept {
                None => assert_eq!(*answer, Value::Null, "{setting:?}"),
                Some(_) => {
                    assert_eq!(answer["body"], json!(body), "{setting:?} {path}");
                    assert_eq!(answer["headers"], json!({"content-type": "text/plain"}));
                    assert_eq!(answer["body_base64"], Value::Null);
                }
            }
        }
        service.stop().await;
    }
}

async fn alerts_have_their_gauges(backend: Backend) {
    let _machine = beside_others().await;
    let settings = [("IN_FLIGHT_MAX", "77"), ("IN_FLIGHT_PER_DESTINATION_MAX", "7")];
    let mut service = Service::start_with(&backend, &settings).await;
    let client = service.client();
    for (name, value) in
        [("timer_in_flight_max", 77.0), ("timer_in_flight_per_destination_max", 7.0), ("timer_oldest_overdue_seconds", 0.0)]
    {
        assert_eq!(client.metric(name).await, Some(value), "{name}");
    }
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_tells_what_all_of_them_did() {
    let _machine = heavy().await;
    let nodes = Nodes::start(2).await;
    let clients = nodes.clients();
    let receiver = Receiver::start();
    for _ in 0..40 {
        clients[0].create(&due_in("0s", "a", &receiver.url("/"))).await;
    }
    receiver.wait_for(40, SOON).await;
    for client in &clients {
        eventually("what both nodes did", WRITTEN_WITHIN, async || {
            let fired = sum(client, "/stats/fired", "fired").await;
            let destinations = data(client, "/destinations").await["destinations"].clone();
            (fired == 40 && destinations[0]["ok_10m"] == 40).then_some(())
        })
        .await;
    }
    nodes.stop().await;
}
