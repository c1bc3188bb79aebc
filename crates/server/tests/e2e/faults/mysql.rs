//! Two services on one MariaDB, or on one MySQL: a service is killed and the other takes over, or the server is killed and comes back.
//! What was acknowledged holds.

use std::{sync::Arc, time::Duration};

use throwaway::Mysql;

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
const KILLS: usize = 20;
const LONG_ONE_IN: usize = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_of_a_node_that_was_killed_fire_again_on_mariadb() {
    kill_services(Backend::mariadb(), scaled(2)).await;
}

#[ignore = "soak: takes minutes"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_kills_of_services_lose_nothing_on_mariadb() {
    kill_services(Backend::mysql_on(&Arc::new(Mysql::start_mariadb())), KILLS).await;
}

#[ignore = "soak: takes minutes"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_kills_of_services_lose_nothing_on_mysql() {
    let Some(server) = mysql() else { return };
    kill_services(Backend::mysql_on(&server), KILLS).await;
}

#[ignore = "soak: takes minutes"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_kills_of_the_server_lose_nothing_on_mariadb() {
    kill_server(&Arc::new(Mysql::start_mariadb())).await;
}

#[ignore = "soak: takes minutes"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_kills_of_the_server_lose_nothing_on_mysql() {
    let Some(server) = mysql() else { return };
    kill_server(&server).await;
}

fn mysql() -> Option<Arc<Mysql>> {
    let server = Mysql::start_mysql().map(Arc::new);
    if server.is_none() {
        println!("left out: no MySQL is installed for this checkout");
    }
    server
}

async fn kill_services(backend: Backend, kills: usize) {
    let _machine = heavy().await;
    let (name, receiver) = (backend.name(), Receiver::replying(|_| Reply::OkAfter(CALL_TIME)));
    println!("{name}: kill -9 of a service");
    let nodes = Nodes::start_on(backend, Vec::new(), NODES).await;
    let mut trial = Trial::start("kill -9 of services", nodes, receiver, CALL_TIME);
    trial.load(Mixture::dense());

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
    let repeated = outcome.summary.repeated;
    assert!((1..=kills * IN_FLIGHT).contains(&repeated), "what was under way is called again: {}", outcome.summary);
    assert!(outcome.summary.created > 20 * kills, "too little load to mean anything: {}", outcome.summary);
    nodes.stop().await;
}

async fn kill_server(server: &Arc<Mysql>) {
    let _machine = heavy().await;
    println!("{}: kill -9 of the server", server.name());
    let nodes = Nodes::start_on(Backend::mysql_on(server), Vec::new(), NODES).await;
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let mut trial = Trial::start("kill -9 of the server", nodes, receiver, CALL_TIME);
    trial.load(Mixture::default());
    for round in 1..=KILLS {
        trial.wait_for_calls(50).await;
        let pause = trial.chance.millis(0..300);
        tokio::time::sleep(pause).await;
        let from = now();
        blocking(|| server.stop_immediate());
        if round.is_multiple_of(LONG_ONE_IN) {
            // Longer than every lease: the node that comes back first must not take the other one for dead.
            wait_for_wall(from + LEASE_MICROS + 500_000).await;
        }
        blocking(|| server.start_again());
        trial.faults.push(Fault::outage(from, now()));
        assert!(trial.nodes.services.iter_mut().all(|service| service.is_running()), "the services live");
    }
    trial.wait_for_calls(50).await;
    let (nodes, outcome) = trial.finish().await;
    assert_eq!(outcome.summary.repeated, 0, "{}", outcome.summary);
    assert!(outcome.summary.created > 20 * KILLS, "too little load to mean anything: {}", outcome.summary);
    nodes.stop().await;
}
