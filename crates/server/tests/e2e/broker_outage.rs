//! The broker is killed while events are due and comes back: all of them arrive, each once.

use std::time::Duration;

use throwaway::Nats;

use crate::rig::{Account, Backend, Bus, Chance, Load, Sent, Service, beside_others, blocking, now};

const EVENTS_DUE: usize = 500;
const DOWN: Duration = Duration::from_secs(3);
/// Pauses between tries grow to fifteen seconds; after three seconds of absence they are far from that.
const DRAIN: Duration = Duration::from_secs(40);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_that_are_due_while_the_broker_is_away_all_arrive_once_after_its_return() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let nats = blocking(Nats::start);
    let mut service = Service::start_with_commands(&backend, &nats.url()).await;
    let bus = Bus::to_commands(&nats.url()).await;
    let client = service.client();

    // They begin before the kill, so that it finds some on their way, and end before the return.
    let killed = now() + 5_000_000;
    let due = |n: usize| killed - 500_000 + 3_000_000 / EVENTS_DUE as i64 * n as i64;
    let mut sent: Vec<Sent> = Vec::new();
    for n in 0..EVENTS_DUE {
        let call = format!("due-{n}");
        bus.schedule("outage", &call, due(n)).await;
        sent.push(Sent { call, due: due(n), acknowledged: Some(now()) });
    }
    // And a flow of others, which does not stop for it.
    let load = Load::start(bus.clone(), 50, 0..2_000_000, Chance::new("commands").fork());
    assert!(now() < killed - 500_000, "registered too late to mean anything");
    crate::rig::wait_for_wall(killed).await;
    blocking(|| nats.stop_immediate());
    tokio::time::sleep(DOWN).await;
    assert_eq!(client.get("/healthz").await.status, 200, "timers over HTTP go on");
    let back = now();
    blocking(|| nats.start_again());
    tokio::time::sleep(Duration::from_secs(2)).await;
    sent.extend(load.stop().await);

    let mut events = bus.events();
    let account = Account::settle(&sent, &mut events, DRAIN).await;
    client.wait_until_finished(DRAIN).await;
    let last = events.read().await.iter().map(|message| message.at).max().unwrap_or_default();
    let caught_up = (last - back) as f64 / 1e6;
    let unacknowledged = account.commands - account.acknowledged;
    println!(
        "{}: the broker was away for {:.1} s: {account}; {unacknowledged} commands were not acknowledged; the last event came {caught_up:.2} s \
         after its return",
        backend.name(),
        (back - killed) as f64 / 1e6
    );
    assert!(account.commands > EVENTS_DUE + 100, "{account}");
    assert_eq!(account.repeated, 0, "{account}");
    assert_eq!(account.events as u64, client.count("completed").await);
    service.stop().await;
}
