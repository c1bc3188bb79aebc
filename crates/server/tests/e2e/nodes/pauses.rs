//! SIGSTOP and SIGCONT: a node that was away for too long finds its timers in other hands, one that was not keeps them.

use std::time::Duration;

use futures_util::future::join_all;

use crate::{
    history::{Fault, Mixture},
    rig::{
        LEASE_MICROS, Nodes, Receiver, Reply, SHARDS, Service, by_tier, eventually, heavy, now, scaled, wait_for_wall,
        wait_until_shared,
    },
    trial::Trial,
};

/// There are always calls under way.
const CALL_TIME: Duration = Duration::from_millis(200);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_were_paused_for_longer_than_their_lease_call_no_receiver_and_record_nothing() {
    const NODES: usize = 4;
    const AT_ONCE: usize = 3;
    const PAUSE_MICROS: i64 = LEASE_MICROS + 3_000_000;
    let _machine = heavy().await;
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let mut trial = Trial::start("SIGSTOP", Nodes::start(NODES).await, receiver, CALL_TIME);
    trial.load(Mixture::default());

    for _ in 0..scaled(3) {
        trial.wait_for_calls(50).await;
        let paused = trial.chance.some(AT_ONCE, NODES);
        let staying = (0..NODES).find(|number| !paused.contains(number)).expect("one stays");
        trial.open_apis([staying]);
        let mut pauses = Vec::new();
        for number in &paused {
            trial.nodes.services[*number].signal("STOP");
            pauses.push((*number, now()));
        }
        for (number, from) in pauses {
            wait_for_wall(from + PAUSE_MICROS).await;
            let to = now();
            trial.nodes.services[number].signal("CONT");
            trial.faults.push(Fault::pause(from, to));
        }
        wait_until_shared(&trial.nodes.services[staying].client(), NODES).await;
        trial.open_apis(0..NODES);
    }
    let pauses = trial.faults.len();
    let (nodes, outcome) = trial.finish().await;
    let clients = nodes.clients();
    let sum = async |name: &'static str| join_all(clients.iter().map(|client| client.metric_sum(name))).await.iter().sum::<f64>();
    let (fenced, leases, shards) =
        (sum("timer_fenced_total").await, sum("timer_leases_lost_total").await, sum("timer_shards_lost_total").await);
    println!("SIGSTOP for the lease and 3 s: {pauses} pauses, {leases} leases and {shards} shards lost, {fenced} results fenced");
    assert!(fenced > 0.0, "no result came too late");
    assert!(leases >= pauses as f64 && shards >= leases, "{leases} leases, {shards} shards");
    assert!(outcome.summary.held <= pauses, "called by nodes that should have looked: {}", outcome.summary);
    nodes.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_were_paused_for_less_than_their_lease_keep_their_shards() {
    const NODES: usize = 3;
    const EACH: usize = 3;
    // Of a lease of 3.5 s. On a busy machine a heartbeat is late by itself.
    let pause_millis = by_tier(1_750..3_150, 1_000..2_300);
    let _machine = heavy().await;
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let mut trial = Trial::start("short pauses", Nodes::start(NODES).await, receiver, CALL_TIME);
    trial.load(Mixture { creates_per_second: 50, ..Mixture::default() });
    let before = trial.nodes.services[0].client().cluster().await.epochs;

    let lengths: Vec<Vec<Duration>> =
        (0..NODES).map(|_| (0..scaled(EACH)).map(|_| trial.chance.millis(pause_millis.clone())).collect()).collect();
    let pause = async |(service, lengths): (&Service, &Vec<Duration>)| {
        let mut pauses = Vec::new();
        for length in lengths {
            wait_for_a_beat(service).await;
            let from = now();
            service.signal("STOP");
            // The length of the pause is what is tested.
            tokio::time::sleep(*length).await;
            let to = now();
            service.signal("CONT");
            pauses.push(Fault::pause(from, to));
        }
        wait_for_a_beat(service).await;
        pauses
    };
    let pauses: Vec<Fault> = join_all(trial.nodes.services.iter().zip(&lengths).map(pause)).await.into_iter().flatten().collect();
    let after = trial.nodes.services[0].client().cluster().await.epochs;
    let moved = after.iter().zip(&before).map(|(after, before)| after - before).sum::<i64>();
    let changes = moved.cast_unsigned().div_ceil((SHARDS / NODES) as u64);
    let count = pauses.len();
    trial.faults = pauses;
    let (nodes, outcome) = trial.finish().await;
    println!("{count} pauses of {pause_millis:?} ms: {moved} shards moved, {changes} changes of owner");
    assert!(changes <= (count / 10).max(1) as u64, "{changes} changes of owner in {count} pauses");
    if moved == 0 {
        assert_eq!(outcome.summary.repeated, 0, "{}", outcome.summary);
    }
    nodes.stop().await;
}

/// Waits until the node has a fresh lease.
async fn wait_for_a_beat(service: &Service) {
    let client = service.client();
    let beats = async || client.metric_sum("timer_store_call_duration_seconds_count{operation=\"heartbeat\"}").await;
    let before = beats().await;
    eventually("another heartbeat", Duration::from_secs(5), async || (beats().await >= before + 2.0).then_some(())).await;
}
