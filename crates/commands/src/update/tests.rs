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
        let timer = rig.commands.update(id, &metadata("1"), None).await.unwrap();
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
        let (updated, ()) = tokio::join!(rig.commands.update(id, &patch, None), firing);
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
        rig.commands.update(id, &fast, None).await
    };
    let (first, second) = tokio::join!(rig.commands.update(id, &slow, None), later);
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
        let timer = rig.commands.update(id, patch, None).await.unwrap();
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
    assert_eq!(rig.commands.update(id, &Patch::default(), None).await.unwrap(), before);
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
    assert!(matches!(rig.commands.update(id, &metadata("1"), None).await, Err(CommandError::Unknown(_))));
}

#[tokio::test(start_paused = true)]
async fn of_two_changes_of_one_revision_the_slower_is_refused() {
    let rig = Rig::new();
    let id = rig.created().await;
    rig.store.plan(Operation::Update, Fault::Late(Span::from_secs(1)));
    let (slow, fast) = (metadata("1"), metadata("2"));
    let later = async {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        rig.commands.update(id, &fast, Some(1)).await
    };
    let (first, second) = tokio::join!(rig.commands.update(id, &slow, Some(1)), later);
    assert_eq!(second.unwrap().revision, 2);
    assert_eq!(first.unwrap_err().to_string(), "timer has revision 2, not 1");
    assert_eq!(rig.commands.get(id).await.unwrap().definition.metadata, Some(JsonText::trusted("2")));
}

#[tokio::test(start_paused = true)]
async fn a_change_of_one_revision_whose_answer_was_lost_is_read_back() {
    // The change itself, whether another change follows before it is read back, and what the client is told.
    for (fault, overtaken_by, expected) in [
        (Fault::DoneUnknown, 0, Ok(2)),
        (Fault::NotDoneUnknown, 0, Ok(2)),
        (Fault::NotDoneUnknown, 1, Err("timer has revision 2, not 1")),
        // Done, and changed again since; or not done, and changed twice: the timer looks the same.
        (Fault::DoneUnknown, 1, Err("unknown")),
        (Fault::NotDoneUnknown, 2, Err("unknown")),
    ] {
        let rig = Rig::new();
        let id = rig.created().await;
        rig.store.plan(Operation::Update, fault);
        rig.store.plan_none(Operation::Get);
        rig.store.plan(Operation::Get, Fault::Late(Span::from_secs(2)));
        let mine = metadata("1");
        let others = async {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            rig.clock.advance(Span::from_secs(1));
            for n in 0..overtaken_by {
                let theirs = metadata(&format!("{}", n + 2));
                rig.commands.update(id, &theirs, None).await.unwrap();
            }
        };
        let (answer, ()) = tokio::join!(rig.commands.update(id, &mine, Some(1)), others);
        match (answer, expected) {
            (Ok(timer), Ok(revision)) => assert_eq!(timer.revision, revision, "{fault:?}"),
            (Err(CommandError::Unknown(_)), Err("unknown")) => {}
            (Err(refusal), Err(text)) => assert_eq!(refusal.to_string(), text, "{fault:?}"),
            (answer, expected) => panic!("{fault:?} {overtaken_by}: {answer:?}, not {expected:?}"),
        }
    }
}
