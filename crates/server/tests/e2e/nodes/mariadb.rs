//! Two services on one MariaDB: one is killed, the other takes over, and what was acknowledged holds.

use std::time::Duration;

use crate::{
    history::{Fault, Mixture},
    rig::{Backend, Nodes, Receiver, Reply, heavy, now, scaled},
    trial::Trial,
};

const NODES: usize = 2;
/// There are always calls under way.
const CALL_TIME: Duration = Duration::from_millis(50);
/// How many calls of one tenant to one destination may be in flight, and as many again that are over and not on record.
const IN_FLIGHT: usize = 2 * 256;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_of_a_node_that_was_killed_fire_again_on_mariadb() {
    let _machine = heavy().await;
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let nodes = Nodes::start_on(Backend::mariadb(), Vec::new(), NODES).await;
    let mut trial = Trial::start("kill -9 on MariaDB", nodes, receiver, CALL_TIME);
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
