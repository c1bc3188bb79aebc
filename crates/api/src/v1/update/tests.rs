use serde_json::{Value, json};

use crate::{
    rig::Rig,
    v1::tests::{ALICE, bring_to, created},
};

const FULL: &str = r#"{"id":"a","groupId":"g","executeAt":"2030-01-01T01:00:00Z","callbackUrl":"http://a.example/","payload":{"b":1.10},
    "retryPolicy":{"maxRetries":1},"callbackTimeout":"10s"}"#;

/// The same change through both generations.
fn both(body: &str) -> [(&'static str, &'static str, String); 2] {
    let rest = body.strip_prefix('{').unwrap();
    let comma = if rest == "}" { "" } else { "," };
    let selected = format!(r#"{{"namespace":"g","timerId":"a"{comma}{rest}"#);
    [("PUT", "/api/v1/timers/g/a", body.to_owned()), ("POST", "/api/v1/timers/update", selected)]
}

async fn shown(rig: &Rig) -> Value {
    rig.get("/api/v1/timers/g/a").await.json()
}

#[tokio::test]
async fn only_what_is_named_changes() {
    for (body, changes) in [
        ("{}", json!({})),
        (r#"{"executeAt":"2030-01-01T02:00:00Z"}"#, json!({"executeAt": "2030-01-01T02:00:00Z"})),
        (r#"{"executeAt":"2030-01-01T00:00:00Z"}"#, json!({"executeAt": "2030-01-01T00:00:00Z"})),
        (r#"{"callbackUrl":"http://b.example/"}"#, json!({"callbackUrl": "http://b.example/"})),
        (r#"{"payload":{"userId":"user123"}}"#, json!({"payload": {"userId": "user123"}})),
        (r#"{"payload":null}"#, json!({"payload": null})),
        (r#"{"retryPolicy":null}"#, json!({"retryPolicy": null})),
        (
            r#"{"retryPolicy":{"maxInterval":"1h"}}"#,
            json!({"retryPolicy": {"maxRetries": 3, "initialInterval": "30s", "backoffMultiplier": 2.0, "maxInterval": "1h", "maxRetryAttemptsDuration": null}}),
        ),
        (r#"{"callbackTimeout":"250ms"}"#, json!({"callbackTimeout": "250ms", "callbackTimeoutSeconds": 0.25})),
        (r#"{"callbackTimeoutSeconds":20}"#, json!({"callbackTimeout": "20s", "callbackTimeoutSeconds": 20})),
        (
            r#"{"executeAt":"2030-01-01T02:00:00Z","callbackUrl":"http://b.example/","payload":2}"#,
            json!({"executeAt": "2030-01-01T02:00:00Z", "callbackUrl": "http://b.example/", "payload": 2}),
        ),
    ] {
        for (method, path, sent) in both(body) {
            let rig = Rig::new();
            let mut expected = created(&rig, FULL).await;
            let reply = rig.call(method, path, &sent).await;
            assert_eq!(reply.status, 200, "{method} {body}: {}", reply.text);
            for (field, value) in changes.as_object().unwrap() {
                expected[field] = value.clone();
            }
            assert_eq!(reply.json(), expected, "{method} {body}");
            assert_eq!(shown(&rig).await, expected, "{method} {body}");
        }
    }
}

#[tokio::test]
async fn a_new_payload_survives_to_the_byte() {
    let text = r#"{"b":1.10, "a":12345678901234567890,"a":2}"#;
    for (method, path, sent) in both(&format!(r#"{{"payload":{text}}}"#)) {
        let rig = Rig::new();
        created(&rig, FULL).await;
        let reply = rig.call(method, path, &sent).await;
        assert!(reply.text.contains(&format!(r#""payload":{text},"retryPolicy""#)), "{}", reply.text);
    }
}

#[tokio::test]
async fn what_this_dialect_has_no_words_for_stays_as_it_is() {
    let rig = Rig::new();
    let id = rig
        .created(
            r#"{"delay":"1h","namespace":"g","key":"a","metadata":{"m":1},"correlation_id":"c","delivery":"at_most_once",
            "callback":{"type":"http","url":"http://a.example/","headers":{"X-A":"1"},"protocol":"webhook"}}"#,
        )
        .await;
    let native = format!("/timers/{id}");
    let mut expected = rig.get(&native).await.json()["data"].clone();
    let reply = rig.call("PUT", "/api/v1/timers/g/a", r#"{"callbackUrl":"http://b.example/","callbackTimeout":"5s"}"#).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    expected["callback_config"]["url"] = "http://b.example/".into();
    expected["callback_config"]["timeout"] = "5s".into();
    expected["revision"] = 2.into();
    assert_eq!(rig.get(&native).await.json()["data"], expected);
}

#[tokio::test]
async fn every_bad_change_is_refused_by_name_and_changes_nothing() {
    let rig = Rig::new();
    let before = created(&rig, FULL).await;
    for (body, field, rule) in [
        (r#"{"status":"canceled"}"#, "status", "is not a known field"),
        (r#"{"executeAt":null}"#, "executeAt", "must be a string"),
        (r#"{"executeAt":"2029-12-31T23:58:59Z"}"#, "executeAt", "must be in the future"),
        (r#"{"executeAt":"2031-01-02T00:00:00Z"}"#, "executeAt", "must not be more than 365d ahead"),
        (r#"{"callbackUrl":null}"#, "callbackUrl", "must be a string"),
        (r#"{"callbackUrl":"mailto:a@b"}"#, "callbackUrl", "must be a valid http or https URL"),
        (r#"{"callbackUrl":"http://169.254.169.254/"}"#, "callbackUrl", "must not reach a denied address"),
        (r#"{"callbackTimeout":"6m"}"#, "callbackTimeout", "must lie between 100ms and 5m"),
        (r#"{"callbackTimeoutSeconds":0}"#, "callbackTimeoutSeconds", "must lie between 100ms and 5m"),
        (r#"{"retryPolicy":{"maxRetries":1001}}"#, "retryPolicy.maxRetries", "must be a whole number from 0 to 1000"),
        (r#"{"retryPolicy":"none"}"#, "retryPolicy", "must be an object"),
        (r#"{"payload":1,"payload":2}"#, "payload", "must not be given twice"),
    ] {
        for (method, path, sent) in both(body) {
            let error = rig.call(method, path, &sent).await.refused_v1(400, "VALIDATION_ERROR");
            assert_eq!(error["details"], json!({"field": field, "rule": rule}), "{method} {body}");
        }
    }
    for fixed in ["id", "timerId", "namespace", "groupId"] {
        let error =
            rig.call("PUT", "/api/v1/timers/g/a", &format!(r#"{{"{fixed}":"a"}}"#)).await.refused_v1(400, "VALIDATION_ERROR");
        assert_eq!(error["message"], format!("{fixed} must not be given: the path names the timer"));
    }
    assert_eq!(shown(&rig).await, before);
}

#[tokio::test]
async fn a_timer_that_is_not_pending_cannot_be_changed() {
    for status in ["executing", "completed", "failed", "canceled"] {
        for body in ["{}", r#"{"payload":2}"#] {
            for (method, path, sent) in both(body) {
                let rig = Rig::new();
                created(&rig, ALICE).await;
                bring_to(&rig, status).await;
                let error = rig.call(method, path, &sent).await.refused_v1(409, "TIMER_NOT_PENDING");
                assert_eq!(error["message"], format!("cannot update timer with status '{status}'"));
                assert_eq!(error["details"], json!({"status": status}));
            }
        }
    }
}
