use serde_json::{Value, json};

use crate::rig::Rig;

const FULL: &str = r#"{"delay":"1h","callback":{"type":"http","url":"http://a.example/","payload":{"b":1.10}},
    "metadata":{"m":1},"correlation_id":"c","retry_policy":{"max_retries":1},"delivery":"at_most_once"}"#;

async fn shown(rig: &Rig, id: &str) -> Value {
    rig.get(&format!("/timers/{id}")).await.json()["data"].clone()
}

#[tokio::test]
async fn only_what_is_named_changes() {
    for (body, changes) in [
        ("{}", json!({})),
        (r#"{"execute_at":"2030-01-01T02:00:00Z"}"#, json!({"execute_at": "2030-01-01T02:00:00Z", "time_left": 7200})),
        (r#"{"delay":"5s"}"#, json!({"execute_at": "2030-01-01T00:00:05Z", "time_left": 5})),
        (r#"{"metadata":null}"#, json!({"metadata": null})),
        (r#"{"metadata":[2]}"#, json!({"metadata": [2]})),
        (r#"{"correlation_id":null}"#, json!({"correlation_id": null})),
        (r#"{"correlation_id":"d"}"#, json!({"correlation_id": "d"})),
        (r#"{"retry_policy":null}"#, json!({"retry_policy": null})),
        (r#"{"delivery":"at_least_once"}"#, json!({"delivery": "at_least_once"})),
        (
            r#"{"callback":{"type":"http","url":"http://b.example/"}}"#,
            json!({"callback_config": {"type": "http", "url": "http://b.example/", "timeout": "30s", "protocol": "webhook"}}),
        ),
    ] {
        let rig = Rig::new();
        let id = rig.created(FULL).await;
        let mut expected = shown(&rig, &id).await;
        let reply = rig.call("PUT", &format!("/timers/{id}"), body).await;
        assert_eq!((reply.status.as_u16(), reply.message().as_str()), (200, "timer updated successfully"), "{body}");
        for (field, value) in changes.as_object().unwrap() {
            expected[field] = value.clone();
        }
        expected["revision"] = if body == "{}" { 1.into() } else { 2.into() };
        assert_eq!(shown(&rig, &id).await, expected, "{body}");
        assert_eq!(rig.nudged.lock().unwrap().len(), if body == "{}" { 1 } else { 2 });
    }
}

#[tokio::test]
async fn a_change_of_something_else_may_come_at_the_last_moment() {
    let rig = Rig::new();
    let id = rig.created(FULL).await;
    rig.clock.advance(domain::Span::from_secs(3599));
    let reply = rig.call("PUT", &format!("/timers/{id}"), r#"{"metadata":2}"#).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert_eq!(reply.data("updated_at"), "2030-01-01T00:59:59Z");
}

#[tokio::test]
async fn every_bad_change_is_refused_by_name_and_changes_nothing() {
    let rig = Rig::new();
    let id = rig.created(FULL).await;
    let before = shown(&rig, &id).await;
    for (body, start) in [
        ("[]", "the body must be a JSON object"),
        ("{", "the body is not valid JSON"),
        (r#"{"namespace":"n"}"#, "namespace cannot be changed"),
        (r#"{"key":"k"}"#, "key cannot be changed"),
        (r#"{"on_conflict":"keep"}"#, "on_conflict cannot be changed"),
        (r#"{"namespace":null}"#, "namespace cannot be changed"),
        (r#"{"id":"01890a5d-ac96-774b-bcce-b302099a8057"}"#, "id cannot be changed"),
        (r#"{"status":"pending"}"#, "'status' is not a known field"),
        (r#"{"seconds":5}"#, "'seconds' is not a known field"),
        (r#"{"metadata":1,"metadata":2}"#, "metadata must not be given twice"),
        (r#"{"execute_at":null}"#, "execute_at must be a string"),
        (r#"{"delay":null}"#, "delay must be a string"),
        (r#"{"callback":null}"#, "callback must be an object"),
        (r#"{"delivery":null}"#, "delivery must be a string"),
        (r#"{"delivery":"x"}"#, "delivery must be at_least_once or at_most_once"),
        (r#"{"execute_at":"2030-01-01T00:00:01Z"}"#, "execute_at must be in the future"),
        (r#"{"execute_at":"2029-01-01T00:00:00Z"}"#, "execute_at must be in the future"),
        (r#"{"execute_at":"2030-01-02T00:00:00Z","delay":"1h"}"#, "delay must not be given together with execute_at"),
        (r#"{"delay":"1s"}"#, "delay must be at least 5s"),
        (r#"{"delay":"400d"}"#, "delay must not be more than 365d ahead"),
        (r#"{"callback":{"type":"http"}}"#, "callback.url is required"),
        (r#"{"callback":{"url":"http://b"}}"#, "callback.type is required"),
        (r#"{"callback":{"type":"nats","topic":"a"}}"#, "callback.type must be http: no NATS server is configured"),
        (r#"{"callback":{"type":"http","url":"http://169.254.169.254"}}"#, "callback.url must not reach a denied address"),
        (r#"{"correlation_id":""}"#, "correlation_id must have 1 to 255 characters"),
        (r#"{"correlation_id":5}"#, "correlation_id must be a string"),
        (r#"{"retry_policy":{"max_retries":1001}}"#, "retry_policy.max_retries must be a whole number from 0 to 1000"),
        (r#"{"retry_policy":[]}"#, "retry_policy "),
    ] {
        let message = rig.call("PUT", &format!("/timers/{id}"), body).await.refused(400, 2);
        assert!(message.starts_with(start), "{body}: {message}");
    }
    assert_eq!(shown(&rig, &id).await, before);
}

#[tokio::test]
async fn a_timer_that_is_not_pending_cannot_be_changed() {
    for stage in ["executing", "completed", "canceled"] {
        let rig = Rig::new();
        let id = rig.created(FULL).await;
        match stage {
            "executing" => drop(rig.claim_all().await),
            "completed" => rig.complete_all().await,
            _ => drop(rig.call("DELETE", &format!("/timers/{id}"), "").await),
        }
        let reply = rig.call("PUT", &format!("/timers/{id}"), r#"{"metadata":2}"#).await;
        assert_eq!(reply.refused(400, 2), format!("cannot update timer with status '{stage}'"));
    }
}
