use domain::Span;

use crate::rig::{NOW, Rig};

const TIMER: &str = r#"{"delay":"1h","callback":{"type":"http","url":"http://a"},"key":"k"}"#;

#[tokio::test]
async fn a_pending_timer_is_due_now_and_the_scheduler_learns_of_it() {
    let rig = Rig::new();
    let id = rig.created(TIMER).await;
    rig.clock.advance(Span::from_secs(10));
    let reply = rig.call("POST", &format!("/timers/{id}/fire"), "").await;
    assert_eq!((reply.status.as_u16(), reply.message().as_str()), (200, "timer fires now"), "{}", reply.text);
    assert_eq!((reply.data("id"), reply.data("status")), (id.clone().into(), "pending".into()));
    assert_eq!((reply.data("execute_at"), reply.data("time_left")), ("2030-01-01T00:00:10Z".into(), 0.into()));
    assert_eq!(rig.nudged.lock().unwrap().last().unwrap().at, NOW.saturating_add(Span::from_secs(10)));
    // It is still the timer that was asked for.
    let again = rig.call("POST", "/timers", TIMER).await;
    assert_eq!((again.status.as_u16(), again.data("id")), (200, id.into()));
}

#[tokio::test]
async fn a_timer_that_is_not_pending_cannot_be_fired() {
    let rig = Rig::new();
    let id = rig.created(TIMER).await;
    let path = format!("/timers/{id}/fire");
    rig.claim_all().await;
    assert_eq!(rig.call("POST", &path, "").await.refused(400, 2), "cannot fire timer with status 'executing'");

    let rig = Rig::new();
    let id = rig.created(TIMER).await;
    let path = format!("/timers/{id}/fire");
    rig.complete_all().await;
    assert_eq!(rig.call("POST", &path, "").await.refused(400, 2), "cannot fire timer with status 'completed'");
}

#[tokio::test]
async fn only_a_timer_can_be_fired() {
    let rig = Rig::new();
    assert_eq!(rig.call("POST", "/timers/x/fire", "").await.refused(400, 2), "id must be a UUID");
    let missing = "/timers/01890a5d-ac96-774b-bcce-b302099a8057/fire";
    assert_eq!(rig.call("POST", missing, "").await.refused(404, 3), "timer not found");
}
