use domain::{Expiry, Next, Options, Span, Status};
use store::Operation;
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
    let reopened = rig.commands.retry(id).await.unwrap();
    assert_eq!((reopened.status, reopened.attempt, reopened.last_error.as_ref()), (Status::Pending, 0, None));
    assert_eq!(reopened.webhook_id(), before.webhook_id());
    let nudged = rig.nudged.lock().unwrap().clone();
    assert_eq!(nudged.iter().map(|entry| (entry.id, entry.at)).collect::<Vec<_>>(), [(id, NOW)]);
}

#[tokio::test]
async fn what_has_not_failed_is_not_tried_again() {
    let rig = Rig::new();
    let id = rig.created().await;
    assert_eq!(rig.commands.retry(id).await.unwrap_err().to_string(), "cannot retry timer with status 'pending'");
    rig.complete_all().await;
    assert_eq!(rig.commands.retry(id).await.unwrap_err().to_string(), "cannot retry timer with status 'completed'");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_read_back() {
    for fault in [Fault::DoneUnknown, Fault::NotDoneUnknown] {
        let (rig, id) = failed().await;
        rig.store.plan(Operation::Reopen, fault);
        // The read before the retry succeeds, the first one after it fails.
        rig.store.plan_none(Operation::Get);
        rig.store.plan(Operation::Get, Fault::NotDone);
        let reopened = rig.commands.retry(id).await.unwrap();
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
        let answer = rig.commands.retry(id).await;
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
