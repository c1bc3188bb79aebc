//! Finished timers go when they have been kept long enough, and what fires meanwhile is not held up by it.

use std::{collections::HashMap, time::Duration};

use serde_json::json;

use crate::{
    lateness::Lateness,
    rig::{
        Backend, Client, Finished, Receiver, Service, alone, callback_to, eventually, for_each_store, heavy, instant, now,
        wait_for_wall,
    },
};

const KEPT: &str = "1h";
const HOUR_MICROS: i64 = 3_600_000_000;

for_each_store!(mariadb in soak: what_is_kept_long_enough_goes_and_nothing_else);

async fn what_is_kept_long_enough_goes_and_nothing_else(backend: Backend) {
    const OLD: usize = 20_000;
    const YOUNG: usize = 700;
    const WAITING: usize = 50;
    const FIRING: usize = 400;

    let _machine = heavy().await;
    let receiver = Receiver::start();
    let old = |count, status| finished_ago(count, 2 * HOUR_MICROS, status);
    let young = |count, status| finished_ago(count, HOUR_MICROS / 2, status);
    let finished = [
        old(OLD - 2_000, "completed"),
        old(1_000, "failed"),
        old(1_000, "canceled"),
        young(YOUNG - 300, "failed"),
        young(300, "completed"),
    ];
    fill(&backend, &finished).await;
    // As old as what goes, but they wait.
    let mut before = Service::start_with(&backend, &[("MIN_DELAY", "0s"), ("RETENTION", "1000d")]).await;
    let waiting = json!({"delay": "10d", "namespace": "waiting", "callback": callback_to(&receiver.url("/never"), &json!(1))});
    for _ in 0..WAITING {
        before.client().create(&waiting).await;
    }
    before.stop().await;
    let aged =
        format!("UPDATE definition SET created_at = {0}, updated_at = {0} WHERE namespace = 'waiting'", now() - 3 * HOUR_MICROS);
    backend.execute(&aged);

    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s"), ("RETENTION", KEPT)]).await;
    let client = service.client();
    let begun_with = purged(&client).await;
    for n in 0..FIRING {
        let callback = callback_to(&receiver.url("/now"), &json!(n));
        client.create(&json!({"delay": format!("{}ms", 5 * n), "callback": callback})).await;
    }
    let while_firing = purged(&client).await;
    receiver.wait_for(FIRING, Duration::from_secs(60)).await;
    eventually("everything old is gone", Duration::from_secs(60), async || (purged(&client).await >= OLD as u64).then_some(()))
        .await;
    eventually("all results are recorded", Duration::from_secs(20), async || {
        (client.count("completed").await == (300 + FIRING) as u64).then_some(())
    })
    .await;

    // On a busy machine all of it may be gone before the first is registered.
    assert!(
        begun_with < while_firing || begun_with == OLD as u64,
        "it purges while timers fire: {begun_with}, then {while_firing}"
    );
    assert_eq!(purged(&client).await, OLD as u64);
    assert_eq!(receiver.count(), FIRING, "each has fired, once");
    let mut left = HashMap::new();
    for status in ["pending", "executing", "failed", "canceled"] {
        left.insert(status, client.count(status).await);
    }
    let expected = [("pending", WAITING), ("executing", 0), ("failed", YOUNG - 300), ("canceled", 0)];
    assert_eq!(left, expected.map(|(status, count)| (status, count as u64)).into());
    service.stop().await;
}

/// Timers due in each second, registered while others fire.
const RATE: usize = 500;
const BATCHES_A_SECOND: usize = 10;
/// From registering to the due time.
const LEAD_MICROS: i64 = 2_000_000;
const MILLION: usize = 1_000_000;
const PORTIONS: usize = 10;
const WITHOUT: Duration = Duration::from_secs(20);
const WITH: Duration = Duration::from_secs(60);
const P99_FACTOR_MAX: f64 = 2.0;

