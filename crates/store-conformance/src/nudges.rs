//! Nudging other processes about timers that are due soon. Only for stores that several processes can share.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use domain::NewTimer;
use store::{DueEntry, Store};
use tokio::time::timeout;

use crate::{Fixture, Stage, ahead, fixture::skip, micros, timer};

/// How long a nudge may take before it is sent again: a process that has only begun to listen misses earlier ones.
const TIMEOUT: Duration = Duration::from_millis(100);
const WORDS_MAX: usize = 50;

async fn two_processes(fixture: &impl Fixture, behaviour: &str) -> Option<(Arc<dyn Store>, Arc<dyn Store>)> {
    let stage = Stage::unowned(fixture).await;
    let other = fixture.another_process().await;
    if other.is_none() {
        skip(behaviour, "the store is open to one at a time");
    }
    other.map(|other| (stage.store, other))
}

fn entries(numbers: std::ops::Range<u32>) -> Vec<DueEntry> {
    let entry = |number: u32| {
        let NewTimer { definition, .. } = timer("http://a.example/").numbered(u64::from(number)).build();
        DueEntry { at: ahead(micros(number)), id: definition.id, destination: definition.destination() }
    };
    numbers.map(entry).collect()
}

/// Sends a nudge until the listener receives it.
async fn heard(speaker: &dyn Store, listener: &dyn Store, entries: &[DueEntry]) -> Vec<DueEntry> {
    for _ in 0..WORDS_MAX {
        speaker.nudge(entries).await.unwrap();
        // Waiting is canceled and begun again: that must lose nothing.
        if let Ok(heard) = timeout(TIMEOUT, listener.nudged()).await {
            return heard.unwrap();
        }
    }
    panic!("nothing was heard of {WORDS_MAX} words");
}

pub async fn nudges_of_one_process_reach_the_other_processes(fixture: impl Fixture) {
    let behaviour = "nudges_of_one_process_reach_the_other_processes";
    let Some((one, other)) = two_processes(&fixture, behaviour).await else { return };
    let third = fixture.another_process().await.expect("there can be many");
    let first = entries(1..3);
    for listener in [&other, &third] {
        assert_eq!(heard(&*one, &**listener, &first).await, first);
    }
    assert_eq!(heard(&*other, &*one, &entries(7..8)).await, entries(7..8), "the other way round");
}

pub async fn many_timers_can_be_told_of_at_once(fixture: impl Fixture) {
    let Some((one, other)) = two_processes(&fixture, "many_timers_can_be_told_of_at_once").await else { return };
    heard(&*one, &*other, &entries(0..1)).await;
    let all = entries(1..1_001);
    one.nudge(&all).await.unwrap();
    let mut told = BTreeSet::new();
    // Nudges that were sent while the connection was made may still come.
    while told.len() < all.len() {
        told.extend(other.nudged().await.unwrap().into_iter().filter(|entry| all.contains(entry)));
    }
    assert_eq!(told.into_iter().collect::<Vec<_>>(), all);
}

pub async fn a_process_does_not_hear_itself(fixture: impl Fixture) {
    let Some((one, other)) = two_processes(&fixture, "a_process_does_not_hear_itself").await else { return };
    heard(&*other, &*one, &entries(0..1)).await;
    one.nudge(&entries(1..2)).await.unwrap();
    other.nudge(&entries(2..3)).await.unwrap();
    // Nudges keep their order, so its own would have come before.
    loop {
        let heard = one.nudged().await.unwrap();
        assert_ne!(heard, entries(1..2), "it said that itself");
        if heard == entries(2..3) {
            return;
        }
    }
}
