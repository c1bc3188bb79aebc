//! Under a steady flow of messages the NATS server is killed and started again and again: nothing is `completed` that it did not take.

use std::{collections::HashMap, ops::Range, time::Duration};

use rand::{RngExt, rngs::StdRng};
use serde_json::json;
use throwaway::Nats;
use tokio_util::sync::CancellationToken;

use crate::rig::{Backend, Bus, Chance, Client, Service, blocking, heavy, micros, now, stored_at, told_to};

const KILLS: usize = 10;
const CALLERS: usize = 4;
const PAUSE: Duration = Duration::from_millis(25);
const DOWN_MILLIS: Range<u64> = 0..900;
const UP_MILLIS: Range<u64> = 300..1_200;
/// What the server has taken without being asked to store it stands in the stream a little later: it goes through a queue, which
/// does not outlive a kill.
const STORED_AFTER_MICROS: i64 = 250_000;

/// From when the server was dead to when it was started again.
struct Outage {
    from: i64,
    to: i64,
}

struct Fired {
    id: String,
    stored: bool,
    execute_at: i64,
}

/// What can be proven, and how:
///
/// - With `jetstream`, `completed` means that the stream has it. Its content is the proof, and what it acknowledged survives
///   the kill of a process.
/// - Without, `completed` means that the server has taken it. A server that is killed right then may have passed it to no
///   subscriber, and no client could tell. So two things are asked. A timer that was due while the server was dead, and had its
///   result while it was dead, cannot be completed: no server could take anything. And a timer that was completed well before the
///   next kill stands in a stream that listens to the subject, as any subscriber that was connected would have it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_completed_was_taken_whenever_the_server_was_killed() {
    let _machine = heavy().await;
    let backend = Backend::sqlite();
    let nats = blocking(Nats::start);
    let bus = Bus::connect(&nats.url()).await;
    bus.make_stream("WITNESS", "flow.>", 1).await;
    let mut service = Service::start_with_nats(&backend, &nats.url()).await;
    let client = service.client();
    let stop = CancellationToken::new();
    let mut chance = Chance::new("kills of the NATS server");
    let callers: Vec<_> = (0..CALLERS).map(|_| tokio::spawn(call_on(client.clone(), chance.fork(), stop.clone()))).collect();

    let mut outages = Vec::new();
    for _ in 0..KILLS {
        client.wait_for_health("nats", "connected").await;
        tokio::time::sleep(chance.millis(UP_MILLIS)).await;
        blocking(|| nats.stop_immediate());
        let from = now();
        tokio::time::sleep(chance.millis(DOWN_MILLIS)).await;
        let to = now();
        blocking(|| nats.start_again());
        outages.push(Outage { from, to });
    }
    client.wait_for_health("nats", "connected").await;
    stop.cancel();
    let mut fired = Vec::new();
    for caller in callers {
        fired.extend(caller.await.expect("a caller"));
    }
    client.wait_until_finished(Duration::from_secs(30)).await;

    // The last timers have been completed just now.
    tokio::time::sleep(Duration::from_micros(STORED_AFTER_MICROS.unsigned_abs())).await;
    let mut witness = bus.witness("WITNESS");
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    for message in witness.read().await {
        *by_id.entry(message.header("X-Timer-Id")).or_default() += 1;
    }
    let (mut completed, mut failed) = ([0, 0], [0, 0]);
    for Fired { id, stored, execute_at } in &fired {
        let timer = client.timer(id).await;
        let count = by_id.get(id.as_str()).copied().unwrap_or_default();
        if timer["status"] == "failed" {
            failed[usize::from(*stored)] += 1;
            continue;
        }
        assert_eq!(timer["status"], "completed", "{timer}");
        completed[usize::from(*stored)] += 1;
        let executed_at = micros(timer["executed_at"].as_str().expect("when it was executed"));
        let dead = outages.iter().any(|outage| *execute_at >= outage.from && executed_at < outage.to);
        assert!(!dead, "completed while there was no server: {timer}");
        let killed_right_after =
            outages.iter().any(|outage| (executed_at - 50_000..executed_at + STORED_AFTER_MICROS).contains(&outage.from));
        if *stored || !killed_right_after {
            assert_eq!(count, 1, "completed, but the stream has it {count} times: {timer}");
        }
    }
    println!(
        "{KILLS} kills of the NATS server, {} timers tried once: for a stream {} completed and {} failed, for any subscriber {} \
         completed and {} failed",
        fired.len(),
        completed[1],
        failed[1],
        completed[0],
        failed[0]
    );
    assert!(completed.iter().all(|count| *count > 2 * KILLS), "too little load to mean anything");
    assert!(failed.iter().all(|count| *count > 0), "the kills met no message");
    service.stop().await;
}

/// Registers timers for the next moment, of both kinds by turns, whatever happens to the NATS server.
async fn call_on(client: Client, mut numbers: StdRng, stop: CancellationToken) -> Vec<Fired> {
    let mut fired = Vec::new();
    while !stop.is_cancelled() {
        let stored = fired.len() % 2 == 0;
        let callback = if stored { stored_at("flow.stored", &json!(1)) } else { told_to("flow.told", &json!(1)) };
        let delay = format!("{}ms", numbers.random_range(1..100));
        let answer = client.post(&json!({"delay": delay, "callback": callback}).to_string()).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        let execute_at = micros(answer.json()["data"]["execute_at"].as_str().expect("a due time"));
        fired.push(Fired { id: answer.id(), stored, execute_at });
        tokio::time::sleep(PAUSE).await;
    }
    fired
}
