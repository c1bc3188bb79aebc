//! Three servers that replicate a stream, while one of them is killed.

use std::thread::sleep;
use std::time::Duration;

use serde_json::json;
use throwaway::{Nats, NatsCluster};

use crate::wire::Client;

const EVERYWHERE: usize = 3;

#[test]
fn a_stream_outlives_its_leader_which_then_comes_back() {
    let cluster = NatsCluster::start(EVERYWHERE);
    assert!(cluster.meta_leader().is_some());
    assert_eq!(cluster.urls(), format!("{},{},{}", cluster.url(0), cluster.url(1), cluster.url(2)));
    assert_eq!(cluster.stream_leader("KEPT"), None);

    let mut client = Client::connect(&cluster.url(0));
    let created = client.api("STREAM.CREATE.KEPT", &json!({ "name": "KEPT", "subjects": ["kept"], "num_replicas": EVERYWHERE }));
    assert_eq!(created["config"]["num_replicas"], EVERYWHERE, "{created}");
    assert_eq!(client.store("kept", "before")["seq"], 1);
    let leader = elected(&cluster, |_| true);

    cluster.stop_immediate(leader);
    let successor = elected(&cluster, |server| server != leader);
    let mut client = Client::connect(&cluster.url(successor));
    assert_eq!(client.store("kept", "meanwhile")["seq"], 2);

    cluster.start_again(leader);
    let mut client = Client::connect(&cluster.url(leader));
    assert_eq!(client.store("kept", "after")["seq"], 3);
    assert_eq!(cluster.log(leader).matches("Server is ready").count(), 2);
}

#[test]
fn a_cluster_that_was_down_altogether_comes_back_with_its_streams() {
    let cluster = NatsCluster::start_as(&Nats::builder().sync_always(true), EVERYWHERE);
    let mut client = Client::connect(&cluster.url(0));
    client.api("STREAM.CREATE.KEPT", &json!({ "name": "KEPT", "subjects": ["kept"], "num_replicas": EVERYWHERE }));
    assert_eq!(client.store("kept", "before")["seq"], 1);

    (0..EVERYWHERE).for_each(|server| cluster.stop_immediate(server));
    assert_eq!((cluster.meta_leader(), cluster.stream_leader("KEPT")), (None, None));
    (0..EVERYWHERE).for_each(|server| cluster.start_again(server));

    elected(&cluster, |_| true);
    assert_eq!(Client::connect(&cluster.url(0)).store("kept", "after")["seq"], 2);
}

/// The leader of the stream KEPT, as soon as one meets the condition.
fn elected(cluster: &NatsCluster, of_the_kind: impl Fn(usize) -> bool) -> usize {
    for _ in 0..3_000 {
        if let Some(leader) = cluster.stream_leader("KEPT").filter(|&leader| of_the_kind(leader)) {
            return leader;
        }
        sleep(Duration::from_millis(20));
    }
    panic!("no leader was elected:\n{}", cluster.log(0));
}
