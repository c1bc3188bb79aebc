use std::time::Duration;

use domain::{AccessKey, Caller, Namespace, Namespaces, Next, OnConflict, Rights, Span, Status, TimerId};
use store::Operation;

use super::*;
use crate::{
    NewTimerRequest, Stores,
    rig::{Rig, keyed},
};

async fn following(rig: &Rig) -> Following {
    rig.commands.follow(&Filter::default(), EventTypes::ALL, None).await.unwrap()
}

/// Types and timers of the next events, until the stream has none for a while.
async fn told(stream: &mut Following) -> Vec<(&'static str, TimerId)> {
    let mut told = Vec::new();
    while let Ok(events) = tokio::time::timeout(Duration::from_secs(3), stream.next()).await {
        told.extend(events.unwrap().iter().map(|event| (event.kind.as_str(), event.timer.id())));
    }
    told
}

fn bound_to(namespaces: &[&str]) -> Caller {
    let namespaces = Namespaces::Only(namespaces.iter().map(|name| Namespace::parse(name).unwrap()).collect());
    let access = domain::Access { namespaces, rights: Rights::Read };
    let (key, _) = AccessKey::issue("k", access, [7; 32], crate::rig::NOW).unwrap();
    Caller::Holder(Arc::new(key))
}

#[tokio::test(start_paused = true)]
async fn a_stream_shows_what_happens_from_now_on() {
    let rig = Rig::new();
    rig.created().await;
    let mut stream = following(&rig).await;
    let timer = rig.created().await;
    rig.commands.cancel(timer, None).await.unwrap();
    assert_eq!(told(&mut stream).await, [("created", timer), ("finished", timer)]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_shows_only_the_types_and_timers_that_are_meant() {
    let rig = Rig::new();
    let in_namespace =
        |name: &str| NewTimerRequest { namespace: Namespace::parse(name).unwrap(), ..keyed("a", OnConflict::Reject) };
    let types = EventTypes::of([EventType::Finished]);
    let filter = Filter { namespaces: vec![Namespace::parse("a").unwrap()], ..Filter::default() };
    let mut narrow = rig.commands.follow(&filter, types, None).await.unwrap();
    let scoped = rig.commands.on_behalf_of(bound_to(&["b"]));
    let mut scoped = scoped.follow(&Filter::default(), EventTypes::ALL, None).await.unwrap();
    let a = rig.commands.create(in_namespace("a")).await.unwrap().timer().id();
    let b = rig.commands.create(in_namespace("b")).await.unwrap().timer().id();
    rig.commands.cancel(a, None).await.unwrap();
    assert_eq!(told(&mut narrow).await, [("finished", a)]);
    assert_eq!(told(&mut scoped).await, [("created", b)]);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_stream_misses_nothing_and_ends_where_it_was() {
    let rig = Rig::new();
    let mut stream = following(&rig).await;
    let first = rig.created().await;
    let token = stream.next().await.unwrap()[0].resume;
    drop(stream);
    let missed: Vec<TimerId> = vec![rig.created().await, rig.created().await];
    rig.clock.advance(Span::from_secs(10));
    let later = rig.created().await;
    // Another process, which begins to read only now.
    let commands = Commands { stores: Stores::of(rig.store.clone()), ..rig.commands.clone() };
    let mut resumed = commands.follow(&Filter::default(), EventTypes::ALL, Some(token)).await.unwrap();
    let mut told: Vec<_> = told(&mut resumed).await.into_iter().map(|(_, id)| id).collect();
    told.sort_unstable();
    let mut all: Vec<_> = [first, later].into_iter().chain(missed).collect();
    all.sort_unstable();
    assert_eq!(told, all);
}

#[tokio::test(start_paused = true)]
async fn the_position_of_an_idle_stream_follows_the_clock() {
    let rig = Rig::new();
    let mut stream = following(&rig).await;
    let before = stream.position();
    rig.clock.advance(Span::from_secs(60));
    assert_eq!(told(&mut stream).await, []);
    rig.clock.advance(Span::from_secs(1));
    assert_eq!(told(&mut stream).await, []);
    assert!(stream.position() >= before.saturating_add(Span::from_secs(60)), "{:?} {before:?}", stream.position());
    let resumed = rig.commands.follow(&Filter::default(), EventTypes::ALL, Some(stream.position())).await.unwrap();
    drop(stream);
    let mut resumed = resumed;
    let timer = rig.created().await;
    assert_eq!(told(&mut resumed).await, [("created", timer)]);
}

#[tokio::test(start_paused = true)]
async fn an_end_that_made_way_for_a_new_life_is_told_once() {
    let rig = Rig::new();
    let mut stream = following(&rig).await;
    let timer = rig.created().await;
    rig.settle_all(&Next::Failed { at: rig.commands.clock.now(), error: "503".to_owned() }).await;
    rig.commands.retry(timer, None).await.unwrap();
    let told = told(&mut stream).await;
    let count = |kind| told.iter().filter(|(told, _)| *told == kind).count();
    assert_eq!((count("created"), count("finished"), count("changed"), told.len()), (1, 1, 1, 3), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn both_creations_of_a_timer_that_lives_again_are_told_once() {
    let rig = Rig::new();
    let mut stream = following(&rig).await;
    let before = stream.position();
    let again = || NewTimerRequest { ..keyed("a", OnConflict::Replace) };
    let timer = rig.commands.create(again()).await.unwrap().timer().id();
    rig.settle_all(&Next::Completed { at: rig.commands.clock.now() }).await;
    let whole = |told: &[(&str, TimerId)]| {
        let count = |kind| told.iter().filter(|told| **told == (kind, timer)).count();
        (count("created"), count("finished"), count("changed"))
    };
    assert_eq!(whole(&told(&mut stream).await), (1, 1, 0));
    rig.clock.advance(Span::from_secs(1));
    rig.commands.create(again()).await.unwrap();
    let told_live = told(&mut stream).await;
    assert_eq!(whole(&told_live), (1, 0, 1), "{told_live:?}");

    rig.clock.advance(Span::from_secs(60));
    told(&mut stream).await;
    drop(stream);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut resumed = rig.commands.follow(&Filter::default(), EventTypes::ALL, Some(before)).await.unwrap();
    let told = told(&mut resumed).await;
    assert_eq!(whole(&told), (2, 1, 1), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_goes_on_after_the_clock_of_the_database_was_set_back() {
    let rig = Rig::new();
    let mut stream = following(&rig).await;
    let mut slow = following(&rig).await;
    let first = rig.created().await;
    assert_eq!(told(&mut stream).await, [("created", first)]);
    rig.clock.set(rig.commands.clock.now().saturating_sub(Span::from_secs(3_600)));
    let second = rig.created().await;
    assert_eq!(told(&mut stream).await, [("created", second)]);
    rig.clock.advance(Span::from_secs(3_600));
    for stream in [&mut stream, &mut slow] {
        assert!(
            told(stream).await.contains(&("created", first)),
            "what lies after the moment is repeated, and told to slow readers"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_has_fallen_out_of_what_is_kept_ends() {
    let rig = Rig::new();
    let mut stream = following(&rig).await;
    let event = {
        rig.created().await;
        stream.next().await.unwrap().remove(0)
    };
    for _ in 0..20_001 {
        rig.commands.stores.events.state().ring.push(Event::clone(&event));
    }
    // Nothing is read for a day.
    rig.clock.advance(PRUNED_AFTER.saturating_mul(1.1));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let ended = loop {
        match stream.next().await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(ended.to_string(), "after must not be older than 24 hours: begin anew without it");
}

#[tokio::test(start_paused = true)]
async fn an_end_is_shown_with_its_own_status() {
    let rig = Rig::new();
    let mut stream = rig.commands.follow(&Filter::default(), EventTypes::of([EventType::Finished]), None).await.unwrap();
    let timer = rig.created().await;
    rig.settle_all(&Next::Failed { at: rig.commands.clock.now(), error: "503".to_owned() }).await;
    rig.commands.retry(timer, None).await.unwrap();
    let events = loop {
        let events = stream.next().await.unwrap();
        if !events.is_empty() {
            break events;
        }
    };
    assert_eq!((events.len(), events[0].timer.status), (1, Status::Failed));
}

#[tokio::test(start_paused = true)]
async fn streams_are_limited_for_each_key_and_in_all() {
    let rig = Rig::new();
    let mut streams = Vec::new();
    for _ in 0..STREAMS_OF_A_KEY_MAX {
        streams.push(following(&rig).await);
    }
    let refused = |commands: Commands| async move {
        let refused = commands.follow(&Filter::default(), EventTypes::ALL, None).await.err().expect("too many");
        assert!(matches!(refused, CommandError::TooManyStreams(_)), "{refused}");
        refused.to_string()
    };
    assert!(refused(rig.commands.clone()).await.starts_with("this key has 8 event streams open"));
    streams.pop();
    streams.push(following(&rig).await);
    while streams.len() < STREAMS_MAX {
        let other = rig.commands.on_behalf_of(bound_to(&["a"]));
        for _ in 0..STREAMS_OF_A_KEY_MAX {
            streams.push(other.follow(&Filter::default(), EventTypes::ALL, None).await.unwrap());
        }
    }
    assert!(refused(rig.commands.on_behalf_of(bound_to(&["a"]))).await.starts_with("256 event streams are open"));
}

#[tokio::test(start_paused = true)]
async fn without_a_stream_the_store_is_not_asked() {
    let rig = Rig::new();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(rig.store.calls(Operation::Watermark), 0);
    let stream = following(&rig).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let calls = rig.store.calls(Operation::Watermark);
    assert!((35..=45).contains(&calls), "{calls}");
    drop(stream);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let calls = rig.store.calls(Operation::Events);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(rig.store.calls(Operation::Events), calls);
    // And it can begin again.
    let mut stream = following(&rig).await;
    let timer = rig.created().await;
    assert_eq!(told(&mut stream).await, [("created", timer)]);
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_store_loses_no_event() {
    let rig = Rig::new();
    let mut stream = following(&rig).await;
    rig.store.set_down(true);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let refused = rig.commands.follow(&Filter::default(), EventTypes::ALL, Some(Timestamp::MIN)).await;
    assert!(matches!(refused.err(), Some(CommandError::Invalid(_))));
    rig.store.set_down(false);
    let timer = rig.created().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(told(&mut stream).await, [("created", timer)]);

    let rig = Rig::new();
    rig.store.set_down(true);
    let refused = rig.commands.follow(&Filter::default(), EventTypes::ALL, None).await;
    assert!(matches!(refused.err(), Some(CommandError::Unavailable(_))));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_falls_behind_the_ring_goes_on_from_the_store() {
    let rig = Rig::new();
    let mut stream = following(&rig).await;
    let mut beside = following(&rig).await;
    let first = rig.created().await;
    let event = beside.next().await.unwrap().remove(0);
    // So much happens before the stream is read that the ring loses its first event.
    for _ in 0..20_000 {
        rig.commands.stores.events.state().ring.push(Event::clone(&event));
    }
    rig.clock.advance(Span::from_secs(10));
    let second = rig.created().await;
    rig.clock.advance(Span::from_secs(10));
    tokio::time::sleep(Duration::from_secs(1)).await;
    rig.clock.advance(Span::from_secs(10));
    let told: Vec<_> = told(&mut stream).await.into_iter().map(|(_, id)| id).collect();
    assert!(told.contains(&first) && told.contains(&second), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn old_entries_of_the_journal_are_removed() {
    let rig = Rig::new();
    let timer = rig.created().await;
    rig.settle_all(&Next::Failed { at: rig.commands.clock.now(), error: "503".to_owned() }).await;
    rig.commands.retry(timer, None).await.unwrap();
    assert!(!rig.commands.stores.events.prune_once().await.unwrap());
    let now = rig.commands.clock.now();
    rig.clock.advance(JOURNAL_KEPT.saturating_mul(2.0));
    assert!(!rig.commands.stores.events.prune_once().await.unwrap());
    assert_eq!(rig.store.forget_events(now.saturating_add(Span::from_secs(60)), 10).await.unwrap(), 0);
}

/// One whose readers of events are always beside calls that are late.
fn beside_late_calls() -> Rig {
    let mut rig = Rig::new();
    rig.commands.stores.events = Events::paced(rig.store.clone(), pace::tests::always_late());
    rig
}

#[tokio::test(start_paused = true)]
async fn beside_late_calls_events_come_slowly_and_each_once() {
    let rig = beside_late_calls();
    let mut stream = following(&rig).await;
    let before = stream.position();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut created = Vec::new();
    for _ in 0..1_200 {
        created.push(rig.created().await);
        rig.clock.advance(Span::from_millis(10));
    }
    let began = Instant::now();
    let mut told = Vec::new();
    while told.len() < created.len() {
        told.extend(stream.next().await.unwrap().iter().map(|event| event.timer.id()));
    }
    assert!(began.elapsed() >= Duration::from_millis(500), "three pages, with a pause after each: {:?}", began.elapsed());
    told.sort_unstable();
    created.sort_unstable();
    assert_eq!(told, created);
    // Nothing is left for a second time, and the position has passed what was told.
    assert_eq!(super::tests::told(&mut stream).await, []);
    assert!(stream.position() > before.saturating_add(Span::from_secs(8)), "{:?}", stream.position());
    let token = stream.position();
    drop(stream);
    let mut resumed = rig.commands.follow(&Filter::default(), EventTypes::ALL, Some(token)).await.unwrap();
    let repeated = super::tests::told(&mut resumed).await.len();
    assert!(repeated < 300, "what happened in the last two seconds before the position: {repeated}");
}

#[tokio::test(start_paused = true)]
async fn the_first_stream_begins_at_once_beside_late_calls() {
    let rig = beside_late_calls();
    tokio::time::sleep(Duration::from_secs(1)).await;
    for _ in 0..600 {
        rig.created().await;
    }
    let began = Instant::now();
    following(&rig).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}
