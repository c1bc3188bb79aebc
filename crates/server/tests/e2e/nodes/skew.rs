//! A node whose clock differs from the database's owns nothing and says so; its API stays open.

use std::time::Duration;

use serde_json::json;

use crate::rig::{
    Backend, Client, FakeTime, Receiver, SHARDS, Service, beside_others, callback_to, eventually, wait_until_shared,
};

const SOON: Duration = Duration::from_secs(15);

/// One with the right time, and one whose clock is off.
async fn start_pair(backend: &Backend, time: &FakeTime) -> (Service, Service) {
    let right = Service::start_with(backend, &[("MIN_DELAY", "0s"), ("NODE_NAME", "right")]).await;
    let off = Service::begin_at(backend, time, &[("MIN_DELAY", "0s"), ("NODE_NAME", "off")]);
    (right, off)
}

/// `data` of `/healthz` with this status, once it says something of the skew.
async fn health(client: &Client, status: u16, is_expected: impl Fn(f64) -> bool) -> serde_json::Value {
    eventually(&format!("/healthz answers {status} and tells of the skew"), SOON, async || {
        let answer = client.try_send("GET", "/healthz", None).await.ok().filter(|answer| answer.status == status)?;
        let data = answer.json()["data"].clone();
        is_expected(data["clock_skew_seconds"].as_f64()?).then_some(data)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_clock_is_wrong_owns_nothing_says_so_and_still_takes_requests() {
    let _machine = beside_others().await;
    for (offset, seconds) in [("+2", 2.0), ("-2", -2.0), ("+1h", 3600.0)] {
        let (backend, time, receiver) = (Backend::postgres(), FakeTime::fixed(offset), Receiver::start());
        let (mut right, mut off) = start_pair(&backend, &time).await;
        let client = off.client();
        let said = health(&client, 500, |skew| (skew - seconds).abs() < 0.5).await;
        assert_eq!((&said["shards"], &said["status"]), (&json!(0), &json!("degraded")), "{said}");
        wait_until_shared(&right.client(), 1).await;
        // What a node tells of itself is known after its next heartbeat.
        eventually("the other nodes know how far it is off", SOON, async || {
            let cluster = right.client().cluster().await;
            let node = cluster.named("off").next()?;
            assert!(!node.takes_shards && node.shards == 0, "{offset}: {node:?}");
            ((node.skew_seconds - seconds).abs() < 0.5).then_some(())
        })
        .await;

        let id = client.create(&json!({"delay": "500ms", "callback": callback_to(&receiver.url("/"), &json!(1))})).await;
        if seconds.abs() < 60.0 {
            // Due by the clock of the one that took the request, fired by the one with the right time.
            right.client().wait_for_status(&id, "completed").await;
            assert_eq!(receiver.count(), 1);
            assert_eq!(right.client().metric("timer_fired_total").await, Some(1.0));
        } else {
            assert_eq!(right.client().timer(&id).await["status"], "pending");
        }
        off.stop().await;
        right.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_clock_is_a_little_off_has_its_share() {
    let _machine = beside_others().await;
    let (backend, time) = (Backend::postgres(), FakeTime::fixed("+0.3"));
    let (mut right, mut off) = start_pair(&backend, &time).await;
    off.wait_until_healthy().await;
    wait_until_shared(&right.client(), 2).await;
    let said = health(&off.client(), 200, |skew| (0.2..0.45).contains(&skew)).await;
    assert_eq!(said["shards"], json!(SHARDS / 2), "{said}");
    off.stop().await;
    right.stop().await;
}
