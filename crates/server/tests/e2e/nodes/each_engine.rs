//! Two services on one database of each server besides PostgreSQL: one is killed, paused or cut off from answers, the other takes over, and
//! what was acknowledged holds.

use std::time::Duration;

use futures_util::future::join_all;

use crate::{
    history::{Fault, Mixture},
    rig::{Backend, LEASE_MICROS, Link, Nodes, Receiver, Reply, blocking, heavy, now, scaled, wait_for_wall, wait_until_shared},
    trial::Trial,
};

const NODES: usize = 2;
/// There are always calls under way.
pub const CALL_TIME: Duration = Duration::from_millis(50);
/// How many calls of one tenant to one destination may be in flight, and as many again that are over and not on record.
const IN_FLIGHT: usize = 2 * 256;

/// A create with a key of its own is a Paxos round of its own: far fewer of them than on other stores fit on one machine.
pub const CASSANDRA_LOAD: Mixture = Mixture { creates_per_second: 50, due_within: Duration::from_secs(2), repeats_creates: true };

/// A DynamoDB Local is busy with two services that do nothing: each row is a request of its own, and each shard is asked every second.
#[cfg(feature = "dynamodb")]
const DYNAMODB_LOAD: Mixture = Mixture { creates_per_second: 10, ..CASSANDRA_LOAD };

/// A new database of a server that all tests share; `None`, and a line that says so, where there is no server.
type NewDatabase = fn() -> Option<Backend>;

async fn timers_of_a_node_that_was_killed_fire_again(name: &'static str, new: NewDatabase, load: Mixture) {
    let _machine = heavy().await;
    let Some(backend) = blocking(new) else { return };
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let nodes = Nodes::start_on(backend, Vec::new(), NODES).await;
    let mut trial = Trial::start(name, nodes, receiver, CALL_TIME);
    trial.load(load);

    let kills = scaled(2);
    for _ in 0..kills {
        trial.wait_for_calls(20).await;
        let victim = trial.chance.some(1, NODES)[0];
        trial.open_apis([NODES - 1 - victim]);
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

async fn a_node_that_was_paused_for_longer_than_its_lease_is_fenced(name: &'static str, new: NewDatabase, load: Mixture) {
    const PAUSE_MICROS: i64 = LEASE_MICROS + 3_000_000;
    let _machine = heavy().await;
    let Some(backend) = blocking(new) else { return };
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let nodes = Nodes::start_on(backend, Vec::new(), NODES).await;
    let mut trial = Trial::start(name, nodes, receiver, CALL_TIME);
    trial.load(load);

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

/// `lost_answers` is the metric that counts them.
async fn answers_that_are_lost_make_no_timer_and_no_call_twice(
    name: &'static str,
    new: NewDatabase,
    load: Mixture,
    lost_answers: &'static str,
) {
    let _machine = heavy().await;
    let Some(backend) = blocking(new) else { return };
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let links = (0..NODES).map(|_| Link::start(&backend)).collect();
    let nodes = Nodes::start_on(backend, links, NODES).await;
    let mut trial = Trial::start(name, nodes, receiver, CALL_TIME);
    trial.load(Mixture { repeats_creates: true, ..load });
    let cuts = scaled(20);
    for _ in 0..cuts {
        let (number, held) = (trial.chance.below(NODES), trial.chance.millis(20..120));
        trial.nodes.links[number].lose_answers(held).await;
        let pause = trial.chance.millis(50..200);
        tokio::time::sleep(pause).await;
    }
    trial.wait_for_calls(50).await;
    let (nodes, outcome) = trial.finish().await;
    let clients = nodes.clients();
    let lost: f64 = join_all(clients.iter().map(|client| client.metric_sum(lost_answers))).await.iter().sum();
    println!("{name}: {cuts} times, then the connections cut: {lost_answers} is {lost}");
    assert_eq!(outcome.summary.repeated, 0, "{}", outcome.summary);
    assert!(lost > 0.0, "no answer was lost: {lost_answers} is {lost}");
    nodes.stop().await;
}

macro_rules! on_each_engine {
    ($($(#[$build:meta])* mod $module:ident: $name:literal, $new:path, $load:expr, $lost_answers:literal;)+) => {$(
        $(#[$build])*
        mod $module {
            use crate::{nodes::each_engine, rig::Backend};

            #[ignore = "soak: takes minutes on all servers"]
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn timers_of_a_node_that_was_killed_fire_again() {
                each_engine::timers_of_a_node_that_was_killed_fire_again(concat!("kill -9 on ", $name), $new, $load).await;
            }

            #[ignore = "soak: takes minutes on all servers"]
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn a_node_that_was_paused_for_longer_than_its_lease_is_fenced() {
                let name = concat!("SIGSTOP on ", $name);
                each_engine::a_node_that_was_paused_for_longer_than_its_lease_is_fenced(name, $new, $load).await;
            }

            #[ignore = "soak: takes minutes on all servers"]
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn answers_that_are_lost_make_no_timer_and_no_call_twice() {
                let name = concat!("lost answers of ", $name);
                each_engine::answers_that_are_lost_make_no_timer_and_no_call_twice(name, $new, $load, $lost_answers).await;
            }
        }
    )+};
}

// SQL databases do not count answers by themselves, but the sessions that are given up because a statement had none.
on_each_engine! {
    mod on_mariadb: "MariaDB", Backend::new_mariadb, crate::history::Mixture::default(), "timer_mysql_sessions_discarded_total";
    mod on_mysql: "MySQL", Backend::mysql, crate::history::Mixture::default(), "timer_mysql_sessions_discarded_total";
    mod on_mongodb: "MongoDB", Backend::mongodb, crate::history::Mixture::default(), "timer_mongodb_unknown_total";
    mod on_cassandra: "Cassandra", Backend::cassandra, each_engine::CASSANDRA_LOAD, "timer_cassandra_unknown_total";
    #[cfg(feature = "dynamodb")]
    mod on_dynamodb: "DynamoDB", Backend::dynamodb, each_engine::DYNAMODB_LOAD, "timer_dynamodb_unknown_total";
}
