use domain::{Missed, Span, Status, TimerId};
use store::Operation;
use store_testing::Fault;

use crate::{
    CommandError, Patch,
    rig::{NOW, Rig},
};

#[tokio::test]
async fn a_paused_timer_is_not_due_and_goes_on_when_it_is_resumed() {
    let rig = Rig::new();
    let id = rig.created().await;
    let paused = rig.commands.pause(id, None, Some("wait")).await.unwrap();
    assert_eq!((paused.status, paused.revision), (Status::Paused, 2));
    assert_eq!(rig.commands.pause(id, None, None).await.unwrap(), paused, "a second pause changes nothing");
    assert!(rig.claim_all().await.is_empty());
    rig.clock.advance(Span::from_secs(7200));
    let now = NOW.saturating_add(Span::from_secs(7200));
    rig.nudged.lock().unwrap().clear();
    let resumed = rig.commands.resume(id, None, Missed::Fire).await.unwrap();
    assert_eq!((resumed.status, resumed.execute_at), (Status::Pending, paused.execute_at));
    assert_eq!(rig.nudged.lock().unwrap().iter().map(|entry| (entry.id, entry.at)).collect::<Vec<_>>(), [(id, now)]);
    assert_eq!(rig.commands.resume(id, None, Missed::Expire).await.unwrap(), resumed, "a second resume changes nothing");
    assert_eq!(rig.claim_all().await.len(), 1);
}

#[tokio::test]
async fn what_is_paused_can_be_changed_and_canceled_but_not_fired() {
    let rig = Rig::new();
    let id = rig.created().await;
    rig.commands.pause(id, None, None).await.unwrap();
    let patch = Patch { correlation_id: crate::Field::Set(domain::CorrelationId::parse("c").unwrap()), ..Patch::default() };
    assert_eq!(rig.commands.update(id, &patch, None).await.unwrap().status, Status::Paused);
    assert_eq!(rig.commands.fire(id, None).await.unwrap_err().to_string(), "cannot fire timer with status 'paused'");
    assert_eq!(rig.commands.cancel(id, None).await.unwrap().status, Status::Canceled);
    assert_eq!(rig.commands.pause(id, None, None).await.unwrap_err().to_string(), "cannot pause timer with status 'canceled'");
    let refusal = rig.commands.resume(id, None, Missed::Fire).await.unwrap_err();
    assert_eq!(refusal.to_string(), "cannot resume timer with status 'canceled'");
}

#[tokio::test]
async fn another_revision_is_told_apart() {
    let rig = Rig::new();
    let id = rig.created().await;
    assert_eq!(rig.commands.pause(id, Some(7), None).await.unwrap_err().to_string(), "timer has revision 1, not 7");
    rig.commands.pause(id, Some(1), None).await.unwrap();
    assert_eq!(rig.commands.pause(id, Some(1), None).await.unwrap_err().to_string(), "timer has revision 2, not 1");
    let stale = rig.commands.resume(id, Some(1), Missed::Fire).await.unwrap_err();
    assert_eq!(stale.to_string(), "timer has revision 2, not 1");
    rig.commands.resume(id, Some(2), Missed::Fire).await.unwrap();
    let unknown = TimerId::random(NOW);
    assert!(matches!(rig.commands.pause(unknown, None, None).await, Err(CommandError::NotFound)));
    assert!(matches!(rig.commands.resume(unknown, None, Missed::Fire).await, Err(CommandError::NotFound)));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_read_back() {
    for fault in [Fault::DoneUnknown, Fault::NotDoneUnknown] {
        let rig = Rig::new();
        let id = rig.created().await;
        rig.store.plan(Operation::Pause, fault);
        let paused = rig.commands.pause(id, Some(1), Some("n")).await.unwrap();
        assert_eq!((paused.status, paused.revision), (Status::Paused, 2), "{fault:?}");
        rig.store.plan(Operation::Resume, fault);
        let resumed = rig.commands.resume(id, Some(2), Missed::Fire).await.unwrap();
        assert_eq!((resumed.status, resumed.revision), (Status::Pending, 3), "{fault:?}");
    }
}
