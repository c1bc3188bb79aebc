use domain::{Callback, Key, KindSet, OnConflict, RequestedTime, Span, Status, Timestamp};
use store::Operation;
use store_testing::Fault;

use crate::{
    CommandError, EarliestAllowed, NewTimerRequest, Outcome, Target,
    rig::{NOW, Rig, keyed, plain},
};

/// A timer as the command consumer registers it.
fn event(key: &str, at: Timestamp) -> NewTimerRequest {
    NewTimerRequest {
        key: Some(Key::parse(key).unwrap()),
        on_conflict: OnConflict::Keep,
        earliest_allowed: EarliestAllowed::Any,
        ..NewTimerRequest::new(RequestedTime::At(at), Target::Event)
    }
}

fn in_an_hour() -> Timestamp {
    NOW.saturating_add(Span::from_secs(3600))
}

#[tokio::test]
async fn a_batch_is_one_write_and_is_answered_in_its_order() {
    let rig = Rig::new();
    let refused = NewTimerRequest { asked: RequestedTime::After(Span::ZERO), ..plain() };
    let conflict = keyed("b", OnConflict::Reject);
    let answers =
        rig.commands.create_all(vec![keyed("a", OnConflict::Reject), refused, conflict, event("e", in_an_hour()), plain()]).await;
    assert!(
        matches!(
            answers[..],
            [
                Ok(Outcome::Created(_)),
                Err(CommandError::Invalid(_)),
                Err(CommandError::Conflict(_)),
                Ok(Outcome::Created(_)),
                Ok(Outcome::Created(_))
            ]
        ),
        "{answers:?}"
    );
    assert_eq!((rig.store.calls(Operation::Create), rig.count().await), (1, 3));
    assert_eq!(rig.nudged.lock().unwrap().len(), 3);
    assert!(rig.commands.create_all(Vec::new()).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_batch_whose_answer_is_lost_is_read_back() {
    for fault in [Fault::DoneUnknown, Fault::NotDoneUnknown] {
        let rig = Rig::new();
        rig.store.plan(Operation::Create, fault);
        let answers = rig.commands.create_all(vec![plain(), event("e", in_an_hour())]).await;
        assert!(answers.iter().all(|answer| matches!(answer, Ok(Outcome::Created(_)))), "{fault:?}: {answers:?}");
        assert_eq!((rig.count().await, rig.nudged.lock().unwrap().len()), (2, 2), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_asked_is_waited_for_once() {
    let rig = Rig::new();
    rig.store.plan(Operation::Create, Fault::NotDoneUnknown);
    (0..1000).for_each(|_| rig.store.plan(Operation::Get, Fault::NotDone));
    let begun = tokio::time::Instant::now();
    let answers = rig.commands.create_all(vec![plain(), plain(), plain()]).await;
    assert!(answers.iter().all(|answer| matches!(answer, Err(CommandError::Unknown(_)))), "{answers:?}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_slow_is_not_waited_for_once_for_each() {
    let rig = Rig::new();
    rig.store.plan(Operation::Create, Fault::DoneUnknown);
    (0..100).for_each(|_| rig.store.plan(Operation::Get, Fault::Late(Span::from_secs(4))));
    let begun = tokio::time::Instant::now();
    let answers = rig.commands.create_all((0..100).map(|_| plain()).collect()).await;
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(answers[0].is_ok() && matches!(answers[99], Err(CommandError::Unknown(_))));
}

/// A request that can be repeated when its time has passed.
fn at_ten(key: usize) -> NewTimerRequest {
    let at = RequestedTime::At(NOW.saturating_add(Span::from_secs(10)));
    NewTimerRequest { key: Some(Key::parse(&key.to_string()).unwrap()), asked: at, ..plain() }
}

#[tokio::test(start_paused = true)]
async fn what_is_repeated_too_late_is_looked_up_together() {
    let rig = Rig::new();
    let made = rig.commands.create_all((0..50).map(at_ten).collect()).await;
    rig.clock.advance(Span::from_secs(20));
    (0..100).for_each(|_| rig.store.plan(Operation::Get, Fault::Late(Span::from_secs(4))));
    let begun = tokio::time::Instant::now();
    let answers = rig.commands.create_all((0..100).map(at_ten).chain([plain()]).collect()).await;
    assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{:?}", begun.elapsed());
    for (n, answer) in answers.iter().enumerate() {
        match answer {
            Ok(Outcome::Existing(timer)) if n < 50 => assert_eq!(timer.id(), made[n].as_ref().unwrap().timer().id()),
            Err(CommandError::Invalid(_)) if (50..100).contains(&n) => {}
            Ok(Outcome::Created(_)) if n == 100 => {}
            _ => panic!("{n}: {answer:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_is_not_asked_for_each_that_comes_too_late() {
    let rig = Rig::new();
    rig.clock.advance(Span::from_secs(20));
    (0..1000).for_each(|_| rig.store.plan(Operation::Get, Fault::Late(Span::from_secs(60))));
    let begun = tokio::time::Instant::now();
    let nameless = NewTimerRequest { key: None, ..at_ten(0) };
    let answers = rig.commands.create_all((0..100).map(at_ten).chain([nameless, plain()]).collect()).await;
    assert!(begun.elapsed() < std::time::Duration::from_secs(15), "{:?}", begun.elapsed());
    assert!(answers[..100].iter().all(|answer| matches!(answer, Err(CommandError::Unavailable(_)))), "{answers:?}");
    assert!(matches!(answers[100..], [Err(CommandError::Invalid(_)), Ok(Outcome::Created(_))]), "{:?}", &answers[100..]);
}

#[tokio::test]
async fn a_store_that_is_away_refuses_the_whole_batch() {
    let rig = Rig::new();
    rig.store.plan(Operation::Create, Fault::NotDone);
    let answers = rig.commands.create_all(vec![plain(), plain()]).await;
    assert!(answers.iter().all(|answer| matches!(answer, Err(CommandError::Unavailable(_)))), "{answers:?}");
    assert_eq!(rig.count().await, 0);
}

#[tokio::test]
async fn an_event_may_be_past_and_is_moved_only_before_it_is_due() {
    let rig = Rig::new();
    let past = Timestamp::from_micros(NOW.as_micros() - 1);
    let made = rig.commands.create_all(vec![event("past", past), event("e", in_an_hour())]).await;
    let Ok(Outcome::Created(timer)) = &made[0] else { panic!("{made:?}") };
    assert_eq!((timer.execute_at, &timer.definition.callback), (past, &Callback::EVENT));
    let later = in_an_hour().saturating_add(Span::from_secs(1));
    let moved = rig.commands.create_all(vec![event("e", later)]).await;
    assert!(matches!(&moved[0], Ok(Outcome::Replaced(timer)) if timer.execute_at == later), "{moved:?}");
    rig.complete_all().await;
    let ignored = rig.commands.create_all(vec![event("e", in_an_hour())]).await;
    let Ok(Outcome::Existing(timer)) = &ignored[0] else { panic!("{ignored:?}") };
    assert_eq!((timer.execute_at, timer.status), (later, Status::Completed));
    let ancient = rig.commands.create_all(vec![event("x", Timestamp::from_micros(-1))]).await;
    assert!(matches!(&ancient[0], Err(CommandError::Invalid(_))), "{ancient:?}");
}

#[tokio::test]
async fn only_the_command_consumer_makes_events() {
    let rig = Rig::new();
    let request = NewTimerRequest { target: Target::Callback(Callback::EVENT), ..plain() };
    let refusal = rig.commands.create(request).await.unwrap_err();
    assert_eq!(refusal.to_string(), format!("callback.type must be {}", KindSet::REQUESTABLE));
}
