//! Two services on Cassandra: one is killed or paused, or a node of Cassandra is, and what was acknowledged holds.

use std::{sync::Arc, time::Duration};

use crate::{
    history::{Fault, Mixture},
    rig::{Backend, LEASE_MICROS, Nodes, Receiver, Reply, blocking, heavy, now, scaled, wait_for_wall},
    trial::Trial,
};

const NODES: usize = 2;
/// There are always calls under way.
const CALL_TIME: Duration = Duration::from_millis(50);
/// How many calls of one tenant to one destination may be in flight, and as many again that are over and not on record.
const IN_FLIGHT: usize = 2 * 256;
/// A create with a key of its own is a Paxos round of its own: far fewer of them than on other stores fit on one machine.
const LOAD: Mixture = Mixture { creates_per_second: 50, due_within: Duration::from_secs(2), repeats_creates: true };

#[ignore = "soak: starts a Cassandra"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_of_a_node_that_was_killed_or_paused_fire_again_on_cassandra() {
    const PAUSE_MICROS: i64 = LEASE_MICROS + 3_000_000;
    let _machine = heavy().await;
    let Some(backend) = blocking(Backend::cassandra) else { return };
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let nodes = Nodes::start_on(backend, Vec::new(), NODES).await;
    let mut trial = Trial::start("kill -9 and SIGSTOP on Cassandra", nodes, receiver, CALL_TIME);
    trial.load(LOAD);

    let rounds = scaled(2);
    for _ in 0..rounds {
        trial.wait_for_calls(20).await;
        let victim = trial.chance.some(1, NODES)[0];
        trial.open_apis([1 - victim]);
        trial.nodes.services[victim].kill();
        trial.faults.push(Fault::kill(now()));
        // The other one goes on, with all shards after the lease of the dead one.
        trial.wait_for_calls(20).await;
        trial.nodes.services[victim].start_again().await;
        trial.nodes.wait_until_shared(NODES).await;

        let paused = 1 - victim;
        trial.open_apis([victim]);
        trial.nodes.services[paused].signal("STOP");
        let from = now();
        wait_for_wall(from + PAUSE_MICROS).await;
        trial.nodes.services[paused].signal("CONT");
        trial.faults.push(Fault::pause(from, now()));
        trial.wait_for_calls(20).await;
        trial.nodes.wait_until_shared(NODES).await;
        trial.open_apis(0..NODES);
    }
    let (nodes, outcome) = trial.finish().await;
    assert!(outcome.summary.repeated <= 2 * rounds * IN_FLIGHT, "{}", outcome.summary);
    assert!(outcome.summary.created > 20 * rounds, "too little load to mean anything: {}", outcome.summary);
    nodes.stop().await;
}

#[ignore = "soak: starts a cluster of Cassandra"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_cassandra_that_is_killed_and_comes_back_loses_nothing() {
    const DOWN_MICROS: i64 = 15_000_000;
    let _machine = heavy().await;
    let Some(server) = blocking(throwaway::Cassandra::start_three) else { return };
    let server = Arc::new(server);
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let nodes = Nodes::start_on(Backend::cassandra_on(&server), Vec::new(), NODES).await;
    let mut trial = Trial::start("kill -9 of a Cassandra node", nodes, receiver, CALL_TIME);
    trial.load(Mixture { creates_per_second: 20, ..LOAD });

    trial.wait_for_calls(20).await;
    let from = now();
    blocking(|| server.kill(2));
    // Firing goes on with the two others.
    trial.wait_for_calls(20).await;
    wait_for_wall(from + DOWN_MICROS).await;
    trial.wait_for_calls(20).await;
    blocking(|| server.start_again(2));
    // A heartbeat that waits for the dead one may cost a node its lease.
    trial.faults.extend([Fault::outage(from, now()), Fault::silence(from)]);
    trial.wait_for_calls(20).await;

    let (nodes, outcome) = trial.finish().await;
    assert!(outcome.summary.created > 60, "too little load to mean anything: {}", outcome.summary);
    nodes.stop().await;
}
