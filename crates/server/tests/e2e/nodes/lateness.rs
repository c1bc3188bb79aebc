//! Timers that are registered with one node and belong to another fire as soon as if they had been registered there.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures_util::future::join_all;
use rand::{RngExt, rngs::StdRng};
use serde_json::json;

use crate::{
    lateness::Lateness,
    rig::{Chance, Client, Link, Nodes, Receiver, alone, callback_to, heavy, instant, now, tolerated},
};

const NODES: usize = 3;
const CALLERS: usize = 12;
const AHEAD_MICROS: std::ops::Range<i64> = 300_000..1_500_000;
/// All together. About half of what this takes with everything on two cores.
const CREATES_PER_SECOND: u32 = 500;
const DRAIN: Duration = Duration::from_secs(60);

/// A timer that was registered.
struct Registered {
    due: i64,
    /// The number of the node that it was registered with.
    with: usize,
}

/// Registers timers with all nodes in turn, at an even pace.
async fn register(clients: &[Client], url: &str, count: usize) -> HashMap<String, Registered> {
    let next = AtomicUsize::new(0);
    let mut chance = Chance::new("timers of three nodes");
    let call_on = async |mut numbers: StdRng| {
        let pace = Duration::from_secs(1) * u32::try_from(CALLERS).expect("few") / CREATES_PER_SECOND;
        let mut registered = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return registered;
            }
            let begun = tokio::time::Instant::now();
            let (with, due) = (number % clients.len(), now() + numbers.random_range(AHEAD_MICROS));
            let timer = json!({"execute_at": instant(due), "callback": callback_to(url, &json!(number))});
            registered.push((clients[with].create(&timer).await, Registered { due, with }));
            tokio::time::sleep_until(begun + pace).await;
        }
    };
    join_all((0..CALLERS).map(|_| chance.fork()).map(call_on)).await.into_iter().flatten().collect()
}

/// Fails the test when one was called twice, never or early; how late they were, first those registered with their owner.
async fn latenesses(nodes: &Nodes, count: usize) -> [Lateness; 2] {
    let receiver = Receiver::start();
    let clients = nodes.clients();
    let before = clients[0].cluster().await;
    let registered = register(&clients, &receiver.url("/"), count).await;
    receiver.wait_for(count, DRAIN).await;
    clients[0].wait_until_finished(DRAIN).await;
    assert_eq!(clients[0].cluster().await.epochs, before.epochs, "no shard moved");

    let calls = receiver.calls();
    assert_eq!((calls.len(), registered.len()), (count, count), "none twice");
    let mut late = HashMap::new();
    for call in &calls {
        let Registered { due, with } = registered.get(call.timer_id()).expect("a timer that was registered");
        assert!(call.arrived >= *due, "early: {call:?}");
        let is_owner = before.owner_of(call.timer_id()) == Some(&format!("node-{with}"));
        let earlier = late.insert(call.timer_id(), (is_owner, call.arrived - due));
        assert_eq!(earlier, None, "called twice: {call:?}");
    }
    [true, false].map(|wanted| Lateness::of(late.values().filter(|(is_owner, _)| *is_owner == wanted).map(|(_, late)| *late)))
}

async fn sum(clients: &[Client], metric: &str) -> f64 {
    join_all(clients.iter().map(|client| client.metric_sum(metric))).await.iter().sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_fire_everything_once_wherever_it_was_registered() {
    const TIMERS: usize = 2_000;
    let _machine = heavy().await;
    three_nodes(TIMERS).await;
}

#[ignore = "soak: measures milliseconds, for an idle machine"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_fire_everything_once_and_as_soon_wherever_it_was_registered() {
    const TIMERS: usize = 20_000;
    const DIFFERENCE_MILLIS_MAX: f64 = 50.0;
    let _machine = alone().await;
    let [owner, other] = three_nodes(TIMERS).await;
    let difference = other.percentile(99) - owner.percentile(99);
    assert!(difference <= DIFFERENCE_MILLIS_MAX, "{difference} ms later at p99");
}

async fn three_nodes(timers: usize) -> [Lateness; 2] {
    let nodes = Nodes::start(NODES).await;
    let [owner, other] = latenesses(&nodes, timers).await;
    println!("PostgreSQL, {NODES} nodes, {timers} timers, none twice, none lost");
    println!("  registered with their owner:   {owner}");
    println!("  registered with another node:  {other}");
    let clients = nodes.clients();
    let [sent, received, repaired] =
        ["timer_nudges_sent_total", "timer_nudges_received_total", "timer_sweep_repaired_total"].map(|name| sum(&clients, name));
    let (sent, received, repaired) = (sent.await, received.await, repaired.await);
    println!("  nudges: {sent} sent, {received} received (every node hears each); {repaired} timers were found by a sweep");
    assert!(sent > 0.0 && received >= sent, "{sent} {received}");
    nodes.stop().await;
    [owner, other]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_every_nudge_lost_nothing_is_later_than_a_sweep() {
    const TIMERS: usize = 2_000;
    /// A sweep comes a second after the end of the one before; the rest is for a busy machine.
    const LATE_MILLIS_MAX: f64 = 1_600.0;
    let _machine = heavy().await;
    let nodes = Nodes::start_over(NODES, Link::without_notifications).await;
    let [owner, other] = latenesses(&nodes, TIMERS).await;
    println!("PostgreSQL, {NODES} nodes, every nudge lost, {TIMERS} timers, none twice, none lost");
    println!("  registered with their owner:   {owner}");
    println!("  registered with another node:  {other}");
    let clients = nodes.clients();
    assert!(sum(&clients, "timer_nudges_sent_total").await > 0.0);
    assert_eq!(sum(&clients, "timer_nudges_received_total").await, 0.0, "every nudge is lost");
    assert!(sum(&clients, "timer_sweep_repaired_total").await > 0.0, "it is the sweep that finds them");
    assert!(other.max() < tolerated(LATE_MILLIS_MAX) && other.percentile(99) < tolerated(1_300.0), "{other}");
    nodes.stop().await;
}
