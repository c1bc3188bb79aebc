//! Two services on three nodes of Cassandra, one of which is killed and brought back.

use std::sync::Arc;

use super::each_engine::{CALL_TIME, CASSANDRA_LOAD};
use crate::{
    history::{Fault, Mixture},
    rig::{Backend, Nodes, Receiver, Reply, blocking, heavy, now, wait_for_wall},
    trial::Trial,
};

const NODES: usize = 2;

#[ignore = "soak: starts a cluster of Cassandra"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_cassandra_that_is_killed_and_comes_back_loses_nothing() {
    const DOWN_MICROS: i64 = 15_000_000;
    let _machine = heavy().await;
    let Some(server) = blocking(throwaway::Cassandra::start_three) else {
        println!("left out: there is no Cassandra for tests; scripts/cassandra.sh --fetch gets one");
        return;
    };
    let server = Arc::new(server);
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let nodes = Nodes::start_on(Backend::cassandra_on(&server), Vec::new(), NODES).await;
    let mut trial = Trial::start("kill -9 of a Cassandra node", nodes, receiver, CALL_TIME);
    trial.load(Mixture { creates_per_second: 20, ..CASSANDRA_LOAD });

    trial.wait_for_calls(20).await;
    let from = now();
    blocking(|| server.kill(2));
    // Firing goes on with the two other nodes.
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
