//! Commands that can never work are dead-lettered with the reason, once, and delay no other command.

mod malformed;

use std::{collections::HashMap, time::Duration};

use throwaway::Nats;

use crate::{
    lateness::Lateness,
    rig::{
        Backend, Bus, COMMAND_SUBJECT, COMMANDS, CONSUMER, DEAD_SUBJECT, EVENTS, Event, Message, Service, beside_others,
        blocking, eventually, for_each_store, now, schedule_timer, tolerated,
    },
};
use malformed::malformed;

const SOON: Duration = Duration::from_secs(20);
/// Much sooner than the broker delivers again what it had no answer to: no command may have to wait for that.
const SETTLED_WITHIN: Duration = Duration::from_secs(6);
const KINDS_MIN: usize = 50;
const LATENESS_MILLIS_MAX: f64 = 1_000.0;
/// For the flood: so many of one kind in one go.
const FLOOD: usize = 2_000;

for_each_store!(every_kind_of_malformed_command_is_dead_lettered_with_its_reason_and_delays_no_other);

async fn every_kind_of_malformed_command_is_dead_lettered_with_its_reason_and_delays_no_other(backend: Backend) {
    let _machine = beside_others().await;
    let nats = blocking(Nats::start);
    let url = nats.url();
    let settings = [("MIN_DELAY", "0s"), ("NATS_URL", url.as_str()), ("TIMER_BROKER", "nats"), ("MAX_HORIZON", "3650d")];
    let mut service = Service::start_with(&backend, &settings).await;
    let bus = Bus::to_commands(&nats.url()).await;
    let mut events = bus.events();
    // The first command finds nothing prepared.
    bus.schedule("acme", "before them all", now()).await;
    events.wait_for_event_of("before them all", SOON).await;
    let kinds = malformed();
    assert!(kinds.len() >= KINDS_MIN, "{} kinds", kinds.len());

    let mut expected = HashMap::new();
    let mut sent_at = HashMap::new();
    for (n, (body, words)) in kinds.iter().enumerate() {
        let subject = if n % 3 == 0 { "timer.commands.other.place" } else { COMMAND_SUBJECT };
        let sequence = bus.publish(subject, body.clone()).await.expect("an acknowledgement");
        expected.insert(sequence, (subject, body.clone(), *words));
        let call = format!("good-{n}");
        bus.schedule("acme", &call, now()).await;
        sent_at.insert(call, now());
    }
    let good = events.wait_for_events(kinds.len() + 1, SOON).await;
    let lateness = Lateness::of(good.iter().skip(1).map(|event| event.at - sent_at[&event.call]));
    println!("{}: good commands behind {} malformed ones: {lateness}", backend.name(), kinds.len());
    assert!(lateness.max() < tolerated(LATENESS_MILLIS_MAX), "{lateness}");

    let mut commands = bus.witness(COMMANDS);
    let enough = |all: &[Message]| dead(all).len() >= expected.len();
    let letters = dead(commands.wait_until("every malformed command is dead-lettered", SOON, enough).await);
    let mut seen = HashMap::new();
    for letter in &letters {
        let sequence: u64 = letter.header("X-Timer-Sequence").parse().expect("where it came from");
        let (subject, body, words) = &expected[&sequence];
        assert_eq!((letter.header("X-Timer-Subject"), &letter.body), (*subject, body), "{letter:?}");
        let reason = letter.header("X-Timer-Reason");
        assert!(reason.contains(words), "{words:?} in {reason:?}, the reason of {}", String::from_utf8_lossy(body));
        assert_eq!(seen.insert(sequence, letter.sequence), None, "dead-lettered twice: {letter:?}");
    }
    assert_eq!(seen.len(), expected.len());

    // Nothing is left over, nothing comes again, and dead letters are no commands: neither now nor for the next service.
    assert_all_is_settled(&bus).await;
    service.stop().await;
    service.start_again().await;
    bus.schedule("acme", "behind them all", now()).await;
    let all = events.wait_for_event_of("behind them all", SOON).await;
    assert_eq!(all.len(), kinds.len() + 2, "{all:?}");
    assert_all_is_settled(&bus).await;
    assert_eq!(dead(commands.read().await).len(), expected.len());
    assert!(service.is_running());
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_malformed_commands_does_not_drown_the_good_ones() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let nats = blocking(Nats::start);
    let mut service = Service::start_with_commands(&backend, &nats.url()).await;
    let bus = Bus::to_commands(&nats.url()).await;
    let send = async |n: usize| {
        let good = n.is_multiple_of(20);
        let body = if good { schedule_timer("acme", &format!("good-{n}"), now()).to_string() } else { format!("no JSON {n}") };
        bus.publish(COMMAND_SUBJECT, body).await.expect("an acknowledgement");
        now()
    };
    let sent_at = futures_util::future::join_all((0..FLOOD).map(send)).await;
    let good = FLOOD.div_ceil(20);
    let mut events = bus.events();
    let events = events.wait_for_events(good, SOON).await;
    let number = |event: &Event| event.call.trim_start_matches("good-").parse::<usize>().expect("the number of a command");
    let lateness = Lateness::of(events.iter().map(|event| event.at - sent_at[number(event)]));
    let mut commands = bus.witness(COMMANDS);
    let letters = dead(commands.wait_until("all are dead-lettered", SOON, |all| dead(all).len() >= FLOOD - good).await).len();
    println!("{}: {good} good commands among {letters} malformed ones in one go: {lateness}", backend.name());
    assert!(lateness.max() < tolerated(3.0 * LATENESS_MILLIS_MAX), "{lateness}");
    assert_all_is_settled(&bus).await;
    assert_eq!((dead(commands.read().await).len(), bus.witness(EVENTS).read().await.len()), (FLOOD - good, good));
    service.stop().await;
}

fn dead(commands: &[Message]) -> Vec<Message> {
    commands.iter().filter(|message| message.subject == DEAD_SUBJECT).cloned().collect()
}

/// The consumer has been given everything, and has answered for all of it.
async fn assert_all_is_settled(bus: &Bus) {
    eventually("the consumer has nothing left", SETTLED_WITHIN, async || {
        let consumer = bus.consumer(COMMANDS, CONSUMER).await;
        (consumer.num_pending == 0 && consumer.num_ack_pending == 0).then_some(())
    })
    .await;
}
