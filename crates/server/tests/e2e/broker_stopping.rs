//! A service that is stopped in order under load gives back what it has not carried out: the next one gets it at once.

use std::{collections::HashSet, ops::Range, time::Duration};

use throwaway::Nats;

use crate::rig::{
    Account, Backend, Bus, COMMANDS, CONSUMER, Chance, Load, Service, beside_others, blocking, by_tier, eventually,
    for_each_store, heavy, now, tolerated,
};

const STOPS: usize = 3;
const COMMANDS_PER_SECOND: u32 = 200;
const AHEAD_MICROS: Range<i64> = 0..1_000_000;
/// In one go, so that many are at hand when the service stops.
const HEAP: usize = 3_000;
const DRAIN: Duration = Duration::from_secs(60);
/// Shorter than the time after which the broker by itself delivers again what was not acknowledged.
const GIVEN_BACK_SECONDS_MAX: f64 = 6.0;
const GIVEN_BACK_SECONDS_MAX_IF_BUSY: f64 = 15.0;

/// What is under way to a broker that does not answer is waited for, but not for ever.
const STOPPED_SECONDS_MAX: f64 = 20.0;

for_each_store!(commands_at_hand_when_the_service_stops_are_carried_out_by_the_next_at_once);

async fn commands_at_hand_when_the_service_stops_are_carried_out_by_the_next_at_once(backend: Backend) {
    let _machine = heavy().await;
    let nats = blocking(Nats::start);
    let mut service = Service::start_with_commands(&backend, &nats.url()).await;
    let bus = Bus::to_commands(&nats.url()).await;
    let redelivered_after = bus.consumer(COMMANDS, CONSUMER).await.config.ack_wait.as_secs_f64();
    let given_back_max = by_tier(GIVEN_BACK_SECONDS_MAX, GIVEN_BACK_SECONDS_MAX_IF_BUSY);
    assert!(redelivered_after > given_back_max + 2.0, "{redelivered_after} s");
    let load = Load::start(bus.clone(), COMMANDS_PER_SECOND, AHEAD_MICROS, Chance::new("commands").fork());
    let mut events = bus.events();
    let (mut longest_stop, mut left_over) = (0.0_f64, 0);
    for stop in 0..STOPS {
        let count = events.read().await.len();
        events.wait_for(count + 100, DRAIN).await;
        let heap = (0..HEAP).map(async |n| bus.schedule("heap", &format!("heap-{stop}-{n}"), now() + 86_400_000_000).await);
        // The broker has them all; the service is somewhere among them.
        futures_util::future::join_all(heap).await;
        let asked = now();
        service.stop_with_calls_under_way().await;
        longest_stop = longest_stop.max((now() - asked) as f64 / 1e6);
        left_over += bus.consumer(COMMANDS, CONSUMER).await.num_pending;
        service.start_again().await;
    }
    let sent = load.stop().await;
    let account = Account::settle(&sent, &mut events, DRAIN).await;
    let longest = account.longest_micros as f64 / 1e6;
    println!(
        "{}: {STOPS} stops in order, the longest took {longest_stop:.2} s and all together left {left_over} commands to the next: {account}",
        backend.name()
    );
    assert!(left_over > 0, "the service was never stopped with work at hand");
    assert!(longest < given_back_max, "{account}");
    assert_eq!(account.repeated, 0, "{account}");
    let client = service.client();
    eventually("every command of the heaps is a timer", DRAIN, async || {
        (client.count("pending").await == (STOPS * HEAP) as u64).then_some(())
    })
    .await;
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_stops_in_order_though_its_broker_is_away_or_hangs() {
    let _machine = beside_others().await;
    for hangs in [false, true] {
        let backend = Backend::sqlite();
        let nats = blocking(Nats::start);
        let mut service = Service::start_with_commands(&backend, &nats.url()).await;
        let bus = Bus::to_commands(&nats.url()).await;
        let client = service.client();
        // Some are due when it is gone, and some events are under way to it when the service is stopped.
        for n in 0..200 {
            bus.schedule("acme", &format!("call-{n}"), now() + 1_000_000 + n * 10_000).await;
        }
        eventually("all timers are there", DRAIN, async || {
            (client.count("pending").await + client.count("completed").await >= 200).then_some(())
        })
        .await;
        blocking(|| if hangs { nats.pause() } else { nats.stop_immediate() });
        tokio::time::sleep(Duration::from_secs(1)).await;
        let asked = now();
        service.stop_with_calls_under_way().await;
        let took = (now() - asked) as f64 / 1e6;
        println!("SQLite: with a broker that {} the service stopped in {took:.2} s", if hangs { "hangs" } else { "is away" });
        assert!(took < tolerated(STOPPED_SECONDS_MAX), "{took} s");

        blocking(|| if hangs { nats.resume() } else { nats.start_again() });
        service.start_again().await;
        let events = bus.events().wait_for_events(200, DRAIN).await;
        let calls: HashSet<&str> = events.iter().map(|event| event.call.as_str()).collect();
        assert_eq!((calls.len(), events.len()), (200, 200));
        service.stop().await;
    }
}
