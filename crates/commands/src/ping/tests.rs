use domain::{Expiry, Next, OnConflict, Options};
use store::{Operation, TimerStore};
use store_testing::Fault;

use super::*;
use crate::{
    NewTimerRequest, Outcome,
    rig::{NOW, Rig, keyed, plain},
};

const HOUR: Span = Span::from_secs(3600);

fn in_secs(secs: u32) -> Timestamp {
    NOW.saturating_add(Span::from_secs(secs))
}

async fn create(rig: &Rig, options: Options) -> TimerId {
    rig.commands.create(NewTimerRequest { options, ..plain() }).await.unwrap().timer().id()
}

#[tokio::test]
async fn a_ping_postpones_by_the_own_delay_or_the_one_given_up_to_the_limit() {
    let rig = Rig::new();
    let limit = Options { postpone_max: Some(Span::from_secs(5000)), ..Options::default() };
    let id = create(&rig, limit).await;
    for (now, delay, due) in [(60, None, 3660), (70, Some(100), 170), (2000, None, 5000), (3000, Some(9000), 5000)] {
        rig.clock.set(in_secs(now));
        let pinged = rig.commands.ping(id, delay.map(Span::from_secs), None).await.unwrap();
        assert_eq!((pinged.execute_at, pinged.status), (in_secs(due), Status::Pending), "after {now} s");
        assert_eq!(pinged.definition.asked, RequestedTime::After(HOUR), "what was asked for stays");
        assert_eq!(rig.nudged.lock().unwrap().last().map(|entry| entry.at), Some(in_secs(due)));
    }
}

#[tokio::test]
async fn a_ping_revives_what_has_ended_and_not_what_was_canceled() {
    for next in [
        Next::Completed { at: NOW },
        Next::Failed { at: NOW, error: "503".to_owned() },
        Next::Expired { at: NOW, error: "expired".to_owned(), is_called: false },
    ] {
        let rig = Rig::new();
        let id = create(&rig, Options::default()).await;
        rig.settle_all(&next).await;
        rig.clock.set(in_secs(60));
        let revived = rig.commands.ping(id, None, None).await.unwrap();
        let seen = (revived.execute_at, revived.status, revived.created_at, revived.last_error, revived.revision);
        assert_eq!(seen, (in_secs(3660), Status::Pending, in_secs(60), None, 2), "{next:?}");
    }
    let rig = Rig::new();
    let id = create(&rig, Options::default()).await;
    rig.claim_all().await;
    let refused = rig.commands.ping(id, None, None).await.unwrap_err();
    assert_eq!(refused.to_string(), "cannot ping timer with status 'executing'");
    let rig = Rig::new();
    let id = create(&rig, Options::default()).await;
    rig.commands.cancel(id, None).await.unwrap();
    let refused = rig.commands.ping(id, None, None).await.unwrap_err();
    assert_eq!(refused.to_string(), "cannot ping timer with status 'canceled'");
}

#[tokio::test]
async fn a_ping_needs_a_delay_and_time_before_the_expiry() {
    let rig = Rig::new();
    let at = NewTimerRequest { asked: RequestedTime::At(in_secs(60)), ..plain() };
    let id = rig.commands.create(at).await.unwrap().timer().id();
    let refused = rig.commands.ping(id, None, None).await.unwrap_err();
    assert_eq!(refused.to_string(), "delay is required, because the timer has an execute_at");
    assert_eq!(rig.commands.ping(id, Some(HOUR), None).await.unwrap().execute_at, in_secs(3600));
    let refused = rig.commands.ping(id, Some(Span::from_secs(4)), None).await.unwrap_err();
    assert_eq!(refused.to_string(), "delay must be at least 5s");
    let id = create(&rig, Options { expiry: Some(Expiry::At(in_secs(3700))), ..Options::default() }).await;
    let refused = rig.commands.ping(id, Some(Span::from_secs(3700)), None).await.unwrap_err();
    assert_eq!(refused.to_string(), "expires_at must be later than the due time");
}

#[tokio::test]
async fn a_ping_of_another_revision_changes_nothing() {
    let rig = Rig::new();
    let id = create(&rig, Options::default()).await;
    let refused = rig.commands.ping(id, None, Some(2)).await.unwrap_err();
    assert_eq!(refused.to_string(), "timer has revision 1, not 2");
    rig.complete_all().await;
    assert!(rig.commands.ping(id, None, Some(2)).await.is_err());
    assert_eq!(rig.commands.get(id).await.unwrap().status, Status::Completed);
    assert_eq!(rig.commands.ping(id, None, Some(1)).await.unwrap().revision, 2);
}

