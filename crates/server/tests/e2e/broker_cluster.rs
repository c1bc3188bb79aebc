//! A cluster of three brokers loses the leaders of its streams under load: every acknowledged command leads to its event.

use std::{collections::HashSet, ops::Range, time::Duration};

use futures_util::{StreamExt, stream};
use throwaway::NatsCluster;

use crate::rig::{
    Account, Backend, Bus, COMMANDS, Chance, EVENTS, Load, Service, blocking, by_tier, eventually, heavy, now, tolerated,
};

const COMMANDS_PER_SECOND: u32 = 200;
const AHEAD_MICROS: Range<i64> = 0..2_000_000;
const BETWEEN: Duration = Duration::from_secs(3);
const HEAP: usize = 3_000;
/// Less than the time after which the broker delivers again what was not acknowledged, which is twenty.
const HEAP_SECONDS_MAX: f64 = 9.0;
const HEAP_SECONDS_MAX_IF_BUSY: f64 = 18.0;
const ELECTED_WITHIN: Duration = Duration::from_secs(20);
const DRAIN: Duration = Duration::from_secs(90);
/// An election takes up to nine seconds, a command that got lost on its way comes again after twenty, and pauses between tries grow as
/// long as the trouble lasts.
const LONGEST_WAIT_MICROS_MAX: i64 = 60_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_command_leads_to_its_event_though_leaders_are_killed() {
    let _machine = heavy().await;
    let backend = Backend::sqlite();
    let cluster = blocking(|| NatsCluster::start(3));
    let bus = Bus::connect(&cluster.urls()).await;
    bus.make_stream(COMMANDS, "timer.commands.>", 3).await;
    bus.make_stream(EVENTS, "timer.events.>", 3).await;
    let mut service = Service::start_with_commands(&backend, &cluster.urls()).await;
    let load = Load::start(bus.clone(), COMMANDS_PER_SECOND, AHEAD_MICROS, Chance::new("commands").fork());

    for stream in [COMMANDS, EVENTS] {
        tokio::time::sleep(BETWEEN).await;
        let leader =
            eventually(&format!("a leader of {stream}"), ELECTED_WITHIN, async || blocking(|| cluster.stream_leader(stream)))
                .await;
        blocking(|| cluster.stop_immediate(leader));
        let next = eventually(&format!("another leader of {stream}"), ELECTED_WITHIN, async || {
            blocking(|| cluster.stream_leader(stream))
        })
        .await;
        println!("the leader of {stream} was server {leader}, and is server {next} now");
        // Otherwise the next kill would leave one of three, which can store nothing.
        blocking(|| cluster.start_again(leader));
    }
    tokio::time::sleep(BETWEEN).await;
    let sent = load.stop().await;
    let mut events = bus.events();
    let account = Account::settle(&sent, &mut events, DRAIN).await;

    let between_events = longest_gap(events.read().await.iter().map(|message| message.at));
    let between_acknowledgements = longest_gap(sent.iter().filter_map(|sent| sent.acknowledged));
    println!(
        "a cluster of 3 that lost two leaders: {account}; no command was acknowledged for {between_acknowledgements:.2} s and no event came \
         for {between_events:.2} s at the longest"
    );
    assert!(account.acknowledged > 300, "too little load to mean anything: {account}");
    assert_eq!(account.repeated, account.repeated_with_same_id, "{account}");
    assert!(account.longest_micros < tolerated(LONGEST_WAIT_MICROS_MAX), "{account}");
    service.client().wait_until_finished(DRAIN).await;
    service.stop().await;
}

/// More than is asked for at a time, so that a request for commands ends because it is full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heap_of_commands_on_a_cluster_is_worked_off_without_a_pause() {
    let _machine = heavy().await;
    let backend = Backend::sqlite();
    let cluster = blocking(|| NatsCluster::start(3));
    let mut service = Service::start_with_commands(&backend, &cluster.urls()).await;
    let bus = Bus::to_commands(&cluster.urls()).await;
    for stream in [COMMANDS, EVENTS] {
        assert_eq!(bus.stream_config(stream).await.num_replicas, 3, "on a cluster, streams are made to survive a server");
    }
    service.stop().await;
    let send = async |n: usize| bus.schedule("heap", &format!("heap-{n}"), now()).await;
    stream::iter(0..HEAP).map(send).buffer_unordered(256).for_each(async |_| {}).await;
    service.start_again().await;
    let begun = now();
    let mut events = bus.events();
    eventually("every event is in the stream", DRAIN, async || events.count().await.filter(|count| *count >= HEAP as u64)).await;
    let took = (now() - begun) as f64 / 1e6;
    println!("a cluster of 3: {HEAP} commands that waited led to their events in {took:.2} s");
    assert!(took < by_tier(HEAP_SECONDS_MAX, HEAP_SECONDS_MAX_IF_BUSY), "{took} s");
    let calls: HashSet<String> = events.wait_for_events(HEAP, DRAIN).await.into_iter().map(|event| event.call).collect();
    assert_eq!(calls.len(), HEAP);
    service.stop().await;
}

/// In seconds.
fn longest_gap(micros: impl Iterator<Item = i64>) -> f64 {
    let mut micros: Vec<i64> = micros.collect();
    micros.sort_unstable();
    micros.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default() as f64 / 1e6
}
