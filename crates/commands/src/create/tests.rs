use domain::Span;
use store::Operation;
use store_testing::Fault;

use super::*;
use crate::rig::{NOW, Rig, callback, keyed, plain};

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_read_back_before_the_client_is_answered() {
    for fault in [Fault::DoneUnknown, Fault::NotDoneUnknown] {
        let rig = Rig::new();
        rig.store.plan(Operation::Create, fault);
        let Outcome::Created(timer) = rig.commands.create(plain()).await.unwrap() else { panic!("{fault:?}") };
        assert_eq!(timer.created_at, NOW);
        assert_eq!(rig.count().await, 1, "{fault:?}");
        assert_eq!(rig.nudged.lock().unwrap().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn lost_answers_in_a_row_still_make_one_timer() {
    use Fault::{DoneUnknown, NotDone, NotDoneUnknown};
    for faults in [
        vec![NotDoneUnknown, NotDoneUnknown, DoneUnknown],
        vec![NotDoneUnknown, NotDone, NotDone],
        vec![NotDoneUnknown, DoneUnknown],
    ] {
        let modes = [OnConflict::Reject, OnConflict::Replace, OnConflict::Keep, OnConflict::Postpone, OnConflict::Latest];
        for request in [plain()].into_iter().chain(modes.map(|mode| keyed("a", mode))) {
            let rig = Rig::new();
            for fault in &faults {
                rig.store.plan(Operation::Create, *fault);
                rig.store.plan(Operation::Get, NotDone);
            }
            assert!(matches!(rig.commands.create(request).await, Ok(Outcome::Created(_))), "{faults:?}");
            assert_eq!(rig.count().await, 1, "{faults:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_done_is_never_done_twice() {
    // The first create replaces a pending timer, its answer is lost, and the timer fires before it is read back.
    let rig = Rig::new();
    rig.commands.create(keyed("a", OnConflict::Reject)).await.unwrap();
    rig.clock.advance(Span::from_secs(1));
    rig.store.plan(Operation::Create, Fault::DoneUnknown);
    rig.store.plan(Operation::Get, Fault::NotDone);
    rig.store.plan(Operation::Get, Fault::Late(Span::from_secs(1)));
    let replacing = rig.commands.create(keyed("b", OnConflict::Replace));
    let firing = async {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        rig.clock.advance(Span::from_secs(7200));
        rig.complete_all().await;
    };
    let (outcome, ()) = tokio::join!(replacing, firing);
    let Ok(Outcome::Replaced(timer)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(timer.status, Status::Completed);
    assert_eq!(rig.store.calls(Operation::Create), 2);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_stays_one_when_the_answer_is_lost() {
    for fault in [Fault::DoneUnknown, Fault::NotDoneUnknown] {
        let rig = Rig::new();
        rig.commands.create(keyed("a", OnConflict::Reject)).await.unwrap();
        rig.clock.advance(Span::from_secs(1));
        rig.store.plan(Operation::Create, fault);
        let refused = rig.commands.create(keyed("b", OnConflict::Reject)).await;
        assert!(matches!(refused, Err(CommandError::Conflict(_))), "{refused:?}");
        rig.store.plan(Operation::Create, fault);
        let existing = rig.commands.create(keyed("a", OnConflict::Reject)).await;
        assert!(matches!(existing, Ok(Outcome::Existing(_))), "{existing:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_repetition_stays_one_when_its_answer_is_lost_and_the_timer_fires() {
    let rig = Rig::new();
    rig.commands.create(at_ten("a", OnConflict::Reject)).await.unwrap();
    rig.clock.advance(Span::from_secs(1));
    rig.store.plan(Operation::Create, Fault::DoneUnknown);
    rig.store.plan(Operation::Get, Fault::Late(Span::from_secs(1)));
    let firing = async {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        rig.clock.advance(Span::from_secs(60));
        rig.complete_all().await;
    };
    let (outcome, ()) = tokio::join!(rig.commands.create(at_ten("a", OnConflict::Reject)), firing);
    let Ok(Outcome::Existing(timer)) = outcome else { panic!("{outcome:?}") };
    assert_eq!((timer.status, timer.created_at), (Status::Completed, NOW));
}

#[tokio::test(start_paused = true)]
async fn only_a_store_that_cannot_be_asked_leaves_an_outcome_unknown() {
    let rig = Rig::new();
    rig.store.plan(Operation::Create, Fault::DoneUnknown);
    for _ in 0..1000 {
        rig.store.plan(Operation::Get, Fault::NotDone);
    }
    let began = tokio::time::Instant::now();
    let error = rig.commands.create(plain()).await.unwrap_err();
    assert!(matches!(error, CommandError::Unknown(_)), "{error:?}");
    assert!(error.to_string().contains("the outcome is unknown"));
    assert!(began.elapsed() <= std::time::Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_is_given_up_and_read_back() {
    let rig = Rig::new();
    rig.store.plan(Operation::Create, Fault::LateAnswer(Span::from_secs(3600)));
    let outcome = rig.commands.create(plain()).await;
    assert!(matches!(outcome, Ok(Outcome::Created(_))), "{outcome:?}");
    assert_eq!(rig.count().await, 1);
}

#[tokio::test]
async fn a_store_that_is_away_has_changed_nothing_and_says_so() {
    let rig = Rig::new();
    rig.store.set_down(true);
    let error = rig.commands.create(plain()).await.unwrap_err();
    assert!(matches!(error, CommandError::Unavailable(_)));
    assert_eq!(error.to_string(), "the store is not available and nothing was changed: try again later");
    assert!(rig.nudged.lock().unwrap().is_empty());
}

#[tokio::test]
async fn how_near_a_timer_may_be_depends_on_the_api() {
    let rig = Rig::new();
    let at = |seconds: i64, earliest_allowed| NewTimerRequest {
        asked: RequestedTime::At(Timestamp::from_micros(NOW.as_micros() + seconds * 1_000_000)),
        earliest_allowed,
        ..plain()
    };
    for (seconds, earliest_allowed, taken) in [
        (5, EarliestAllowed::MinDelay, true),
        (4, EarliestAllowed::MinDelay, false),
        (4, EarliestAllowed::Now, true),
        (0, EarliestAllowed::Now, true),
        (-60, EarliestAllowed::Now, true),
        (-61, EarliestAllowed::Now, false),
        (-1, EarliestAllowed::MinDelay, false),
    ] {
        assert_eq!(rig.commands.create(at(seconds, earliest_allowed)).await.is_ok(), taken, "{seconds} {earliest_allowed:?}");
    }
}

#[tokio::test]
async fn what_the_installation_does_not_allow_is_refused() {
    let rig = Rig::new();
    let nats = Callback::from_json(r#"{"type":"nats","topic":"a"}"#).unwrap();
    for target in [
        Target::Callback(nats),
        Target::Callback(callback("denied")),
        Target::UrlWithId(CallbackUrl::parse("http://denied").unwrap()),
    ] {
        let refused = rig.commands.create(NewTimerRequest { target, ..plain() }).await;
        assert!(matches!(refused, Err(CommandError::Invalid(_))), "{refused:?}");
    }
    assert_eq!(rig.count().await, 0);
}

/// Due in ten seconds, at a fixed time.
fn at_ten(host: &str, on_conflict: OnConflict) -> NewTimerRequest {
    NewTimerRequest { asked: RequestedTime::At(NOW.saturating_add(Span::from_secs(10))), ..keyed(host, on_conflict) }
}

#[tokio::test]
async fn a_repeated_create_finds_its_timer_however_late_it_is() {
    // When the request is repeated, whether the timer has fired by then, and its status.
    for (seconds, has_fired, status) in [
        (6, false, Status::Pending),
        (10, false, Status::Pending),
        (3600, false, Status::Pending),
        (10, true, Status::Completed),
        (3600, true, Status::Completed),
    ] {
        let rig = Rig::new();
        rig.commands.create(at_ten("a", OnConflict::Reject)).await.unwrap();
        rig.clock.advance(Span::from_secs(seconds));
        if has_fired {
            rig.complete_all().await;
        }
        let outcome = rig.commands.create(at_ten("a", OnConflict::Reject)).await;
        let Ok(Outcome::Existing(timer)) = outcome else { panic!("{seconds} {outcome:?}") };
        assert_eq!((timer.status, timer.created_at, timer.revision), (status, NOW, 1), "{seconds}");
        assert_eq!((rig.count().await, rig.nudged.lock().unwrap().len()), (1, 1));
    }
}

/// The result of a create whose time has passed: `E` the existing timer, `C` a conflict, `P` refused for the past.
async fn late(request: &NewTimerRequest, status: Status) -> char {
    let rig = Rig::new();
    rig.commands.create(at_ten("a", OnConflict::Reject)).await.unwrap();
    rig.clock.advance(Span::from_secs(10));
    match status {
        Status::Executing => _ = rig.claim_all().await,
        Status::Completed => rig.complete_all().await,
        _ => {}
    }
    let answer = rig.commands.create(request.clone()).await;
    assert_eq!((rig.store.calls(Operation::Create), rig.count().await), (1, 1), "nothing was written");
    match answer {
        Ok(Outcome::Existing(_)) => 'E',
        Err(CommandError::Conflict(_) | CommandError::InDelivery(_)) => 'C',
        Err(CommandError::Invalid(invalid)) => {
            assert_eq!(invalid.to_string(), "execute_at must be in the future");
            'P'
        }
        other => panic!("{request:?} {other:?}"),
    }
}

#[tokio::test]
async fn a_create_that_comes_too_late_takes_no_time_that_has_passed() {
    let later = RequestedTime::At(NOW.saturating_add(Span::from_secs(11)));
    let other_key = Key::parse("other").unwrap();
    // While the timer is pending, executing, completed.
    for (request, expected) in [
        (at_ten("a", OnConflict::Reject), "EEE"),
        (at_ten("b", OnConflict::Reject), "CEC"),
        (NewTimerRequest { asked: later.clone(), ..at_ten("a", OnConflict::Reject) }, "CEC"),
        (at_ten("a", OnConflict::Replace), "PCP"),
        (at_ten("b", OnConflict::Keep), "PEE"),
        (at_ten("b", OnConflict::Postpone), "ECP"),
        (at_ten("b", OnConflict::Earliest), "EEE"),
        (at_ten("b", OnConflict::Latest), "EEE"),
        (NewTimerRequest { asked: later, ..at_ten("b", OnConflict::Latest) }, "PEE"),
        (NewTimerRequest { key: Some(other_key), ..at_ten("a", OnConflict::Reject) }, "PPP"),
        (NewTimerRequest { key: None, ..at_ten("a", OnConflict::Reject) }, "PPP"),
    ] {
        let mut met = String::new();
        for status in [Status::Pending, Status::Executing, Status::Completed] {
            met.push(late(&request, status).await);
        }
        assert_eq!(met, expected, "{request:?}");
    }
}

#[tokio::test]
async fn a_late_create_is_not_refused_while_it_is_unknown_what_it_repeats() {
    let rig = Rig::new();
    rig.commands.create(at_ten("a", OnConflict::Reject)).await.unwrap();
    rig.clock.advance(Span::from_secs(10));
    rig.store.plan(Operation::Get, Fault::NotDone);
    let error = rig.commands.create(at_ten("a", OnConflict::Reject)).await.unwrap_err();
    assert!(matches!(error, CommandError::Unavailable(_)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_new_life_is_called_a_replacement_even_if_its_answer_is_lost() {
    for fault in [Fault::DoneUnknown, Fault::NotDoneUnknown] {
        for host in ["a", "b"] {
            let rig = Rig::new();
            rig.commands.create(keyed("a", OnConflict::Reject)).await.unwrap();
            rig.clock.advance(Span::from_secs(3600));
            rig.complete_all().await;
            rig.clock.advance(Span::from_secs(1));
            rig.store.plan(Operation::Create, fault);
            let outcome = rig.commands.create(keyed(host, OnConflict::Replace)).await;
            let Ok(Outcome::Replaced(timer)) = outcome else { panic!("{fault:?} {host} {outcome:?}") };
            assert_eq!((timer.status, timer.created_at), (Status::Pending, rig.commands.clock.now()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_postponement_whose_answer_is_lost_is_made_once() {
    for fault in [Fault::DoneUnknown, Fault::NotDoneUnknown] {
        let rig = Rig::new();
        rig.commands.create(keyed("a", OnConflict::Reject)).await.unwrap();
        rig.clock.advance(Span::from_secs(60));
        rig.store.plan(Operation::Create, fault);
        let outcome = rig.commands.create(keyed("b", OnConflict::Postpone)).await.unwrap();
        let due = NOW.saturating_add(Span::from_secs(3660));
        assert_eq!((outcome.timer().execute_at, outcome.timer().revision), (due, 2), "{fault:?}");
        assert_eq!(outcome.timer().definition.callback, callback("a"), "{fault:?}");
    }
}

#[tokio::test]
async fn a_time_at_which_the_timer_has_expired_is_refused() {
    let in_secs = |secs| NOW.saturating_add(Span::from_secs(secs));
    for on_conflict in [OnConflict::Keep, OnConflict::Postpone, OnConflict::Latest] {
        let rig = Rig::new();
        let options = Options { expiry: Some(domain::Expiry::At(in_secs(4000))), ..Options::default() };
        let made = rig.commands.create(NewTimerRequest { options, ..keyed("a", OnConflict::Reject) }).await.unwrap();
        let later = |secs| NewTimerRequest { asked: RequestedTime::After(Span::from_secs(secs)), ..keyed("a", on_conflict) };
        let refusal = rig.commands.create(later(4000)).await.unwrap_err();
        assert_eq!(refusal.to_string(), "expires_at must be later than the due time", "{on_conflict:?}");
        assert_eq!(&rig.commands.get(made.timer().id()).await.unwrap(), made.timer());
        let moved = rig.commands.create(later(3999)).await.unwrap();
        assert_eq!(moved.timer().execute_at, in_secs(3999), "{on_conflict:?}");
    }
}
