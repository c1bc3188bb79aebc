use domain::{Expiry, Next, Options, Span, Status};
use store::{Operation, TimerStore};
use store_testing::Fault;

use crate::{
    NewTimerRequest,
    rig::{NOW, Rig, plain},
};

async fn failed() -> (Rig, domain::TimerId) {
    let rig = Rig::new();
    let id = rig.created().await;
    rig.settle_all(&Next::Failed { at: NOW, error: "503".to_owned() }).await;
    rig.nudged.lock().unwrap().clear();
    (rig, id)
}

#[tokio::test]
async fn a_failed_timer_is_tried_again_now_under_the_same_id() {
    let (rig, id) = failed().await;
    let before = rig.commands.get(id).await.unwrap();
    let reopened = rig.commands.retry(id, None).await.unwrap();
    assert_eq!((reopened.status, reopened.attempt, reopened.last_error.as_ref()), (Status::Pending, 0, None));
    assert_eq!(reopened.webhook_id(), before.webhook_id());
    let nudged = rig.nudged.lock().unwrap().clone();
    assert_eq!(nudged.iter().map(|entry| (entry.id, entry.at)).collect::<Vec<_>>(), [(id, NOW)]);
}

#[tokio::test]
async fn what_has_not_failed_is_not_tried_again() {
    let rig = Rig::new();
    let id = rig.created().await;
    assert_eq!(rig.commands.retry(id, None).await.unwrap_err().to_string(), "cannot retry timer with status 'pending'");
    rig.complete_all().await;
    assert_eq!(rig.commands.retry(id, None).await.unwrap_err().to_string(), "cannot retry timer with status 'completed'");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_read_back() {
    for fault in [Fault::DoneUnknown, Fault::NotDoneUnknown] {
        let (rig, id) = failed().await;
        rig.store.plan(Operation::Reopen, fault);
        // The read before the retry succeeds, the first one after it fails.
        rig.store.plan_none(Operation::Get);
        rig.store.plan(Operation::Get, Fault::NotDone);
        let reopened = rig.commands.retry(id, None).await.unwrap();
        assert_eq!(reopened.status, Status::Pending, "{fault:?}");
        assert_eq!(rig.nudged.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn what_has_expired_is_tried_again_only_before_its_own_expiry() {
    for (expiry, is_tried) in [(None, true), (Some(Expiry::After(Span::from_secs(2))), false)] {
        let rig = Rig::new();
        let request = NewTimerRequest { options: Options { expiry, ..Options::default() }, ..plain() };
        let id = rig.commands.create(request).await.unwrap().timer().id();
        rig.settle_all(&Next::Expired { at: NOW, error: "503; expired".to_owned(), is_called: true }).await;
        let due = rig.commands.get(id).await.unwrap().execute_at;
        rig.clock.set(due.saturating_add(Span::from_secs(2)));
        let answer = rig.commands.retry(id, None).await;
        match answer {
            Ok(timer) => assert!(is_tried && timer.status == Status::Pending, "{timer:?}"),
            Err(refusal) => {
                assert!(!is_tried, "{refusal}");
                assert!(refusal.to_string().starts_with("cannot retry timer: it expired at "), "{refusal}");
                assert_eq!(rig.commands.get(id).await.unwrap().status, Status::Expired);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_retries_of_one_revision_one_is_made_also_when_answers_are_lost() {
    for (fault, is_first) in [(Fault::DoneUnknown, true), (Fault::NotDoneUnknown, false)] {
        let (rig, id) = failed().await;
        rig.store.plan(Operation::Reopen, fault);
        rig.store.plan_none(Operation::Get);
        rig.store.plan(Operation::Get, Fault::Late(domain::Span::from_secs(2)));
        let other = async {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            rig.clock.advance(domain::Span::from_secs(1));
            rig.commands.retry(id, Some(1)).await
        };
        let (first, second) = tokio::join!(rig.commands.retry(id, Some(1)), other);
        let (made, refused) = if is_first { (first, second) } else { (second, first) };
        assert_eq!(made.unwrap().revision, 2, "{fault:?}");
        assert_eq!(refused.unwrap_err().to_string(), "timer has revision 2, not 1", "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_is_committed_late_is_known_by_its_repetition() {
    for (expected, is_delivered) in [(None, false), (Some(1), false), (None, true)] {
        let (rig, id) = failed().await;
        rig.store.plan(Operation::Reopen, Fault::NotDoneUnknown);
        rig.store.plan(Operation::Reopen, Fault::Late(Span::from_secs(2)));
        let commit = async {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            rig.store.reopen(id, expected, NOW).await.unwrap();
            if is_delivered {
                rig.complete_all().await;
            }
        };
        let (answer, ()) = tokio::join!(rig.commands.retry(id, expected), commit);
        let status = if is_delivered { Status::Completed } else { Status::Pending };
        let timer = answer.unwrap();
        assert_eq!((timer.status, timer.revision), (status, 2), "{expected:?}");
    }
}
