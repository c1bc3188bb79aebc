use domain::{Missed, Span, Status, Timer, TimerId};
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

/// Runs a command whose answer is lost and whose outcome is read back only after another client has acted.
async fn overtaken<T>(rig: &Rig, command: impl Future<Output = T>, reads_before: usize, by: impl Future<Output = ()>) -> T {
    for _ in 0..reads_before {
        rig.store.plan_none(Operation::Get);
    }
    rig.store.plan(Operation::Get, Fault::Late(Span::from_secs(1)));
    let meanwhile = async {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        rig.clock.advance(Span::from_secs(1));
        by.await;
    };
    tokio::join!(command, meanwhile).0
}

#[tokio::test(start_paused = true)]
async fn what_came_after_a_pause_whose_answer_was_lost_is_not_taken_for_a_refusal() {
    for (fault, by, expected, answer) in [
        // It was made, and another client has resumed it: the timer no longer shows that.
        (Fault::DoneUnknown, "resume", Some(1), "unknown"),
        (Fault::DoneUnknown, "cancel", Some(1), "unknown"),
        (Fault::DoneUnknown, "nothing", Some(1), "paused"),
        // It was not made, and another client came first.
        (Fault::NotDoneUnknown, "update", Some(1), "timer has revision 2, not 1"),
        (Fault::NotDoneUnknown, "cancel", Some(1), "cannot pause timer with status 'canceled'"),
        (Fault::NotDoneUnknown, "update", None, "paused"),
    ] {
        let rig = Rig::new();
        let id = rig.created().await;
        rig.store.plan(Operation::Pause, fault);
        let pause = rig.commands.pause(id, expected, None);
        let paused = overtaken(&rig, pause, 0, act(&rig, id, by)).await;
        assert_eq!(told(paused), answer, "{fault:?} {by} {expected:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_resume_whose_answer_was_lost_is_told_only_if_it_was_made() {
    for (fault, by, expected, answer) in [
        (Fault::DoneUnknown, "nothing", Some(2), "pending"),
        (Fault::DoneUnknown, "cancel", Some(2), "unknown"),
        (Fault::DoneUnknown, "cancel", None, "canceled"),
        (Fault::DoneUnknown, "update", Some(2), "unknown"),
        (Fault::DoneUnknown, "update", None, "pending"),
        // Paused anew by another client: that pause is not ended.
        (Fault::DoneUnknown, "pause", None, "unknown"),
        (Fault::NotDoneUnknown, "cancel", Some(2), "cannot resume timer with status 'canceled'"),
        (Fault::NotDoneUnknown, "cancel", None, "cannot resume timer with status 'canceled'"),
        (Fault::NotDoneUnknown, "resume", Some(2), "timer has revision 3, not 2"),
        (Fault::NotDoneUnknown, "resume", None, "pending"),
        (Fault::NotDoneUnknown, "update", Some(2), "timer has revision 3, not 2"),
        (Fault::NotDoneUnknown, "update", None, "pending"),
    ] {
        let rig = Rig::new();
        let id = rig.created().await;
        rig.commands.pause(id, None, None).await.unwrap();
        rig.store.plan(Operation::Resume, fault);
        let resume = rig.commands.resume(id, expected, Missed::Fire);
        let resumed = overtaken(&rig, resume, 1, act(&rig, id, by)).await;
        assert_eq!(told(resumed), answer, "{fault:?} {by} {expected:?}");
    }
}

async fn act(rig: &Rig, id: TimerId, what: &str) {
    let patch = Patch { correlation_id: crate::Field::Set(domain::CorrelationId::parse("c").unwrap()), ..Patch::default() };
    let acted = match what {
        "pause" => rig.commands.pause(id, None, None).await,
        "resume" => rig.commands.resume(id, None, Missed::Fire).await,
        "cancel" => rig.commands.cancel(id, None).await,
        "update" => rig.commands.update(id, &patch, None).await,
        _ => rig.commands.get(id).await,
    };
    acted.unwrap();
}

fn told(answer: Result<Timer, CommandError>) -> String {
    match answer {
        Ok(timer) => timer.status.to_string(),
        Err(CommandError::Unknown(_)) => "unknown".to_owned(),
        Err(error) => error.to_string(),
    }
}
