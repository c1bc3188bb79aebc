//! How many commands and events a second go through the NATS command consumer. Measurements, for people to read.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use throwaway::Nats;

use crate::{
    lateness::Lateness,
    rig::{Backend, Bus, Service, alone, blocking, eventually, for_each_store, now, schedule_timer},
};

const COMMANDS: usize = 20_000;
const IN_FLIGHT: usize = 512;
/// One after another.
const SINGLE: usize = 100;
const SINGLE_MILLIS_MAX: f64 = 2_000.0;
const LIMIT: Duration = Duration::from_secs(120);

for_each_store!(soak: commands_and_events_a_second, how_long_a_command_takes_to_its_event);

async fn commands_and_events_a_second(backend: Backend) {
    let _machine = alone().await;
    let nats = blocking(Nats::start);
    let mut service = Service::start_with_commands(&backend, &nats.url()).await;
    let bus = Bus::to_commands(&nats.url()).await;
    let client = service.client();
    let publish = async |tenant: &str, due: i64| {
        let send = async |n: usize| {
            bus.command(&schedule_timer(tenant, &format!("{tenant}-{n}"), due)).await.expect("an acknowledgement")
        };
        stream::iter(0..COMMANDS).map(send).buffer_unordered(IN_FLIGHT).for_each(async |_| {}).await;
    };
    let rate = |since: i64| COMMANDS as f64 / ((now() - since) as f64 / 1e6);

    // Only taken in: nothing of it is due before the next day.
    let begun = now();
    publish("later", begun + 86_400_000_000).await;
    let published = rate(begun);
    eventually("every command is a timer", LIMIT, async || (client.count("pending").await == COMMANDS as u64).then_some(()))
        .await;
    let taken_in = rate(begun);

    // Taken in and due at once.
    let mut events = bus.events();
    let begun = now();
    publish("now", begun - 1).await;
    eventually("every event is in the stream", LIMIT, async || events.count().await.filter(|count| *count >= COMMANDS as u64))
        .await;
    let through = rate(begun);

    println!(
        "{}: {COMMANDS} commands, published at {published:.0}/s: {taken_in:.0} commands/s until all timers exist; when they are due at once, \
         {through:.0} events/s until all events are in the stream",
        backend.name()
    );
    let events = events.wait_for_events(COMMANDS, LIMIT).await;
    assert_eq!(events.len(), COMMANDS);
    eventually("every result is recorded", LIMIT, async || (client.count("completed").await == COMMANDS as u64).then_some(()))
        .await;
    service.stop().await;
}

async fn how_long_a_command_takes_to_its_event(backend: Backend) {
    let _machine = alone().await;
    let nats = blocking(Nats::start);
    let mut service = Service::start_with_commands(&backend, &nats.url()).await;
    let bus = Bus::to_commands(&nats.url()).await;
    let listener = bus.listen("timer.events.>").await;
    let mut took = Vec::new();
    for n in 0..SINGLE {
        let sent = now();
        bus.schedule("single", &format!("single-{n}"), sent).await;
        let heard = listener.wait_for(n + 1, LIMIT).await;
        took.push(heard[n].at - sent);
    }
    // The first finds nothing prepared.
    let took = Lateness::of(took.split_off(1));
    println!("{}: from sending a command that is due at once to hearing its event: {took}", backend.name());
    assert!(took.max() < SINGLE_MILLIS_MAX, "{took}");
    service.stop().await;
}
