use crate::rig::Rig;

const TIMER: &str = r#"{"seconds":90,"url":"http://a"}"#;

#[tokio::test]
async fn a_pending_timer_is_canceled_and_canceling_it_again_is_no_error() {
    let rig = Rig::new();
    let id = rig.created(TIMER).await;
    for _ in 0..2 {
        let reply = rig.call("DELETE", &format!("/timers/{id}"), "").await;
        assert_eq!((reply.status.as_u16(), reply.message().as_str()), (200, "timer canceled successfully"));
        assert_eq!((reply.data("id"), reply.data("status")), (id.clone().into(), "canceled".into()));
    }
    assert!(rig.claim_all().await.is_empty());
}

#[tokio::test]
async fn a_timer_that_is_not_pending_cannot_be_canceled() {
    let rig = Rig::new();
    let id = rig.created(TIMER).await;
    rig.claim_all().await;
    let reply = rig.call("DELETE", &format!("/timers/{id}"), "").await;
    assert_eq!(reply.refused(400, 2), "cannot cancel timer with status 'executing'");

    let rig = Rig::new();
    let id = rig.created(TIMER).await;
    rig.complete_all().await;
    let reply = rig.call("DELETE", &format!("/timers/{id}"), "").await;
    assert_eq!(reply.refused(400, 2), "cannot cancel timer with status 'completed'");
}
