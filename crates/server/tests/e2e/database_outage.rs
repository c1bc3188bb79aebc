//! PostgreSQL goes away as in a power cut and comes back: the service lives, says so, and catches up.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use throwaway::Postgres;
use tokio_util::sync::CancellationToken;

use crate::rig::{Backend, Call, Client, Receiver, Reply, Service, alone, callback_to, eventually, micros, now};

/// Shorter and longer than the lease of a shard (4 s), which nobody can renew meanwhile.
const OUTAGES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(6)];
/// There are always calls under way, whose results have to wait for the database.
const CALL_TIME: Duration = Duration::from_millis(200);
const CALLERS: usize = 4;
const PAUSE: Duration = Duration::from_millis(25);
const CATCH_UP_SECONDS_MAX: f64 = 10.0;

/// The due time of every timer that was acknowledged.
type Due = Arc<Mutex<HashMap<String, i64>>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_fires_once_after_postgres_was_stopped_under_load() {
    let _machine = alone().await;
    let postgres = Arc::new(Postgres::start());
    let backend = Backend::postgres_at(postgres.create_database());
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let (due, stop) = (Due::default(), CancellationToken::new());
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| tokio::spawn(call_on(client.clone(), receiver.url("/outage"), Arc::clone(&due), stop.clone())))
        .collect();

    let mut returns = Vec::new();
    for outage in OUTAGES {
        receiver.wait_for(receiver.count() + 100, Duration::from_secs(20)).await;
        let server = Arc::clone(&postgres);
        tokio::task::spawn_blocking(move || server.stop_immediate()).await.expect("PostgreSQL stops");
        let stopped = tokio::time::Instant::now();
        wait_for_health(&client, 500, "degraded").await;
        // The length of the outage is what is tested.
        tokio::time::sleep_until(stopped + outage).await;
        let server = Arc::clone(&postgres);
        tokio::task::spawn_blocking(move || server.start_again()).await.expect("PostgreSQL starts");
        returns.push(now());
        wait_for_health(&client, 200, "up").await;
        assert!(service.is_running(), "the service lives");
    }
    receiver.wait_for(receiver.count() + 100, Duration::from_secs(20)).await;
    stop.cancel();
    for caller in callers {
        caller.await.expect("a caller");
    }
    client.wait_until_finished(Duration::from_secs(30)).await;

    let due = due.lock().expect("nobody holds it any more").clone();
    let longest = longest_wait(&due, &receiver.calls(), &returns) as f64 / 1e6;
    println!("PostgreSQL: {} timers over {} outages, the last one fired {longest:.2} s after it could", due.len(), OUTAGES.len());
    assert!(longest < CATCH_UP_SECONDS_MAX, "{longest} s");
    service.stop().await;
}

/// Microseconds from when a timer could be called to when it was, at the worst. Fails the test when one was called twice or never.
fn longest_wait(due: &HashMap<String, i64>, calls: &[Call], returns: &[i64]) -> i64 {
    let mut arrived: HashMap<&str, i64> = HashMap::new();
    for call in calls {
        let earlier = arrived.insert(call.timer_id(), call.arrived);
        assert_eq!(earlier, None, "called twice: {call:?}");
    }
    let waited = due.iter().map(|(id, at)| {
        let arrived = *arrived.get(id.as_str()).unwrap_or_else(|| panic!("lost: {id}"));
        // What could not be called before the database was back counts from there.
        let could_be = returns.iter().rev().find(|back| arrived >= **back).map_or(*at, |back| (*back).max(*at));
        arrived - could_be
    });
    waited.max().expect("there were timers")
}

async fn wait_for_health(client: &Client, status: u16, word: &str) {
    eventually(&format!("/healthz says {word}"), Duration::from_secs(15), async || {
        let answer = client.get("/healthz").await;
        (answer.status == status && answer.json()["data"]["status"] == word).then_some(())
    })
    .await;
}

/// Registers timers for the next seconds, through all outages.
async fn call_on(client: Client, url: String, due: Due, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let timer = json!({"delay": format!("{}ms", rand::random_range(0..2_500)), "callback": callback_to(&url, &json!(1))});
        match client.try_create(&timer).await {
            Ok(answer) if answer.is_success() => {
                let at = micros(answer.json()["data"]["execute_at"].as_str().expect("a due time"));
                due.lock().expect("no caller panics with it").insert(answer.id(), at);
            }
            Ok(answer) => assert_eq!(answer.status, 503, "{}", answer.text),
            Err(_) => panic!("no answer while the database was away"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