#[tokio::test]
async fn the_original_request_is_known_again_after_a_ping() {
    let rig = Rig::new();
    let id = rig.commands.create(keyed("a", OnConflict::Reject)).await.unwrap().timer().id();
    rig.clock.advance(Span::from_secs(60));
    rig.commands.ping(id, Some(Span::from_secs(90)), None).await.unwrap();
    let again = rig.commands.create(keyed("a", OnConflict::Reject)).await;
    assert!(matches!(again, Ok(Outcome::Existing(_))), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_read_back() {
    for fault in [Fault::DoneUnknown, Fault::NotDoneUnknown] {
        let rig = Rig::new();
        let id = create(&rig, Options::default()).await;
        rig.store.plan(Operation::Update, fault);
        assert_eq!(rig.commands.ping(id, None, None).await.unwrap().status, Status::Pending, "{fault:?}");
        rig.complete_all().await;
        rig.clock.advance(Span::from_secs(1));
        let before = rig.commands.get(id).await.unwrap().revision;
        rig.store.plan(Operation::Revive, fault);
        let revived = rig.commands.ping(id, None, None).await.unwrap();
        assert_eq!((revived.status, revived.revision), (Status::Pending, before + 1), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_revival_that_is_committed_late_is_known_by_its_repetition() {
    for expected in [None, Some(1)] {
        let rig = Rig::new();
        let id = create(&rig, Options::default()).await;
        rig.complete_all().await;
        let now = in_secs(60);
        rig.clock.set(now);
        let changed = Timer { execute_at: in_secs(3660), ..rig.commands.get(id).await.unwrap() };
        rig.store.plan(Operation::Revive, Fault::NotDoneUnknown);
        rig.store.plan(Operation::Revive, Fault::Late(Span::from_secs(2)));
        let commit = async {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            assert!(matches!(rig.store.revive(&changed, now).await, Ok(Changed::Done(_))));
        };
        let (answer, ()) = tokio::join!(rig.commands.ping(id, None, expected), commit);
        let revived = answer.unwrap();
        assert_eq!((revived.status, revived.revision), (Status::Pending, 2), "{expected:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_revival_that_another_client_was_faster_with_is_a_stale_revision() {
    let rig = Rig::new();
    let id = create(&rig, Options::default()).await;
    rig.complete_all().await;
    rig.store.plan(Operation::Revive, Fault::NotDoneUnknown);
    rig.store.plan(Operation::Revive, Fault::Late(Span::from_secs(2)));
    let other = async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        rig.clock.advance(Span::from_secs(1));
        rig.commands.ping(id, None, Some(1)).await
    };
    let (slow, fast) = tokio::join!(rig.commands.ping(id, None, Some(1)), other);
    assert_eq!(fast.unwrap().revision, 2);
    assert_eq!(slow.unwrap_err().to_string(), "timer has revision 2, not 1");
}

#[tokio::test]
async fn a_revival_is_limited_as_a_postponement_is() {
    for (delay, due) in [(None, 3660), (Some(600), 660), (Some(9000), 1060)] {
        let rig = Rig::new();
        let id = create(&rig, Options { postpone_max: Some(Span::from_secs(1000)), ..Options::default() }).await;
        rig.complete_all().await;
        rig.clock.set(in_secs(60));
        let revived = rig.commands.ping(id, delay.map(Span::from_secs), None).await.unwrap();
        assert_eq!(revived.execute_at, in_secs(due), "{delay:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_ping_that_a_claim_was_faster_than_changes_nothing() {
    for (next, expected) in [
        (None, Err("cannot ping timer with status 'executing'")),
        // Delivered before the ping is tried again: it begins anew.
        (Some(Next::Completed { at: NOW }), Ok((Status::Pending, 2))),
    ] {
        let rig = Rig::new();
        let id = create(&rig, Options::default()).await;
        rig.store.plan(Operation::Update, Fault::Late(Span::from_secs(2)));
        let claim = async {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            match &next {
                None => drop(rig.claim_all().await),
                Some(next) => rig.settle_all(next).await,
            }
        };
        let (answer, ()) = tokio::join!(rig.commands.ping(id, None, None), claim);
        let answer = answer.map(|timer| (timer.status, timer.revision)).map_err(|error| error.to_string());
        assert_eq!(answer, expected.map_err(str::to_owned), "{next:?}");
    }
}
