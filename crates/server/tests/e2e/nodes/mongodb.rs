//! Two services on one MongoDB: one is killed, paused or cut off from answers, the other takes over, and what was acknowledged holds.

use std::time::Duration;

use crate::{
    history::{Fault, Mixture},
    rig::{Backend, LEASE_MICROS, Link, Nodes, Receiver, Reply, heavy, now, scaled, wait_for_wall, wait_until_shared},
    trial::Trial,
};

const NODES: usize = 2;
/// There are always calls under way.
const CALL_TIME: Duration = Duration::from_millis(50);
/// How many calls of one tenant to one destination may be in flight, and as many again that are over and not on record.
const IN_FLIGHT: usize = 2 * 256;

/// A database of the shared server; `None`, and a line that says so, where there is no MongoDB.
fn backend() -> Option<Backend> {
    let backend = throwaway::mongodb().map(|server| Backend::mongodb_at(server.create_database()));
    if backend.is_none() {
        println!("left out: there is no MongoDB for tests; scripts/mongodb.sh --fetch gets one");
    }
    backend
}

#[ignore = "soak: needs a MongoDB (scripts/mongodb.sh --fetch)"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_of_a_node_that_was_killed_fire_again_on_mongodb() {
    let Some(backend) = backend() else { return };
    let _machine = heavy().await;
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let nodes = Nodes::start_on(backend, Vec::new(), NODES).await;
    let mut trial = Trial::start("kill -9 on MongoDB", nodes, receiver, CALL_TIME);
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

#[ignore = "soak: needs a MongoDB (scripts/mongodb.sh --fetch)"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_paused_for_longer_than_its_lease_is_fenced_on_mongodb() {
    const PAUSE_MICROS: i64 = LEASE_MICROS + 3_000_000;
    let Some(backend) = backend() else { return };
    let _machine = heavy().await;
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let nodes = Nodes::start_on(backend, Vec::new(), NODES).await;
    let mut trial = Trial::start("SIGSTOP on MongoDB", nodes, receiver, CALL_TIME);
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

#[ignore = "soak: needs a MongoDB (scripts/mongodb.sh --fetch)"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_mongodb_that_are_lost_make_no_timer_and_no_call_twice() {
    let Some(backend) = backend() else { return };
    let _machine = heavy().await;
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let links = (0..NODES).map(|_| Link::start(&backend)).collect();
    let nodes = Nodes::start_on(backend, links, NODES).await;
    let mut trial = Trial::start("answers of MongoDB lost", nodes, receiver, CALL_TIME);
    trial.load(Mixture { repeats_creates: true, ..Mixture::default() });
    let cuts = scaled(20);
    for _ in 0..cuts {
        let (number, held) = (trial.chance.below(NODES), trial.chance.millis(20..120));
        trial.nodes.links[number].lose_answers(held).await;
        let pause = trial.chance.millis(50..200);
        tokio::time::sleep(pause).await;
    }
    trial.wait_for_calls(50).await;
    let (nodes, outcome) = trial.finish().await;
    println!("answers of MongoDB lost: {cuts} times, then the connections cut");
    assert_eq!(outcome.summary.repeated, 0, "{}", outcome.summary);
    nodes.stop().await;
}
