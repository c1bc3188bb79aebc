use domain::{Expiry, OnConflict, Options, Span, Status, Timer};
use store::{Changed, Operation, TimerStore};
use store_testing::Fault;

use crate::{
    CommandError, NewTimerRequest, Outcome,
    rig::{NOW, Rig, keyed, plain},
};

#[tokio::test]
async fn a_pending_timer_is_due_at_once_and_its_request_is_still_known() {
    let rig = Rig::new();
    let made = rig.commands.create(keyed("a", OnConflict::Reject)).await.unwrap().timer().clone();
    rig.clock.advance(Span::from_secs(7));
    let now = NOW.saturating_add(Span::from_secs(7));
    let fired = rig.commands.fire(made.id(), None).await.unwrap();
    assert_eq!((fired.execute_at, fired.status, fired.revision), (now, Status::Pending, made.revision + 1));
    assert_eq!(rig.nudged.lock().unwrap().last().map(|entry| (entry.id, entry.at)), Some((made.id(), now)));
    rig.complete_all().await;
    let repeated = rig.commands.create(keyed("a", OnConflict::Reject)).await.unwrap();
    assert!(matches!(repeated, Outcome::Existing(timer) if timer.status == Status::Completed));
}

#[tokio::test]
async fn only_what_is_pending_can_be_fired() {
    let rig = Rig::new();
    let id = rig.created().await;
    rig.complete_all().await;
    let refusal = rig.commands.fire(id, None).await.unwrap_err();
    assert_eq!(refusal.to_string(), "cannot fire timer with status 'completed'");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_read_back() {
    for fault in [Fault::DoneUnknown, Fault::NotDoneUnknown] {
        let rig = Rig::new();
        let id = rig.created().await;
        rig.store.plan(Operation::Update, fault);
        assert_eq!(rig.commands.fire(id, None).await.unwrap().execute_at, NOW, "{fault:?}");
    }
    let rig = Rig::new();
    let unknown = domain::TimerId::random(NOW);
    assert!(matches!(rig.commands.fire(unknown, None).await, Err(CommandError::NotFound)));
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_is_fired_late_is_not_fired_twice() {
    for expected in [None, Some(1)] {
        for is_delivered in [false, true] {
            let rig = Rig::new();
            let id = rig.created().await;
            let fired = Timer { execute_at: NOW, ..rig.commands.get(id).await.unwrap() };
            rig.store.plan(Operation::Update, Fault::NotDoneUnknown);
            rig.store.plan(Operation::Update, Fault::Late(Span::from_secs(2)));
            let commit = async {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                rig.clock.advance(Span::from_secs(1));
                assert!(matches!(rig.store.update(&fired, NOW).await, Ok(Changed::Done(_))));
                if is_delivered {
                    rig.complete_all().await;
                }
            };
            let (answer, ()) = tokio::join!(rig.commands.fire(id, expected), commit);
            let timer = answer.unwrap();
            let status = if is_delivered { Status::Completed } else { Status::Pending };
            assert_eq!((timer.revision, timer.execute_at, timer.status), (2, NOW, status), "{expected:?}");
            assert_eq!(rig.commands.get(id).await.unwrap(), timer);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn after_several_changes_it_is_open_whether_a_timer_was_fired() {
    let rig = Rig::new();
    let id = rig.created().await;
    rig.store.plan(Operation::Update, Fault::DoneUnknown);
    rig.store.plan_none(Operation::Get);
    rig.store.plan(Operation::Get, Fault::Late(Span::from_secs(2)));
    let later = async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let asked = Some(domain::RequestedTime::After(Span::from_secs(60)));
        rig.commands.update(id, &crate::Patch { asked, ..Default::default() }, None).await.unwrap()
    };
    let (answer, changed) = tokio::join!(rig.commands.fire(id, None), later);
    assert!(matches!(answer, Err(CommandError::Unknown(_))), "{answer:?}");
    assert_eq!(rig.commands.get(id).await.unwrap(), changed);
}

#[tokio::test]
async fn what_has_expired_is_not_fired() {
    let secs = |secs| NOW.saturating_add(Span::from_secs(secs));
    for (expiry, is_fired) in [(Expiry::At(secs(4000)), false), (Expiry::After(Span::from_secs(400)), true)] {
        let rig = Rig::new();
        let request = NewTimerRequest { options: Options { expiry: Some(expiry), ..Options::default() }, ..plain() };
        let id = rig.commands.create(request).await.unwrap().timer().id();
        rig.clock.set(secs(4000));
        let answer = rig.commands.fire(id, None).await.map(|timer| timer.execute_at).map_err(|error| error.to_string());
        let refusal = format!("cannot fire timer: it expired at {}", secs(4000));
        assert_eq!(answer, if is_fired { Ok(secs(4000)) } else { Err(refusal) }, "{expiry:?}");
    }
}
