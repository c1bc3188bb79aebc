use store::Operation;
use store_testing::Fault;

use super::*;
use crate::rig::Rig;

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_read_back() {
    for faults in
        [vec![Fault::DoneUnknown], vec![Fault::NotDoneUnknown], vec![Fault::NotDoneUnknown, Fault::NotDone, Fault::DoneUnknown]]
    {
        let rig = Rig::new();
        let id = rig.created().await;
        for fault in &faults {
            rig.store.plan(Operation::Cancel, *fault);
            rig.store.plan(Operation::Get, Fault::NotDone);
        }
        let timer = rig.commands.cancel(id, None).await.unwrap();
        assert_eq!(timer.status, Status::Canceled, "{faults:?}");
        assert_eq!(rig.commands.get(id).await.unwrap().status, Status::Canceled);
    }
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_fired_while_the_answer_was_lost_is_not_called_canceled() {
    let rig = Rig::new();
    let id = rig.created().await;
    rig.complete_all().await;
    rig.store.plan(Operation::Cancel, Fault::NotDoneUnknown);
    let refused = rig.commands.cancel(id, None).await.unwrap_err();
    assert_eq!(refused.to_string(), "cannot cancel timer with status 'completed'");
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_cannot_be_read_back_is_called_unknown() {
    let rig = Rig::new();
    let id = rig.created().await;
    rig.store.plan(Operation::Cancel, Fault::DoneUnknown);
    for _ in 0..1000 {
        rig.store.plan(Operation::Get, Fault::NotDone);
    }
    assert!(matches!(rig.commands.cancel(id, None).await, Err(CommandError::Unknown(_))));
}

#[tokio::test]
async fn a_timer_that_is_not_there_cannot_be_canceled() {
    let rig = Rig::new();
    let id = TimerId::random(crate::rig::NOW);
    assert!(matches!(rig.commands.cancel(id, None).await, Err(CommandError::NotFound)));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_of_one_revision_whose_answer_was_lost_is_read_back() {
    for fault in [Fault::DoneUnknown, Fault::NotDoneUnknown] {
        let rig = Rig::new();
        let id = rig.created().await;
        rig.store.plan(Operation::Cancel, fault);
        assert_eq!(rig.commands.cancel(id, Some(1)).await.unwrap().status, Status::Canceled, "{fault:?}");
    }
    let rig = Rig::new();
    let id = rig.created().await;
    rig.commands.fire(id, None).await.unwrap();
    rig.store.plan(Operation::Cancel, Fault::NotDoneUnknown);
    assert_eq!(rig.commands.cancel(id, Some(1)).await.unwrap_err().to_string(), "timer has revision 2, not 1");
    assert_eq!(rig.commands.get(id).await.unwrap().status, Status::Pending);
}
