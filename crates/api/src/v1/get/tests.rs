use domain::{
    Callback, Definition, Delivery, JsonText, Key, Namespace, NewTimer, Next, OnConflict, Options, RequestedTime, Span, TimerId,
};
use serde_json::{Value, json};

use crate::{
    rig::{NOW, Rig},
    v1::tests::{ALICE, created},
};

/// Puts a timer into the store as another dialect would.
async fn stored(rig: &Rig, callback: Callback) {
    let (namespace, key) = (Namespace::parse("g").unwrap(), Key::parse("a").unwrap());
    let asked = RequestedTime::After(Span::from_secs(60));
    let definition = Definition {
        id: TimerId::keyed(&namespace, &key),
        namespace,
        key: Some(key),
        asked,
        callback,
        metadata: Some(JsonText::trusted("1")),
        correlation_id: None,
        retry_policy: None,
        delivery: Delivery::AtMostOnce,
        group: None,
        options: Options::default(),
    };
    let execute_at = NOW.saturating_add(Span::from_secs(60));
    let new = NewTimer { definition, execute_at, on_conflict: OnConflict::Reject, created_at: NOW };
    rig.store.create(vec![new]).await.unwrap();
}

async fn shown(rig: &Rig) -> [Value; 2] {
    let by_path = rig.get("/api/v1/timers/g/a").await;
    let selected = rig.call("POST", "/api/v1/timers/get", r#"{"groupId":"g","timerId":"a"}"#).await;
    assert_eq!((by_path.status.as_u16(), selected.status.as_u16()), (200, 200), "{} {}", by_path.text, selected.text);
    [by_path.json(), selected.json()]
}

#[tokio::test]
async fn a_timer_says_how_it_stands() {
    let rig = Rig::new();
    created(&rig, ALICE).await;
    rig.clock.advance(Span::from_secs(3600));
    rig.settle_all(&Next::Failed { at: NOW.saturating_add(Span::from_secs(3601)), error: "HTTP 500".to_owned() }).await;
    for timer in shown(&rig).await {
        assert_eq!((&timer["status"], &timer["attempt"], &timer["lastError"]), (&json!("failed"), &json!(1), &json!("HTTP 500")));
        assert_eq!((&timer["executedAt"], &timer["executeAt"]), (&json!("2030-01-01T01:00:01Z"), &json!("2030-01-01T01:00:00Z")));
    }
}

#[tokio::test]
async fn a_timer_of_another_dialect_is_shown_as_far_as_there_are_words_for_it() {
    for (callback, protocol, url, timeout, payload) in [
        (
            r#"{"type":"http","url":"http://b.example/","headers":{"X-A":"1"},"payload":{"b":1},"timeout":"250ms"}"#,
            "webhook",
            json!("http://b.example/"),
            json!(["250ms", 0.25]),
            json!({"b": 1}),
        ),
        (r#"{"type":"nats","topic":"a.b","payload":[2]}"#, "nats", json!(null), json!([null, null]), json!([2])),
        (r#"{"type":"event"}"#, "event", json!(null), json!([null, null]), json!(null)),
    ] {
        let rig = Rig::new();
        stored(&rig, Callback::from_json(callback).unwrap()).await;
        for timer in shown(&rig).await {
            assert_eq!(timer["protocol"], protocol);
            assert_eq!((&timer["callbackUrl"], &timer["payload"]), (&url, &payload), "{protocol}");
            assert_eq!(json!([timer["callbackTimeout"], timer["callbackTimeoutSeconds"]]), timeout, "{protocol}");
            assert_eq!((&timer["id"], &timer["groupId"], &timer["status"]), (&json!("a"), &json!("g"), &json!("pending")));
        }
    }
}

#[tokio::test]
async fn a_timer_of_another_dialect_is_changed_only_in_what_it_has() {
    let rig = Rig::new();
    stored(&rig, Callback::from_json(r#"{"type":"nats","topic":"a.b","payload":[2]}"#).unwrap()).await;
    let reply = rig.call("PUT", "/api/v1/timers/g/a", r#"{"executeAt":"2030-01-01T02:00:00Z","retryPolicy":{}}"#).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["executeAt"]), (200, &json!("2030-01-01T02:00:00Z")));
    for (body, field) in [
        (r#"{"callbackUrl":"http://b"}"#, "callbackUrl"),
        (r#"{"payload":1}"#, "payload"),
        (r#"{"callbackTimeout":"1s"}"#, "callbackTimeout"),
    ] {
        let error = rig.call("PUT", "/api/v1/timers/g/a", body).await.refused_v1(400, "VALIDATION_ERROR");
        assert_eq!(error["details"], json!({"field": field, "rule": "cannot be changed: the timer does not call a URL"}));
    }
    assert_eq!(rig.call("DELETE", "/api/v1/timers/g/a", "").await.status, 204);
    // Overwriting it here makes it a timer of this dialect.
    let reply = rig.call("POST", "/api/v1/timers/create", ALICE).await;
    assert_eq!((&reply.json()["protocol"], &reply.json()["status"]), (&json!("timer"), &json!("pending")));
}

#[tokio::test]
async fn a_segment_of_the_path_may_hold_any_character() {
    for (group, id, path) in [
        ("a/b", "c/d", "a%2Fb/c%2fd"),
        ("é", "😀", "%C3%A9/%F0%9F%98%80"),
        ("100%", "?#&=+ ", "100%25/%3F%23%26%3D%2B%20"),
        ("..", ".", "%2e%2e/%2E"),
        ("default", "create", "default/create"),
        ("a+b", "c;d,e:f@g", "a+b/c;d,e:f@g"),
        ("%2F", "%", "%252F/%25"),
    ] {
        let rig = Rig::new();
        let body = json!({"id": id, "groupId": group, "executeAt": "2030-01-01T01:00:00Z", "callbackUrl": "http://a"});
        created(&rig, &body.to_string()).await;
        for method in ["GET", "PUT", "DELETE"] {
            let reply = rig.call(method, &format!("/api/v1/timers/{path}"), if method == "PUT" { "{}" } else { "" }).await;
            assert!(reply.status.is_success(), "{method} {path}: {}", reply.text);
            if method != "DELETE" {
                assert_eq!((&reply.json()["groupId"], &reply.json()["id"]), (&json!(group), &json!(id)));
            }
        }
    }
    let longest = "%F0%9F%98%80".repeat(255);
    let reply = Rig::new().get(&format!("/api/v1/timers/{longest}/{longest}")).await;
    reply.refused_v1(404, "TIMER_NOT_FOUND");
}

#[tokio::test]
async fn a_name_that_can_be_no_timers_is_refused_by_name() {
    let rig = Rig::new();
    let long = "x".repeat(256);
    for (path, field, rule) in [
        ("%ff/a".to_owned(), "groupId", "must be valid UTF-8"),
        ("g/%ff".to_owned(), "timerId", "must be valid UTF-8"),
        ("%00/a".to_owned(), "groupId", "must not contain control characters"),
        ("g/a%0A".to_owned(), "timerId", "must not contain control characters"),
        ("/a".to_owned(), "groupId", "must have 1 to 255 characters"),
        (format!("{long}/a"), "groupId", "must have 1 to 255 characters"),
        (format!("g/{long}"), "timerId", "must have 1 to 255 characters"),
    ] {
        for method in ["GET", "PUT", "DELETE"] {
            let reply = rig.call(method, &format!("/api/v1/timers/{path}"), if method == "PUT" { "{}" } else { "" }).await;
            assert_eq!(
                reply.refused_v1(400, "VALIDATION_ERROR")["details"],
                json!({"field": field, "rule": rule}),
                "{method} {path}"
            );
        }
    }
    for (body, field, rule) in [
        ("{}", "timerId", "is required"),
        (r#"{"namespace":"g"}"#, "timerId", "is required"),
        (r#"{"id":"a"}"#, "id", "is not a known field"),
        (r#"{"timerId":7}"#, "timerId", "must be a string"),
        (r#"{"timerId":""}"#, "timerId", "must have 1 to 255 characters"),
        (r#"{"timerId":"a","namespace":""}"#, "namespace", "must have 1 to 255 characters"),
        (r#"{"timerId":"a","groupId":null}"#, "groupId", "must be a string"),
        (r#"{"timerId":"a","groupId":"g","namespace":"g"}"#, "groupId", "must not be given together with namespace"),
    ] {
        for path in ["get", "update", "delete"] {
            let error = rig.call("POST", &format!("/api/v1/timers/{path}"), body).await.refused_v1(400, "VALIDATION_ERROR");
            assert_eq!(error["details"], json!({"field": field, "rule": rule}), "{path} {body}");
        }
    }
}
