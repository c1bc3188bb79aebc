//! PostgreSQL goes away as in a power cut and comes back: the service lives, says so, and catches up.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use rand::{RngExt, rngs::StdRng};
use serde_json::json;
use throwaway::Postgres;
use tokio_util::sync::CancellationToken;

use crate::rig::{
    Backend, Call, Chance, Client, Receiver, Reply, Service, callback_to, eventually, heavy, micros, now, tolerated,
};

/// Back at once, back as soon as `/healthz` tells of it (which takes as long as the lease of a shard, 3 s), and much longer than the
/// lease, which no node can renew meanwhile.
const OUTAGES: [Duration; 3] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(6)];
/// There are always calls under way, whose results have to wait for the database.
const CALL_TIME: Duration = Duration::from_millis(200);
const CALLERS: usize = 4;
const PAUSE: Duration = Duration::from_millis(25);
/// Five are promised; the rest is for a busy machine.
const CATCH_UP_SECONDS_MAX: f64 = 8.0;

/// The due time of every timer that was acknowledged.
type Due = Arc<Mutex<HashMap<String, i64>>>;

/// When the database went away and when it was back, in microseconds.
struct Outage {
    from: i64,
    to: i64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_fires_once_after_postgres_was_stopped_under_load() {
    let _machine = heavy().await;
    let postgres = Arc::new(Postgres::start());
    let backend = Backend::postgres_at(postgres.create_database());
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let (due, stop, mut chance) = (Due::default(), CancellationToken::new(), Chance::new("outages of PostgreSQL"));
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| tokio::spawn(call_on(client.clone(), receiver.url("/outage"), Arc::clone(&due), chance.fork(), stop.clone())))
        .collect();

    let mut outages = Vec::new();
    for length in OUTAGES {
        receiver.wait_for(receiver.count() + 100, Duration::from_secs(20)).await;
        let server = Arc::clone(&postgres);
        let from = now();
        tokio::task::spawn_blocking(move || server.stop_immediate()).await.expect("PostgreSQL stops");
        let stopped = tokio::time::Instant::now();
        if length > Duration::ZERO {
            wait_for_health(&client, 500, "degraded").await;
            // The length of the outage is what is tested.
            tokio::time::sleep_until(stopped + length).await;
        }
        let server = Arc::clone(&postgres);
        tokio::task::spawn_blocking(move || server.start_again()).await.expect("PostgreSQL starts");
        let to = now();
        outages.push(Outage { from, to });
        wait_for_health(&client, 200, "up").await;
        assert!(service.is_running(), "the service lives");
        // The next outage must not hide that one of these is stuck.
        wait_until_fired(&due, to, &receiver).await;
    }
    receiver.wait_for(receiver.count() + 100, Duration::from_secs(20)).await;
    stop.cancel();
    for caller in callers {
        caller.await.expect("a caller");
    }
    client.wait_until_finished(Duration::from_secs(30)).await;

    let due = due.lock().expect("no task holds it any more").clone();
    let longest = longest_waits(&due, &receiver.calls(), &outages);
    for (outage, longest) in outages.iter().zip(&longest) {
        let length = (outage.to - outage.from) as f64 / 1e6;
        println!(
            "PostgreSQL: after an outage of {length:.2} s the last of the timers that waited for its end fired {longest:.2} s after it"
        );
    }
    println!("PostgreSQL: {} timers, beside the outages {:.2} s late at the worst", due.len(), longest[outages.len()]);
    assert!(longest.iter().all(|longest| *longest < tolerated(CATCH_UP_SECONDS_MAX)), "{longest:?} s");
    service.stop().await;
}

/// Seconds from when a timer could be called to when it was, at the worst: over those that waited for the end of each outage, and
/// last over those that waited for none. Fails the test when one was called twice or never.
fn longest_waits(due: &HashMap<String, i64>, calls: &[Call], outages: &[Outage]) -> Vec<f64> {
    let mut arrived: HashMap<&str, i64> = HashMap::new();
    for call in calls {
        let earlier = arrived.insert(call.timer_id(), call.arrived);
        assert_eq!(earlier, None, "called twice: {call:?}");
    }
    let mut longest = vec![0.0_f64; outages.len() + 1];
    for (id, at) in due {
        let arrived = *arrived.get(id.as_str()).unwrap_or_else(|| panic!("lost: {id}"));
        let (place, waited) = match outages.iter().enumerate().find(|(_, outage)| outage.to > *at) {
            // From the first return of the database on, however often it went away again; and it was not to wait before, either.
            Some((place, outage)) if arrived > outage.to => (place, (arrived - outage.to).max(outage.from - at)),
            _ => (outages.len(), arrived - at),
        };
        longest[place] = longest[place].max(waited as f64 / 1e6);
    }
    longest
}

/// Waits until everything that was due at this time has been called.
async fn wait_until_fired(due: &Due, at: i64, receiver: &Receiver) {
    eventually("everything that waited for the database has fired", Duration::from_secs(30), async || {
        let called: HashSet<String> = receiver.calls().iter().map(|call| call.timer_id().to_owned()).collect();
        let due = due.lock().expect("no caller panics with it");
        due.iter().all(|(id, due)| *due > at || called.contains(id)).then_some(())
    })
    .await;
}

async fn wait_for_health(client: &Client, status: u16, word: &str) {
    eventually(&format!("/healthz says {word}"), Duration::from_secs(15), async || {
        let answer = client.get("/healthz").await;
        (answer.status == status && answer.json()["data"]["status"] == word).then_some(())
    })
    .await;
}

/// Registers timers for the next seconds, through all outages.
async fn call_on(client: Client, url: String, due: Due, mut numbers: StdRng, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let timer = json!({"delay": format!("{}ms", numbers.random_range(0..2_500)), "callback": callback_to(&url, &json!(1))});
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
