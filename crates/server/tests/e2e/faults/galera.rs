//! Two services on different servers of a Galera cluster of three: the server of one of them is killed under load, and what was
//! acknowledged holds.

use std::time::Duration;

use throwaway::Galera;

use crate::{
    history::{Fault, Mixture},
    rig::{Backend, Nodes, Receiver, Reply, blocking, eventually, heavy, now},
    trial::Trial,
};

const NODES: usize = 2;
/// There are always calls under way.
const CALL_TIME: Duration = Duration::from_millis(50);
const KILLS: usize = 3;
/// The servers that are left look for their majority first, which takes seconds.
const TAKE_OVER: Duration = Duration::from_secs(30);

#[ignore = "soak: takes minutes, and three servers"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_a_galera_cluster_that_is_killed_loses_nothing() {
    let _machine = heavy().await;
    let Some(galera) = Galera::start() else {
        println!("left out: scripts/galera.sh has not fetched Galera for this checkout");
        return;
    };
    // The last one is never killed.
    let backend = Backend::mysql_on(galera.server(NODES));
    let (_, database) = backend.url().rsplit_once('/').expect("an address with a database");
    let urls = (0..NODES).map(|number| galera.server(number).url(database)).collect();
    let nodes = Nodes::start_at(backend, urls).await;
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let mut trial = Trial::start("kill -9 of a server of Galera", nodes, receiver, CALL_TIME);
    trial.load(Mixture::default());
    for _ in 0..KILLS {
        trial.wait_for_calls(50).await;
        let victim = trial.chance.below(NODES);
        let staying = 1 - victim;
        trial.open_apis([staying]);
        let from = now();
        blocking(|| galera.server(victim).stop_immediate());
        let client = trial.nodes.services[staying].client();
        eventually("the other service holds all shards", TAKE_OVER, async || {
            let cluster = client.try_cluster().await?;
            let is_its = |owner: &Option<String>| {
                owner.as_ref().is_some_and(|owner| cluster.nodes[owner].name == format!("node-{staying}"))
            };
            cluster.owners.iter().all(is_its).then_some(())
        })
        .await;
        let taken_over = now();
        trial.wait_for_calls(50).await;
        blocking(|| galera.server(victim).start_again());
        trial.nodes.wait_until_shared(NODES).await;
        trial.faults.push(Fault::partial_outage(from, taken_over));
        trial.open_apis(0..NODES);
    }
    trial.wait_for_calls(50).await;
    let (nodes, outcome) = trial.finish().await;
    assert!(outcome.summary.created > 100 * KILLS, "too little load to mean anything: {}", outcome.summary);
    nodes.stop().await;
}
