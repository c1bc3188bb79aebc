use commands::{OperationId, OperationState};
use domain::TimerId;

use crate::rig::{NOW, Rig};

const TIMER: &str = r#"{"delay":"1h","callback":{"type":"http","url":"http://a"}}"#;

async fn bulk(rig: &Rig, body: &str) -> crate::rig::Reply {
    rig.call("POST", "/timers/bulk", body).await
}

#[tokio::test]
async fn a_dry_run_counts_and_the_request_changes() {
    let rig = Rig::new();
    for _ in 0..3 {
        rig.created(TIMER).await;
    }
    let reply = bulk(&rig, r#"{"action":"cancel","filter":{"status":"pending"},"dry_run":true}"#).await;
    assert_eq!((reply.status.as_u16(), reply.message().as_str()), (200, "dry run: nothing was changed"), "{}", reply.text);
    assert_eq!((reply.data("matched"), reply.data("matched_is_estimate")), (3.into(), false.into()));
    assert_eq!(reply.data("by_status"), serde_json::json!({"pending": 3}));
    assert_eq!(reply.data("examples").as_array().unwrap().len(), 3);
    let refused = bulk(&rig, r#"{"action":"cancel","filter":{"status":"pending"},"expected_max":2}"#).await.refused(409, 6);
    assert!(refused.starts_with("more than 2 timers match"), "{refused}");
    let shift = r#"{"action":"reschedule","filter":{"status":"pending"},"set":{"shift":"+1h"},"expected_max":3}"#;
    let reply = bulk(&rig, shift).await;
    assert_eq!((reply.status.as_u16(), reply.message().as_str()), (200, "timers changed successfully"), "{}", reply.text);
    assert_eq!((reply.data("changed"), reply.data("skipped")), (3.into(), 0.into()));
    let listed = rig.call("GET", "/timers", "").await.json();
    assert_eq!(listed["data"]["timers"][0]["execute_at"], "2030-01-01T02:00:00Z");
}

#[tokio::test]
async fn what_is_wrong_is_named() {
    let rig = Rig::new();
    for (body, refusal) in [
        (r#"{"filter":{},"expected_max":1}"#, "action is required"),
        (r#"{"action":"cancel","expected_max":1}"#, "filter is required"),
        (r#"{"action":"cancel","filter":{}}"#, "expected_max is required"),
        (r#"{"action":"cancel","filter":{},"dry_run":false}"#, "expected_max is required"),
        (
            r#"{"action":"explode","filter":{},"expected_max":1}"#,
            "action must be one of cancel, fire, retry, reschedule, pause, resume, expire, delete",
        ),
        (r#"{"action":"reschedule","filter":{},"expected_max":1}"#, "set is required for reschedule"),
        (
            r#"{"action":"fire","filter":{},"set":{"spread":"1h"},"expected_max":1}"#,
            "set must only be given for reschedule and retry",
        ),
        (r#"{"action":"retry","filter":{},"set":{"shift":"+1h"},"expected_max":1}"#, "set must be spread for retry"),
        (
            r#"{"action":"reschedule","filter":{},"set":{"spread":"1h","shift":"+1h"},"expected_max":1}"#,
            "set must be an object with exactly one of execute_at, shift and spread",
        ),
        (
            r#"{"action":"reschedule","filter":{},"set":{"shift":"1h"},"expected_max":1}"#,
            "set.shift must be a duration with a sign such as +1h or -10m",
        ),
        (r#"{"action":"cancel","filter":{"x":"y"},"expected_max":1}"#, "filter.'x' is not a known field"),
        (
            r#"{"action":"cancel","filter":{"key_prefix":"a-","key_prefix":""},"expected_max":1}"#,
            "filter.key_prefix must not be given twice",
        ),
        (r#"{"action":"cancel","filter":{},"dry_run":1}"#, "dry_run must be true or false"),
    ] {
        assert_eq!(bulk(&rig, body).await.refused(400, 2), refusal, "{body}");
    }
}

#[tokio::test]
async fn a_dry_run_is_refused_what_the_request_is_refused() {
    let rig = Rig::new();
    for how in ["\"dry_run\":true", "\"expected_max\":1"] {
        let past = format!(r#"{{"action":"reschedule","filter":{{}},"set":{{"execute_at":"2029-12-31T12:00:00Z"}},{how}}}"#);
        assert_eq!(bulk(&rig, &past).await.refused(400, 2), "set.execute_at must be in the future", "{past}");
    }
}

#[tokio::test]
async fn operations_are_listed_shown_and_stopped() {
    let rig = Rig::new();
    let timers = vec![TIMER; 600].join(",");
    for _ in 0..2 {
        assert_eq!(rig.call("POST", "/timers/batch", &format!(r#"{{"timers":[{timers}]}}"#)).await.status.as_u16(), 200);
    }
    let reply = bulk(&rig, r#"{"action":"pause","filter":{"status":"pending"},"expected_max":5000}"#).await;
    assert_eq!((reply.status.as_u16(), reply.message().as_str()), (202, "operation started"), "{}", reply.text);
    let operation = reply.data("operation");
    assert_eq!(
        (&operation["action"], &operation["state"], &operation["matched"]),
        (&"pause".into(), &"running".into(), &1200.into())
    );
    assert_eq!((&operation["by"], &operation["finished_at"]), (&"administrator".into(), &serde_json::Value::Null));
    let path = format!("/operations/{}", operation["id"].as_str().unwrap());
    assert_eq!(rig.call("GET", &path, "").await.json()["data"], operation);
    assert_eq!(rig.call("GET", "/operations", "").await.json()["data"]["operations"], serde_json::json!([operation]));
    let stopped = rig.call("DELETE", &path, "").await;
    assert_eq!((stopped.message().as_str(), stopped.data("state")), ("operation stopped", "stopped".into()));
    assert_eq!(rig.call("DELETE", &path, "").await.message(), "operation stopped");

    let another = bulk(&rig, r#"{"action":"pause","filter":{"status":"pending"},"expected_max":5000}"#).await.data("operation");
    let id = TimerId::parse("id", another["id"].as_str().unwrap()).unwrap();
    assert!(rig.store.finish_operation(OperationId(id), None, OperationState::Done, None, NOW).await.unwrap());
    let ended = rig.call("DELETE", &format!("/operations/{id}"), "").await;
    assert_eq!((ended.message().as_str(), ended.data("state")), ("operation has ended already", "done".into()));
    let unknown = "/operations/01890a5d-ac96-774b-bcce-b302099a8057";
    assert_eq!(rig.call("GET", unknown, "").await.refused(404, 3), "operation not found");
    assert_eq!(rig.call("GET", "/operations/x", "").await.refused(400, 2), "id must be a UUID");
}
