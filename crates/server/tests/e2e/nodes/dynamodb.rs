//! Two services on one DynamoDB table: one is killed or paused, the other takes over, and what was acknowledged holds.

use std::time::Duration;

use crate::{
    history::{Fault, Mixture},
    rig::{Backend, LEASE_MICROS, Nodes, Receiver, Reply, heavy, now, scaled, wait_for_wall, wait_until_shared},
    trial::Trial,
};

const NODES: usize = 2;
/// There are always calls under way.
const CALL_TIME: Duration = Duration::from_millis(50);
/// How many calls of one tenant to one destination may be in flight, and as many again that are over and not on record.
const IN_FLIGHT: usize = 2 * 256;

/// A table of the shared server; `None`, and a line that says so, where there is no DynamoDB Local.
fn backend() -> Option<Backend> {
    let backend = throwaway::dynamodb().map(|server| Backend::dynamodb_at(server.new_table()));
    if backend.is_none() {
        println!("left out: there is no DynamoDB Local for tests; scripts/dynamodb.sh --fetch gets one");
    }
    backend
}

#[ignore = "soak: needs a DynamoDB Local (scripts/dynamodb.sh --fetch)"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_of_a_node_that_was_killed_fire_again_on_dynamodb() {
    let Some(backend) = backend() else { return };
    let _machine = heavy().await;
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let nodes = Nodes::start_on(backend, Vec::new(), NODES).await;
    let mut trial = Trial::start("kill -9 on DynamoDB", nodes, receiver, CALL_TIME);
    trial.load(Mixture::default());

    let kills = scaled(2);
    for _ in 0..kills {
        trial.wait_for_calls(20).await;
        let victim = trial.chance.some(1, NODES)[0];
        trial.open_apis((0..NODES).filter(|number| *number != victim));
        trial.nodes.services[victim].kill();
        trial.faults.push(Fault::kill(now()));
        // The other one goes on, with all shards after the lease of the dead one.
        trial.wait_for_calls(20).await;
        trial.nodes.services[victim].start_again().await;
        trial.open_apis(0..NODES);
        trial.nodes.wait_until_shared(NODES).await;
    }
    let (nodes, outcome) = trial.finish().await;
    assert!(outcome.summary.repeated <= kills * IN_FLIGHT, "{}", outcome.summary);
    assert!(outcome.summary.created > 20 * kills, "too little load to mean anything: {}", outcome.summary);
    nodes.stop().await;
}

#[ignore = "soak: needs a DynamoDB Local (scripts/dynamodb.sh --fetch)"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_paused_for_longer_than_its_lease_is_fenced_on_dynamodb() {
    const PAUSE_MICROS: i64 = LEASE_MICROS + 3_000_000;
    let Some(backend) = backend() else { return };
    let _machine = heavy().await;
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let nodes = Nodes::start_on(backend, Vec::new(), NODES).await;
    let mut trial = Trial::start("SIGSTOP on DynamoDB", nodes, receiver, CALL_TIME);
    trial.load(Mixture::default());

    for _ in 0..scaled(2) {
        trial.wait_for_calls(50).await;
        let paused = trial.chance.some(1, NODES)[0];
        let staying = NODES - 1 - paused;
        trial.open_apis([staying]);
        trial.nodes.services[paused].signal("STOP");
        let from = now();
        wait_for_wall(from + PAUSE_MICROS).await;
        trial.nodes.services[paused].signal("CONT");
        trial.faults.push(Fault::pause(from, now()));
        wait_until_shared(&trial.nodes.services[staying].client(), NODES).await;
        trial.open_apis(0..NODES);
    }
    let pauses = trial.faults.len();
    let (nodes, outcome) = trial.finish().await;
    assert!(outcome.summary.held <= pauses, "called by nodes that should have looked: {}", outcome.summary);
    nodes.stop().await;
}