// Minutes of load, which mean something on an optimised build only.
for_each_store!(soak: purging_a_million_does_not_double_the_lateness_of_what_fires);

async fn purging_a_million_does_not_double_the_lateness_of_what_fires(backend: Backend) {
    let _machine = alone().await;
    // In portions, so that no log of one huge transaction takes as much room again as the timers.
    let portion = |n: usize| finished_ago(MILLION / PORTIONS, (2 + n as i64) * HOUR_MICROS, "completed");
    fill(&backend, &(0..PORTIONS).rev().map(portion).collect::<Vec<_>>()).await;
    // What the filling left in memory would be written while the first measurements are taken.
    assert!(std::process::Command::new("sync").status().expect("sync runs").success());

    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s"), ("RETENTION", "1000d")]).await;
    let without = load(&service.client(), WITHOUT).await;
    assert_eq!(purged(&service.client()).await, 0);
    service.stop().await;

    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s"), ("RETENTION", KEPT)]).await;
    let client = service.client();
    let begun = now();
    let with = load(&client, WITH).await;
    let meanwhile = purged(&client).await;
    let seconds = (now() - begun) as f64 / 1e6;
    assert!(meanwhile < MILLION as u64, "it purged all the while");

    let factor = with.percentile(99) / without.percentile(99);
    println!(
        "{}, {RATE} timers/s: without a purge {without}; with one {with}: p99 times {factor:.2}; {meanwhile} of {MILLION} were \
         purged in {seconds:.0} s",
        backend.name()
    );
    service.stop().await;
    assert!(factor <= P99_FACTOR_MAX, "p99 times {factor:.2}");
}

/// Registers timers steadily and lets them fire for this long; how late they were.
async fn load(client: &Client, length: Duration) -> Lateness {
    let receiver = Receiver::start();
    let begun = now() + 1_000_000;
    let batches = length.as_secs() as usize * BATCHES_A_SECOND;
    let size = RATE / BATCHES_A_SECOND;
    let mut registering = tokio::task::JoinSet::new();
    for batch in 0..batches {
        let at = begun + (batch * 1_000_000 / BATCHES_A_SECOND) as i64;
        wait_for_wall(at).await;
        let timer = |n: usize| {
            let due = at + LEAD_MICROS + (n * 1_000_000 / RATE) as i64;
            json!({"execute_at": instant(due), "callback": callback_to(&receiver.url("/load"), &json!(due))})
        };
        let body = json!({"timers": (0..size).map(timer).collect::<Vec<_>>()}).to_string();
        let client = client.clone();
        registering.spawn(async move {
            let answer = client.try_send("POST", "/timers/batch", Some(body)).await.expect("an answer");
            assert_eq!(answer.status, 200, "{}", answer.text);
            assert_eq!(answer.text.matches(r#""status":201"#).count(), size, "{}", answer.text);
        });
    }
    registering.join_all().await;
    let calls = receiver.wait_for(batches * size, Duration::from_secs(60)).await;
    assert_eq!(calls.len(), batches * size, "each has fired once");
    Lateness::of(calls.iter().map(|call| call.arrived - call.json().as_i64().expect("when it was due")))
}

async fn purged(client: &Client) -> u64 {
    client.metric("timer_purged_total").await.unwrap_or_default() as u64
}

/// So many timers, the last of which finished so long ago.
fn finished_ago(count: usize, micros: i64, status: &'static str) -> Finished {
    Finished { count, first_at: now() - micros - i64::try_from(count).expect("few"), status }
}

/// Copies a timer that the service has completed itself, with other ends.
async fn fill(backend: &Backend, finished: &[Finished]) {
    let receiver = Receiver::start();
    let mut service = Service::start(backend).await;
    let client = service.client();
    let id = client.create(&json!({"delay": "0s", "callback": callback_to(&receiver.url("/first"), &json!({"order": 1}))})).await;
    client.wait_for_status(&id, "completed").await;
    service.stop().await;
    backend.add_finished(finished);
}
