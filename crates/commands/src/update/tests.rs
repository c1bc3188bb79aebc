use domain::{JsonText, Next, RequestedTime, Span};
use store::{DueEntry, Operation};
use store_testing::Fault;

use super::*;
use crate::{
    Field,
    rig::{NOW, Rig, callback},
};

fn metadata(text: &str) -> Patch {
    Patch { metadata: Field::Set(JsonText::trusted(text)), ..Patch::default() }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_read_back_and_the_change_is_made_once() {
    for faults in [vec![Fault::DoneUnknown], vec![Fault::NotDoneUnknown], vec![Fault::NotDoneUnknown, Fault::DoneUnknown]] {
        let rig = Rig::new();
        let id = rig.created().await;
        for fault in &faults {
            rig.store.plan(Operation::Update, *fault);
        }
        let timer = rig.commands.update(id, &metadata("1")).await.unwrap();
        assert_eq!((timer.revision, timer.definition.metadata), (2, Some(JsonText::trusted("1"))), "{faults:?}");
        assert_eq!(rig.nudged.lock().unwrap().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_that_was_made_counts_even_if_the_timer_has_fired_since() {
    let at = NOW.saturating_add(Span::from_secs(4000));
    // The receiver may have asked to be called again.
    for (next, status) in [(Next::Completed { at }, Status::Completed), (Next::Again { at }, Status::Pending)] {
        let rig = Rig::new();
        let id = rig.created().await;
        rig.store.plan_none(Operation::Get);
        rig.store.plan(Operation::Update, Fault::DoneUnknown);
        rig.store.plan(Operation::Get, Fault::Late(Span::from_secs(2)));
        let patch = metadata("1");
        let firing = async {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            rig.clock.advance(Span::from_secs(4000));
            rig.settle_all(&next).await;
        };
        let (updated, ()) = tokio::join!(rig.commands.update(id, &patch), firing);
        assert_eq!(updated.unwrap().status, status);
        assert_eq!(rig.store.calls(Operation::Update), 1, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_changes_at_the_same_time_both_happen() {
    let rig = Rig::new();
    let id = rig.created().await;
    // The first update has read the timer and is slow to write; the second one comes in between.
    rig.store.plan(Operation::Update, Fault::Late(Span::from_secs(1)));
    let (slow, fast) = (metadata("1"), Patch { asked: Some(RequestedTime::After(Span::from_secs(60))), ..Patch::default() });
    let later = async {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        rig.commands.update(id, &fast).await
    };
    let (first, second) = tokio::join!(rig.commands.update(id, &slow), later);
    assert_eq!(second.unwrap().revision, 2);
    let timer = first.unwrap();
    assert_eq!((timer.revision, timer.definition.asked), (3, RequestedTime::After(Span::from_secs(60))));
    assert_eq!(timer.definition.metadata, Some(JsonText::trusted("1")));
}

#[tokio::test]
async fn the_scheduler_is_told_of_times_that_are_the_timers_next_one() {
    let in_a_minute = Patch { asked: Some(RequestedTime::After(Span::from_secs(60))), ..Patch::default() };
    let elsewhere = Patch { callback: Some(callback("b")), ..Patch::default() };
    // A timer that waits for a retry keeps that time when it gets no new one, and the command does not know it.
    for (waits_for_retry, patch, is_told) in
        [(false, &in_a_minute, true), (false, &elsewhere, true), (true, &in_a_minute, true), (true, &elsewhere, false)]
    {
        let rig = Rig::new();
        let id = rig.created().await;
        if waits_for_retry {
            rig.clock.advance(Span::from_secs(3600));
            let at = rig.commands.clock.now();
            rig.settle_all(&Next::Pending { at: at.saturating_add(Span::from_secs(30)), attempt: 1, error: None }).await;
        }
        rig.nudged.lock().unwrap().clear();
        let timer = rig.commands.update(id, patch).await.unwrap();
        let destination = timer.definition.destination();
        let told = if is_told { vec![DueEntry { at: timer.execute_at, id, destination }] } else { Vec::new() };
        assert_eq!(*rig.nudged.lock().unwrap(), told, "{waits_for_retry} {patch:?}");
    }
}

#[tokio::test]
async fn changing_nothing_writes_nothing() {
    let rig = Rig::new();
    let id = rig.created().await;
    let before = rig.commands.get(id).await.unwrap();
    assert_eq!(rig.commands.update(id, &Patch::default()).await.unwrap(), before);
    assert_eq!(rig.store.calls(Operation::Update), 0);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_cannot_be_read_back_is_called_unknown() {
    let rig = Rig::new();
    let id = rig.created().await;
    rig.store.plan_none(Operation::Get);
    rig.store.plan(Operation::Update, Fault::DoneUnknown);
    for _ in 0..1000 {
        rig.store.plan(Operation::Get, Fault::NotDone);
    }
    assert!(matches!(rig.commands.update(id, &metadata("1")).await, Err(CommandError::Unknown(_))));
}
