use serde_json::json;

use crate::{
    rig::Rig,
    v1::tests::{ALICE, bring_to, created},
};

const CALLS: [(&str, &str, &str); 2] =
    [("DELETE", "/api/v1/timers/g/a", ""), ("POST", "/api/v1/timers/delete", r#"{"namespace":"g","timerId":"a"}"#)];

#[tokio::test]
async fn a_deleted_timer_never_fires_and_deleting_it_again_is_no_error() {
    for (method, path, body) in CALLS {
        let rig = Rig::new();
        created(&rig, ALICE).await;
        for _ in 0..2 {
            let reply = rig.call(method, path, body).await;
            assert_eq!((reply.status.as_u16(), reply.text.as_str()), (204, ""));
            assert!(!reply.headers.contains_key("content-type"));
        }
        assert!(rig.claim_all().await.is_empty());
        assert_eq!(rig.get("/api/v1/timers/g/a").await.json()["status"], "canceled");
    }
}

#[tokio::test]
async fn a_timer_that_is_being_delivered_or_has_ended_cannot_be_deleted() {
    for (method, path, body) in CALLS {
        for status in ["executing", "completed", "failed"] {
            let rig = Rig::new();
            created(&rig, ALICE).await;
            bring_to(&rig, status).await;
            let error = rig.call(method, path, body).await.refused_v1(409, "TIMER_NOT_PENDING");
            assert_eq!(error["message"], format!("cannot delete timer with status '{status}'"));
            assert_eq!(error["details"], json!({"status": status}));
            assert_eq!(rig.get("/api/v1/timers/g/a").await.json()["status"], status);
        }
    }
}

#[tokio::test]
async fn deleting_in_one_namespace_leaves_the_others_alone() {
    let rig = Rig::new();
    created(&rig, ALICE).await;
    created(&rig, &ALICE.replace(r#""groupId":"g""#, r#""groupId":"h""#)).await;
    assert_eq!(rig.call("DELETE", "/api/v1/timers/g/a", "").await.status, 204);
    assert_eq!(rig.get("/api/v1/timers/h/a").await.json()["status"], "pending");
}
