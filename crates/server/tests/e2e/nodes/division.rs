//! What each of several nodes does: an equal share of the work, at the same price for each timer.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use crate::rig::{Backend, Client, Nodes, Receiver, alone, callback_to, heavy, instant, now};

const NODES_MAX: usize = 4;
const TIMERS: usize = 2_000;
/// So far apart that they are not claimed together, whether one node does it or four.
const BETWEEN_MICROS: i64 = 5_000;
const AHEAD_MICROS: i64 = 3_000_000;
const IDLE: Duration = Duration::from_secs(4);
const DRAIN: Duration = Duration::from_secs(60);

const SHARES_DIFFER_MAX: f64 = 0.2;
const PRICE_DIFFERS_MAX: f64 = 0.25;
const IDLE_PER_SECOND_MAX: f64 = 12.0;

/// What nodes did in some time.
struct Work {
    claims: Vec<f64>,
    store_calls: f64,
    seconds: f64,
}

async fn counts(nodes: &Nodes) -> (Vec<f64>, f64) {
    let clients = nodes.clients();
    let all = async |name: &'static str| join_all(clients.iter().map(|client: &Client| client.metric_sum(name))).await;
    (all("timer_claims_total").await, all("timer_store_call_duration_seconds_count").await.iter().sum())
}

/// What the nodes do while this goes on.
async fn measure(nodes: &Nodes, work: impl Future<Output = ()>) -> Work {
    let before = counts(nodes).await;
    let from = now();
    work.await;
    let after = counts(nodes).await;
    Work {
        claims: after.0.iter().zip(&before.0).map(|(after, before)| after - before).collect(),
        store_calls: after.1 - before.1,
        seconds: (now() - from) as f64 / 1e6,
    }
}

/// How many transactions the database has seen. It learns of them late.
fn transactions(nodes: &Nodes) -> f64 {
    let sql = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()";
    throwaway::postgres().query(nodes.backend.url(), sql).parse().expect("a number")
}

/// Has the nodes fire so many timers, each once.
async fn fire(nodes: &Nodes, timers: usize) {
    let receiver = Receiver::start();
    let clients = nodes.clients();
    let first = now() + AHEAD_MICROS;
    // So many in a request that the price of requests does not hide the price of firing.
    const AT_ONCE: usize = 500;
    for start in (0..timers).step_by(AT_ONCE) {
        let timer = |n: usize| {
            let at = instant(first + BETWEEN_MICROS * i64::try_from(n).expect("few"));
            json!({"execute_at": at, "callback": callback_to(&receiver.url("/"), &json!(n))})
        };
        let batch: Vec<_> = (start..start + AT_ONCE).map(timer).collect();
        let client = &clients[start / AT_ONCE % clients.len()];
        let answer =
            client.try_send("POST", "/timers/batch", Some(json!({"timers": batch}).to_string())).await.expect("an answer");
        assert!(answer.is_success(), "{}", answer.text);
    }
    let calls = receiver.wait_for(timers, DRAIN).await;
    assert_eq!(calls.len(), timers, "none twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_timer_is_claimed_once_and_every_node_claims_some() {
    const NODES: usize = 3;
    const FEW: usize = 1_000;
    let _machine = heavy().await;
    let nodes = Nodes::start(NODES).await;
    let busy = measure(&nodes, fire(&nodes, FEW)).await;
    println!("PostgreSQL, {NODES} nodes: claims {:?}", busy.claims);
    assert_eq!(busy.claims.iter().sum::<f64>(), FEW as f64, "each claimed once");
    // Shards are divided evenly, and ids over shards: a node with a tenth has not got its share.
    assert!(busy.claims.iter().all(|claims| *claims > FEW as f64 / 10.0), "{:?}", busy.claims);
    nodes.stop().await;
}

#[ignore = "soak: measures the price of a timer, for an idle machine"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_work_is_divided_and_costs_the_same_for_any_number_of_nodes() {
    let _machine = alone().await;
    let mut nodes = Nodes::start_on(Backend::postgres(), Vec::new(), 1).await;
    let (mut idle_calls, mut prices) = (Vec::new(), Vec::new());
    for count in 1..=NODES_MAX {
        if count > 1 {
            nodes.begin_another();
            nodes.services[count - 1].wait_until_healthy().await;
            nodes.wait_until_shared(count).await;
        }
        // The length of the idleness is what is measured.
        let (before, idle) = (transactions(&nodes), measure(&nodes, tokio::time::sleep(IDLE)).await);
        let [calls, commits] =
            [idle.store_calls, transactions(&nodes) - before].map(|count| count / idle.seconds / count_of(&nodes));
        println!("PostgreSQL, {count} idle nodes: {calls:.1} store calls, {commits:.1} transactions a second and node");
        assert!(calls < IDLE_PER_SECOND_MAX, "{calls} store calls a second while idle");
        idle_calls.push(calls);
    }
    for count in (1..=NODES_MAX).rev() {
        if nodes.services.len() > count {
            nodes.services.pop().expect("one more than wanted").stop().await;
            nodes.wait_until_shared(count).await;
        }
        let busy = measure(&nodes, fire(&nodes, TIMERS)).await;
        let price = (busy.store_calls - idle_calls[count - 1] * busy.seconds * count_of(&nodes)) / TIMERS as f64;
        println!("PostgreSQL, {count} nodes: claims {:?}; {price:.3} store calls a timer", busy.claims);
        prices.push(price);
        assert_eq!(busy.claims.iter().sum::<f64>(), TIMERS as f64, "each claimed once");
        let [least, most] = [f64::min, f64::max].map(|pick| busy.claims.iter().copied().reduce(pick).expect("a node"));
        assert!(most - least <= SHARES_DIFFER_MAX * most, "{:?}", busy.claims);
    }
    let [least, most] = [f64::min, f64::max].map(|pick| prices.iter().copied().reduce(pick).expect("a price"));
    assert!(most <= least * (1.0 + PRICE_DIFFERS_MAX), "{prices:?} store calls a timer");
    nodes.stop().await;
}

fn count_of(nodes: &Nodes) -> f64 {
    nodes.services.len() as f64
}
