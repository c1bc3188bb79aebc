use domain::{Clock, Next, Span};

use crate::rig::{NOW, Rig};

const TIMER: &str = r#"{"seconds":90,"url":"http://a"}"#;

#[tokio::test]
async fn a_failed_timer_is_tried_again_at_once_for_the_same_due_time() {
    let rig = Rig::new();
    let id = rig.created(TIMER).await;
    rig.clock.advance(Span::from_secs(100));
    rig.settle_all(&Next::Failed { at: rig.clock.now(), error: "out of stock".to_owned() }).await;
    let path = format!("/timers/{id}/retry");
    let reply = rig.call("POST", &path, "").await;
    assert_eq!((reply.status.as_u16(), reply.message().as_str()), (200, "timer is tried again"), "{}", reply.text);
    assert_eq!((reply.data("id"), reply.data("status")), (id.clone().into(), "pending".into()));
    assert_eq!(reply.data("execute_at"), "2030-01-01T00:01:30Z");
    assert_eq!(rig.nudged.lock().unwrap().last().unwrap().at, NOW.saturating_add(Span::from_secs(100)));
    let detail = rig.get(&format!("/timers/{id}")).await;
    assert_eq!((detail.data("attempt"), detail.data("last_error")), (0.into(), serde_json::Value::Null));
    assert_eq!(rig.call("POST", &path, "").await.refused(400, 2), "cannot retry timer with status 'pending'");
    assert_eq!(rig.claim_all().await.len(), 1);
}

#[tokio::test]
async fn a_timer_that_has_not_failed_cannot_be_retried() {
    let rig = Rig::new();
    let id = rig.created(TIMER).await;
    rig.complete_all().await;
    let reply = rig.call("POST", &format!("/timers/{id}/retry"), "").await;
    assert_eq!(reply.refused(400, 2), "cannot retry timer with status 'completed'");
}

#[tokio::test]
async fn only_a_timer_can_be_retried() {
    let rig = Rig::new();
    assert_eq!(rig.call("POST", "/timers/x/retry", "").await.refused(400, 2), "id must be a UUID");
    let missing = "/timers/01890a5d-ac96-774b-bcce-b302099a8057/retry";
    assert_eq!(rig.call("POST", missing, "").await.refused(404, 3), "timer not found");
}
