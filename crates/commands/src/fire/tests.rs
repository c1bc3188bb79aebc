use domain::{OnConflict, Span, Status};
use store::Operation;
use store_testing::Fault;

use crate::{
    CommandError, Outcome,
    rig::{NOW, Rig, keyed},
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
