//! `kill -9` of the service under a steady flow of commands: every command that the broker acknowledged leads to an event.

use std::{ops::Range, time::Duration};

use serde_json::json;
use throwaway::Nats;

use crate::rig::{
    Account, Backend, Bus, Chance, Load, Sent, Service, beside_others, blocking, by_tier, eventually, for_each_store, heavy, now,
    tolerated,
};

const KILLS: usize = 10;
const KILLS_IN_A_BUILD: usize = 4;
const COMMANDS_PER_SECOND: u32 = 200;
const HEAP: usize = 400;
const AHEAD_MICROS: Range<i64> = 0..3_000_000;
/// On PostgreSQL a dead node's shards have no owner until their lease has run out, which takes seconds.
const TAKE_OVER: Duration = Duration::from_secs(15);
/// When commands that were at hand at a kill are delivered again.
const DELIVERED_AGAIN_AFTER: Duration = Duration::from_secs(3);
const DRAIN: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(15);

for_each_store!(
    every_acknowledged_command_leads_to_an_event_whenever_the_service_was_killed,
    an_event_that_was_published_but_not_recorded_stands_in_the_stream_once,
);

async fn every_acknowledged_command_leads_to_an_event_whenever_the_service_was_killed(backend: Backend) {
    let _machine = heavy().await;
    let nats = blocking(Nats::start);
    let bus = Bus::connect(&nats.url()).await;
    bus.make_impatient_consumer(DELIVERED_AGAIN_AFTER).await;
    let mut service = Service::start_with_commands(&backend, &nats.url()).await;
    let (mut chance, kills) = (Chance::new("kills under commands"), by_tier(KILLS, KILLS_IN_A_BUILD));
    let load = Load::start(bus.clone(), COMMANDS_PER_SECOND, AHEAD_MICROS, chance.fork());
    let (mut events, mut sent) = (bus.events(), Vec::new());
    for kill in 0..kills {
        // Only a service that has begun to fire can be killed while it fires.
        let count = events.read().await.len();
        events.wait_for(count + 20, TAKE_OVER).await;
        let (pause, until_kill) = (chance.millis(0..700), chance.millis(0..100));
        tokio::time::sleep(pause).await;
        // A heap, so that commands are at hand at that moment, too.
        let name = format!("heap-{kill}");
        let (heap, ()) = tokio::join!(Sent::heap(&bus, &name, HEAP, AHEAD_MICROS, chance.fork()), async {
            tokio::time::sleep(until_kill).await;
            service.kill();
        });
        sent.extend(heap);
        service.start_again().await;
    }
    sent.extend(load.stop().await);
    let account = Account::settle(&sent, &mut events, DRAIN).await;

    println!("{}: {kills} kills of the service: {account}", backend.name());
    assert!(account.acknowledged > (HEAP + 50) * kills, "too little load to mean anything: {account}");
    assert_eq!(account.acknowledged, account.commands, "the broker was there all the time");
    assert_eq!(account.repeated, 0, "the stream drops what is published again: {account}");
    service.client().wait_until_finished(DRAIN).await;
    assert_eq!(service.client().count("completed").await, account.commands as u64);
    assert_eq!(bus.events().read().await.len(), account.events);
    service.stop().await;
}

/// The service stands still from when it has sent the event until it is killed, so that it can record nothing. The broker stands
/// still from before the event is due until then, so that no answer comes before.
async fn an_event_that_was_published_but_not_recorded_stands_in_the_stream_once(backend: Backend) {
    let _machine = beside_others().await;
    let nats = blocking(Nats::start);
    let mut service = Service::start_with_commands(&backend, &nats.url()).await;
    let bus = Bus::to_commands(&nats.url()).await;
    let mut events = bus.events();
    let client = service.client();
    let at = now() + 3_000_000;
    bus.schedule("acme", "unrecorded", at).await;
    eventually("the timer is there", SOON, async || (client.count("pending").await == 1).then_some(())).await;
    blocking(|| nats.pause());
    assert!(now() < at, "paused too late to mean anything");

    let id = eventually("it is being called", SOON, async || {
        let list = client.get("/timers?status=executing").await.json();
        list["data"]["timers"][0]["id"].as_str().map(ToOwned::to_owned)
    })
    .await;
    // From here the event has only to be written to a socket, which cannot be seen from outside.
    tokio::time::sleep(tolerated(Duration::from_millis(300))).await;
    service.signal("STOP");
    blocking(|| nats.resume());
    events.wait_for(1, SOON).await;
    service.kill();

    service.start_again().await;
    let client = service.client();
    let timer = client.wait_for_status(&id, "completed").await;
    assert_eq!(timer["attempt"], 2, "it was published again: {timer}");
    bus.schedule("acme", "marker", now()).await;
    let events = events.wait_for_event_of("marker", SOON).await;
    let calls: Vec<&str> = events.iter().map(|event| event.call.as_str()).collect();
    assert_eq!(calls, ["unrecorded", "marker"], "the stream drops the repetition");
    assert_eq!(json!(events[0].message_id), json!(events[0].id), "the repetition is known by the id of the event");
    service.stop().await;
}
