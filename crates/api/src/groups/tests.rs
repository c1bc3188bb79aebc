use serde_json::json;

use crate::rig::Rig;

#[tokio::test]
async fn a_group_is_counted_and_canceled() {
    let rig = Rig::new();
    for key in ["a", "b", "c"] {
        let timer = format!(r#"{{"delay":"1h","callback":{{"type":"http","url":"http://a"}},"key":"{key}","group":"x/y é"}}"#);
        let id = rig.created(&timer).await;
        assert_eq!(rig.get(&format!("/timers/{id}")).await.data("group"), "x/y é");
    }
    let path = "/groups/default/x%2Fy%20%C3%A9";
    let counted = |pending: u64, canceled: u64| {
        json!({
            "namespace": "default", "group": "x/y é", "total": 3, "total_is_estimate": false,
            "by_status": {"pending": pending, "executing": 0, "completed": 0, "failed": 0, "canceled": canceled, "paused": 0, "expired": 0},
        })
    };
    assert_eq!(rig.get(path).await.json()["data"], counted(3, 0));
    let reply = rig.call("DELETE", path, "").await;
    assert_eq!((reply.status.as_u16(), reply.message().as_str()), (200, "group canceled successfully"), "{}", reply.text);
    assert_eq!(reply.json()["data"], json!({"matched": 3, "canceled": 3}));
    assert_eq!(rig.get(path).await.json()["data"], counted(0, 3));
    assert_eq!(rig.get("/groups/default/unknown").await.data("total"), 0);
    assert_eq!(rig.get("/groups/default/%ff").await.refused(400, 2), "namespace and group must be valid UTF-8");
    assert_eq!(rig.get("/groups/default/%00").await.refused(400, 2), "group must not contain control characters");
}

#[tokio::test]
async fn a_key_that_may_only_read_counts_a_group_and_cancels_none_of_it() {
    let rig = Rig::new();
    let timer = r#"{"delay":"1h","callback":{"type":"http","url":"http://a"},"namespace":"a","key":"k","group":"g","on_conflict":"reject"}"#;
    let id = rig.created(timer).await;
    let reader = rig.issued(r#"["a"]"#, "read").await;
    assert_eq!(rig.call_with(&reader, "GET", "/groups/a/g", "").await.data("total"), 1);
    assert_eq!(rig.call_with(&reader, "DELETE", "/groups/a/g", "").await.refused(403, 4), "this key may only read");
    assert_eq!(rig.get(&format!("/timers/{id}")).await.data("status"), "pending");
    let stranger = rig.issued(r#"["b"]"#, "write").await;
    for method in ["GET", "DELETE"] {
        let refusal = rig.call_with(&stranger, method, "/groups/a/g", "").await.refused(403, 4);
        assert_eq!(refusal, "namespace must be one that this key opens", "{method}");
    }
}
