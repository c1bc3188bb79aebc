//! SIGTERM to one of several: the other nodes own its shards at once, what it has under way it finishes, and no receiver is called twice.

use std::{
    collections::HashSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use serde_json::json;

use crate::{
    history::Mixture,
    lateness::Lateness,
    rig::{Chance, Client, Nodes, Receiver, Reply, by_tier, callback_to, eventually, heavy, now, scaled, tolerated},
    trial::Trial,
};

const HAND_OVER_MILLIS_MAX: f64 = 1_000.0;
/// Shorter than a lease: nothing was waited for. Once in a while a busy machine takes longer.
const HAND_OVER_MEDIAN_MILLIS_MAX: f64 = 3_000.0;
const SOON: Duration = Duration::from_secs(20);

/// Waits until the living share everything without those of these names; milliseconds since `from`.
async fn hand_over(client: &Client, leaving: &[String], from: i64) -> f64 {
    eventually("other nodes hold all shards", SOON, async || {
        let cluster = client.cluster().await;
        let has_none = |name: &String| cluster.named(name).all(|node| node.shards == 0);
        (cluster.are_all_held() && leaving.iter().all(has_none)).then_some(())
    })
    .await;
    (now() - from) as f64 / 1e3
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_stop_under_load_hand_over_within_a_second_and_no_receiver_is_called_twice() {
    const NODES: usize = 4;
    const AT_ONCE: usize = 2;
    const CALL_MILLIS_MAX: u64 = 5_000;
    let _machine = heavy().await;
    let call_times = Mutex::new(Chance::new("SIGTERM: times of calls"));
    let receiver = Receiver::replying(move |_| {
        let mut call_times = call_times.lock().unwrap_or_else(PoisonError::into_inner);
        Reply::OkAfter(call_times.millis(0..CALL_MILLIS_MAX))
    });
    let mut trial = Trial::start("SIGTERM", Nodes::start(NODES).await, receiver, Duration::from_millis(CALL_MILLIS_MAX));
    // No more than the permits for calls to one receiver allow.
    trial.load(Mixture { creates_per_second: 40, ..Mixture::default() });

    let mut hand_overs = Vec::new();
    for _ in 0..scaled(3) {
        trial.wait_for_calls(20).await;
        let stopping = trial.chance.some(AT_ONCE, NODES);
        let staying: Vec<usize> = (0..NODES).filter(|number| !stopping.contains(number)).collect();
        trial.open_apis(staying.iter().copied());
        let client = trial.nodes.services[staying[0]].client();
        let names: Vec<String> = stopping.iter().map(|number| format!("node-{number}")).collect();
        let asked = now();
        stopping.iter().for_each(|number| trial.nodes.services[*number].ask_to_stop());
        hand_overs.push(hand_over(&client, &names, asked).await);
        for number in stopping {
            let status = trial.nodes.services[number].wait_for_end().await;
            assert_eq!(status.code(), Some(0), "{}", trial.nodes.services[number].log());
            trial.nodes.services[number].start_again().await;
        }
        trial.open_apis(0..NODES);
        crate::rig::wait_until_shared(&client, NODES).await;
    }
    let (nodes, outcome) = trial.finish().await;
    let hand_overs = Lateness::of(hand_overs.into_iter().map(|millis| (millis * 1e3) as i64));
    println!("SIGTERM to {AT_ONCE} of {NODES} under load: all shards in other hands after {hand_overs}");
    assert_eq!(outcome.summary.repeated, 0, "{}", outcome.summary);
    let (millis, limit) =
        by_tier((hand_overs.max(), HAND_OVER_MILLIS_MAX), (hand_overs.percentile(50), HAND_OVER_MEDIAN_MILLIS_MAX));
    assert!(millis < limit, "{hand_overs}");
    nodes.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stops_with_a_call_that_hangs_keeps_no_shard_and_ends_in_order() {
    const TIMERS: usize = 100;
    /// A call may take half a minute.
    const END_SECONDS_MAX: f64 = 31.0;
    let _machine = heavy().await;
    let has_hung = AtomicBool::new(false);
    let receiver = Receiver::replying(move |call| {
        if call.path == "/hangs" && !has_hung.swap(true, Ordering::Relaxed) { Reply::Never } else { Reply::Status(200) }
    });
    let mut nodes = Nodes::start(2).await;
    let client = nodes.services[1].client();
    let register = async |path: &str| {
        let policy = json!({"max_retries": 3, "initial_interval": "200ms"});
        // It ends before the drain does, however busy the machine is.
        let mut callback = callback_to(&receiver.url(path), &json!(1));
        callback["timeout"] = json!("27s");
        client.create(&json!({"delay": "300ms", "retry_policy": policy, "callback": callback})).await
    };
    // One that belongs to the node that will stop.
    let cluster = client.cluster().await;
    let hanging = loop {
        let hanging = register("/hangs").await;
        if cluster.owner_of(&hanging) == Some("node-0") {
            break hanging;
        }
        client.try_cancel(&hanging).await.expect("an answer");
    };
    receiver.wait_for(1, SOON).await;

    let asked = now();
    nodes.services[0].ask_to_stop();
    let took = hand_over(&client, &["node-0".to_owned()], asked).await;
    let others: HashSet<String> = join_all((0..TIMERS).map(|_| register("/"))).await.into_iter().collect();
    let calls = receiver.wait_for(1 + TIMERS, SOON).await;
    assert!(nodes.services[0].is_running(), "its call still hangs");
    let called: HashSet<String> = calls.iter().filter(|call| call.path == "/").map(|call| call.timer_id().to_owned()).collect();
    assert_eq!((called, calls.len()), (others, 1 + TIMERS), "each once");
    assert_eq!(client.timer(&hanging).await["status"], "executing");

    let status = nodes.services[0].wait_for_end().await;
    let ended = (now() - asked) as f64 / 1e6;
    println!(
        "SIGTERM with a call that hangs: everything handed over after {took:.0} ms, exit {:?} after {ended:.1} s",
        status.code()
    );
    assert!(took < by_tier(HAND_OVER_MILLIS_MAX, HAND_OVER_MEDIAN_MILLIS_MAX), "{took} ms");
    assert!(status.code() == Some(0) && ended < tolerated(END_SECONDS_MAX), "{status} after {ended} s");
    // Its record says that it failed, and the other tries again.
    let completed = client.wait_for_status(&hanging, "completed").await;
    assert_eq!((&completed["attempt"], receiver.count()), (&json!(2), TIMERS + 2), "{completed}");
    nodes.services[1].stop().await;
}
