//! A service that is stopped in order under load gives back what it has not carried out: the next one gets it at once.

use std::time::Duration;

use throwaway::Nats;

use crate::rig::{Account, Backend, Bus, COMMANDS, Load, Service, alone, blocking, for_each_store, now};

const STOPS: usize = 3;
const COMMANDS_PER_SECOND: u32 = 200;
const AHEAD_MICROS: std::ops::Range<i64> = 0..1_000_000;
/// In one go, so that many are at hand when the service stops.
const HEAP: usize = 3_000;
const DRAIN: Duration = Duration::from_secs(60);
/// Much shorter than the time after which the broker by itself delivers again what was not acknowledged.
const GIVEN_BACK_SECONDS_MAX: f64 = 6.0;

for_each_store!(commands_at_hand_when_the_service_stops_are_carried_out_by_the_next_at_once);

async fn commands_at_hand_when_the_service_stops_are_carried_out_by_the_next_at_once(backend: Backend) {
    let _machine = alone().await;
    let nats = blocking(Nats::start);
    let mut service = Service::start_with_door(&backend, &nats.url()).await;
    let bus = Bus::to_door(&nats.url()).await;
    let redelivered_after = bus.consumer(COMMANDS, "timer").await.config.ack_wait.as_secs_f64();
    assert!(redelivered_after > GIVEN_BACK_SECONDS_MAX + 2.0, "{redelivered_after} s");
    let load = Load::start(bus.clone(), COMMANDS_PER_SECOND, AHEAD_MICROS);
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
        left_over += bus.consumer(COMMANDS, "timer").await.num_pending;
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
    assert!(longest < GIVEN_BACK_SECONDS_MAX, "{account}");
    assert_eq!(account.repeated, 0, "{account}");
    let client = service.client();
    crate::rig::eventually("every command of the heaps is a timer", DRAIN, async || {
        (client.count("pending").await == (STOPS * HEAP) as u64).then_some(())
    })
    .await;
    service.stop().await;
}
