//! A cluster of three brokers loses the leaders of its streams under load: every acknowledged command leads to its event.

use std::time::Duration;

use throwaway::NatsCluster;

use crate::rig::{Account, Backend, Bus, COMMANDS, EVENTS, Load, Service, alone, blocking, eventually};

const COMMANDS_PER_SECOND: u32 = 200;
const AHEAD_MICROS: std::ops::Range<i64> = 0..2_000_000;
const BETWEEN: Duration = Duration::from_secs(4);
const ELECTED_WITHIN: Duration = Duration::from_secs(20);
const DRAIN: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_command_leads_to_its_event_though_leaders_are_killed() {
    let _machine = alone().await;
    let backend = Backend::sqlite();
    let cluster = blocking(|| NatsCluster::start(3));
    let bus = Bus::connect(&cluster.urls()).await;
    bus.make_stream(COMMANDS, "timer.commands.>", 3).await;
    bus.make_stream(EVENTS, "timer.events.>", 3).await;
    let mut service = Service::start_with_door(&backend, &cluster.urls()).await;
    let load = Load::start(bus.clone(), COMMANDS_PER_SECOND, AHEAD_MICROS);

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
    for _ in 0..30 {
        let acked = sent.iter().filter(|s| s.acknowledged.is_some()).count();
        let c = service.client();
        let counts = [c.count("pending").await, c.count("executing").await, c.count("completed").await, c.count("failed").await];
        let info = tokio::time::timeout(Duration::from_secs(2), bus.consumer(COMMANDS, "timer")).await;
        let info = info.map(|i| {
            format!(
                "pending {} ack_pending {} redelivered {} waiting {} delivered {:?} floor {:?} cluster {:?}",
                i.num_pending, i.num_ack_pending, i.num_redelivered, i.num_waiting, i.delivered, i.ack_floor, i.cluster
            )
        });
        let seen = events.count().await;
        println!("acked {acked} events {seen:?} timers p/e/c/f {counts:?} consumer {info:?}");
        std::fs::write("/tmp/cluster.log", service.log()).unwrap();
        for n in 0..3 {
            std::fs::write(format!("/tmp/cluster.nats{n}"), cluster.log(n)).unwrap();
        }
        if seen == Some(acked as u64) {
            break;
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    let account = Account::settle(&sent, &mut events, DRAIN).await;

    let between_events = longest_gap(events.read().await.iter().map(|message| message.at));
    let between_acknowledgements = longest_gap(sent.iter().filter_map(|sent| sent.acknowledged));
    println!(
        "a cluster of 3 that lost two leaders: {account}; no command was acknowledged for {between_acknowledgements:.2} s and no event came \
         for {between_events:.2} s at the longest"
    );
    {
        let seen = events.read().await;
        let mut lines = String::new();
        for m in seen {
            let e = crate::rig::Event::read(m);
            let due = sent.iter().find(|s| s.call == e.call).unwrap();
            lines += &format!(
                "{} {} {} {} due {} ack {:?} attempt {} reached {}\n",
                m.sequence,
                m.at,
                e.call,
                e.id,
                due.due,
                due.acknowledged,
                m.header("X-Timer-Attempt"),
                e.reached_at
            );
        }
        std::fs::write("/tmp/cluster.events", lines).unwrap();
        std::fs::write("/tmp/cluster.log", service.log()).unwrap();
        for n in 0..3 {
            std::fs::write(format!("/tmp/cluster.nats{n}"), cluster.log(n)).unwrap();
        }
        println!("stream count {:?}", events.count().await);
    }
    assert!(account.acknowledged > 1_000, "too little load to mean anything: {account}");
    assert_eq!(account.repeated, account.repeated_with_same_id, "{account}");
    service.client().wait_until_finished(DRAIN).await;
    service.stop().await;
}

/// In seconds.
fn longest_gap(micros: impl Iterator<Item = i64>) -> f64 {
    let mut micros: Vec<i64> = micros.collect();
    micros.sort_unstable();
    micros.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default() as f64 / 1e6
}
