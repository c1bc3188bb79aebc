use serde_json::{Value, json};

use crate::{
    rig::Rig,
    v1::tests::{ALICE, bring_to, created},
};

const PATHS: [&str; 2] = ["/api/v1/timers", "/api/v1/timers/create"];
const TIMES: &str = r#""executeAt":"2030-01-01T01:00:00Z","callbackUrl":"http://a.example/hook""#;

fn with(rest: &str) -> String {
    format!(r#"{{"id":"a",{TIMES}{rest}}}"#)
}

/// The timer as the native dialect shows it.
async fn native(rig: &Rig) -> Value {
    let id = rig.get("/timers").await.json()["data"]["timers"][0]["id"].as_str().unwrap().to_owned();
    rig.get(&format!("/timers/{id}")).await.json()["data"].clone()
}

#[tokio::test]
async fn everything_that_was_given_is_kept_and_answered() {
    for (path, group) in PATHS.into_iter().zip(["groupId", "namespace"]) {
        let rig = Rig::new();
        let body = format!(
            r#"{{"id":"user-reminder-123","{group}":"notifications","executeAt":"2030-01-01T03:30:00+02:00",
            "callbackUrl":"https://app.example.com/webhooks/timer","payload":{{"userId":"user123","action":"send_reminder"}},
            "retryPolicy":{{"maxRetries":3,"maxRetryAttemptsDuration":"24h","initialInterval":"20s","backoffMultiplier":1.5,"maxInterval":"5m"}},
            "callbackTimeout":"2500ms"}}"#
        );
        let reply = rig.call("POST", path, &body).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        assert_eq!(reply.headers["content-type"], "application/json");
        let expected = json!({
            "id": "user-reminder-123", "namespace": "notifications", "groupId": "notifications",
            "executeAt": "2030-01-01T01:30:00Z", "callbackUrl": "https://app.example.com/webhooks/timer",
            "payload": {"userId": "user123", "action": "send_reminder"},
            "retryPolicy": {"maxRetries": 3, "initialInterval": "20s", "backoffMultiplier": 1.5, "maxInterval": "5m", "maxRetryAttemptsDuration": "24h"},
            "callbackTimeout": "2s500ms", "callbackTimeoutSeconds": 2.5, "protocol": "timer",
            "status": "pending", "attempt": 0, "lastError": null,
            "createdAt": "2030-01-01T00:00:00Z", "updatedAt": "2030-01-01T00:00:00Z", "executedAt": null,
        });
        assert_eq!(reply.json(), expected);
        assert_eq!(rig.get("/api/v1/timers/notifications/user-reminder-123").await.json(), expected);
        assert_eq!(rig.nudged.lock().unwrap().len(), 1);

        let native = native(&rig).await;
        assert_eq!((&native["namespace"], &native["key"]), (&json!("notifications"), &json!("user-reminder-123")));
        assert_eq!(
            native["callback_config"],
            json!({
                "type": "http", "url": "https://app.example.com/webhooks/timer", "timeout": "2s500ms", "protocol": "timer",
                "payload": {"userId": "user123", "action": "send_reminder"},
            })
        );
        assert_eq!(
            native["retry_policy"],
            json!({"max_retries": 3, "initial_interval": "20s", "backoff_multiplier": 1.5, "max_interval": "5m", "max_duration": "1d"})
        );
        assert_eq!((&native["metadata"], &native["delivery"]), (&Value::Null, &json!("at_least_once")));
    }
}

#[tokio::test]
async fn what_is_not_given_is_as_usual() {
    for path in PATHS {
        for rest in ["", r#","payload":null,"retryPolicy":null"#] {
            let timer = Rig::new().call("POST", path, &with(rest)).await.json();
            for (field, usual) in [
                ("namespace", json!("default")),
                ("groupId", json!("default")),
                ("payload", json!(null)),
                ("retryPolicy", json!(null)),
                ("callbackTimeout", json!("30s")),
                ("callbackTimeoutSeconds", json!(30)),
            ] {
                assert_eq!(timer[field], usual, "{path} {field}");
            }
        }
        let timer = Rig::new().call("POST", path, &with(r#","retryPolicy":{"maxRetries":5}"#)).await.json();
        assert_eq!(
            timer["retryPolicy"],
            json!({"maxRetries": 5, "initialInterval": "30s", "backoffMultiplier": 2.0, "maxInterval": "10m", "maxRetryAttemptsDuration": null})
        );
    }
}

#[tokio::test]
async fn every_good_request_is_taken() {
    let longest = "é".repeat(255);
    for body in [
        format!(r#"{{"id":"{longest}","namespace":"{longest}",{TIMES}}}"#),
        format!(r#"{{"id":" a/b?c#d%20 ",{TIMES}}}"#),
        // As near as can be.
        r#"{"id":"a","executeAt":"2030-01-01T00:00:00Z","callbackUrl":"http://a"}"#.to_owned(),
        r#"{"id":"a","executeAt":"2030-12-31T23:59:59.999999Z","callbackUrl":"http://a"}"#.to_owned(),
        with(r#","callbackTimeoutSeconds":300"#),
        with(r#","callbackTimeoutSeconds":1.0"#),
        with(r#","callbackTimeout":"PT1M""#),
        with(r#","callbackTimeout":"100ms""#),
        with(
            r#","retryPolicy":{"maxRetries":0,"backoffMultiplier":1,"initialInterval":"1ms","maxInterval":"1ms","maxRetryAttemptsDuration":"0s"}"#,
        ),
        with(r#","retryPolicy":{"maxRetries":1000,"backoffMultiplier":100}"#),
        with(r#","payload":"\u0000""#),
    ] {
        for path in PATHS {
            let reply = Rig::new().call("POST", path, &body).await;
            assert_eq!(reply.status, 200, "{body}: {}", reply.text);
        }
    }
}

#[tokio::test]
async fn every_bad_request_is_refused_by_name_and_stores_nothing() {
    let rig = Rig::new();
    let nested = format!("{}{}", "[".repeat(65), "]".repeat(65));
    let at = |text: &str| format!(r#"{{"id":"a","executeAt":{text},"callbackUrl":"http://a"}}"#);
    let calling = |text: &str| format!(r#"{{"id":"a","executeAt":"2030-01-01T01:00:00Z","callbackUrl":{text}}}"#);
    let retrying = |text: &str| with(&format!(r#","retryPolicy":{text}"#));
    let table: Vec<(String, &str, &str)> = vec![
        // Names.
        (with(r#","callbackURL":"http://a""#), "callbackURL", "is not a known field"),
        (with(r#","timerId":"a""#), "timerId", "is not a known field"),
        (with(r#","metadata":1"#), "metadata", "is not a known field"),
        (with(r#","status":"pending""#), "status", "is not a known field"),
        (with(r#","on_conflict":"keep""#), "on_conflict", "is not a known field"),
        (with(r#","id":"b""#), "id", "must not be given twice"),
        // Which.
        ("{}".into(), "id", "is required"),
        (format!("{{{TIMES}}}"), "id", "is required"),
        (format!(r#"{{"id":null,{TIMES}}}"#), "id", "must be a string"),
        (format!(r#"{{"id":7,{TIMES}}}"#), "id", "must be a string"),
        (format!(r#"{{"id":"",{TIMES}}}"#), "id", "must have 1 to 255 characters"),
        (format!(r#"{{"id":"{}",{TIMES}}}"#, "i".repeat(256)), "id", "must have 1 to 255 characters"),
        (format!(r#"{{"id":"a\u0000",{TIMES}}}"#), "id", "must not contain control characters"),
        (with(r#","namespace":"""#), "namespace", "must have 1 to 255 characters"),
        (with(r#","groupId":"""#), "groupId", "must have 1 to 255 characters"),
        (with(r#","groupId":null"#), "groupId", "must be a string"),
        (with(r#","groupId":"a\nb""#), "groupId", "must not contain control characters"),
        (with(r#","namespace":"a","groupId":"a""#), "groupId", "must not be given together with namespace"),
        // When.
        (r#"{"id":"a","callbackUrl":"http://a"}"#.into(), "executeAt", "is required"),
        (at("null"), "executeAt", "must be a string"),
        (at("1893456000"), "executeAt", "must be a string"),
        (at("\"tomorrow\""), "executeAt", "must be an RFC 3339 date"),
        (at("\"2029-12-31T23:58:59.999999Z\""), "executeAt", "must be in the future"),
        (at("\"2031-01-01T00:00:00.000001Z\""), "executeAt", "must not be more than 365d ahead"),
        // Whom.
        (r#"{"id":"a","executeAt":"2030-01-01T01:00:00Z"}"#.into(), "callbackUrl", "is required"),
        (calling("null"), "callbackUrl", "must be a string"),
        (calling("\"a.example\""), "callbackUrl", "must be a valid http or https URL"),
        (calling("\"ftp://a.example\""), "callbackUrl", "must be a valid http or https URL"),
        (calling("\"http://u:p@a.example\""), "callbackUrl", "must not contain credentials"),
        (calling(&format!("\"http://a/{}\"", "x".repeat(2048))), "callbackUrl", "must not be longer than 2048 characters"),
        (calling("\"http://169.254.169.254/latest\""), "callbackUrl", "must not reach a denied address"),
        // How.
        (with(&format!(r#","payload":"{}""#, "x".repeat(256 * 1024))), "payload", "must not be longer than 262144 bytes"),
        (with(&format!(r#","payload":{nested}"#)), "payload", "must not be nested deeper than 64"),
        (with(r#","callbackTimeout":30"#), "callbackTimeout", "must be a string"),
        (with(r#","callbackTimeout":null"#), "callbackTimeout", "must be a string"),
        (with(r#","callbackTimeout":"30""#), "callbackTimeout", "must be a duration"),
        (with(r#","callbackTimeout":"99ms""#), "callbackTimeout", "must lie between 100ms and 5m"),
        (with(r#","callbackTimeoutSeconds":"30""#), "callbackTimeoutSeconds", "must be a whole number"),
        (with(r#","callbackTimeoutSeconds":0.5"#), "callbackTimeoutSeconds", "must be a whole number"),
        (with(r#","callbackTimeoutSeconds":null"#), "callbackTimeoutSeconds", "must be a whole number"),
        (with(r#","callbackTimeoutSeconds":0"#), "callbackTimeoutSeconds", "must lie between 100ms and 5m"),
        (with(r#","callbackTimeoutSeconds":301"#), "callbackTimeoutSeconds", "must lie between 100ms and 5m"),
        (
            with(r#","callbackTimeout":"30s","callbackTimeoutSeconds":30"#),
            "callbackTimeoutSeconds",
            "must not be given together with callbackTimeout",
        ),
        // How often.
        (retrying("3"), "retryPolicy", "must be an object"),
        (retrying("[]"), "retryPolicy", "must be an object"),
        (retrying(r#"{"max_retries":3}"#), "retryPolicy.max_retries", "is not a known field"),
        (retrying(r#"{"maxRetries":3,"maxRetries":4}"#), "retryPolicy.maxRetries", "must not be given twice"),
        (retrying(r#"{"maxRetries":-1}"#), "retryPolicy.maxRetries", "must be a whole number from 0 to 1000"),
        (retrying(r#"{"maxRetries":null}"#), "retryPolicy.maxRetries", "must be a whole number from 0 to 1000"),
        (retrying(r#"{"maxRetries":1001}"#), "retryPolicy.maxRetries", "must be a whole number from 0 to 1000"),
        (retrying(r#"{"backoffMultiplier":"2"}"#), "retryPolicy.backoffMultiplier", "must be a number from 1 to 100"),
        (retrying(r#"{"backoffMultiplier":1e400}"#), "retryPolicy.backoffMultiplier", "must be a number from 1 to 100"),
        (retrying(r#"{"backoffMultiplier":0.99}"#), "retryPolicy.backoffMultiplier", "must be a number from 1 to 100"),
        (retrying(r#"{"initialInterval":30}"#), "retryPolicy.initialInterval", "must be a string"),
        (retrying(r#"{"initialInterval":"0s"}"#), "retryPolicy.initialInterval", "must be at least 1ms"),
        (retrying(r#"{"maxInterval":"x"}"#), "retryPolicy.maxInterval", "must be a duration"),
        (retrying(r#"{"maxInterval":"0s"}"#), "retryPolicy.maxInterval", "must be at least 1ms"),
        (retrying(r#"{"maxRetryAttemptsDuration":"x"}"#), "retryPolicy.maxRetryAttemptsDuration", "must be a duration"),
    ];
    for (body, field, rule) in table {
        for path in PATHS {
            let error = rig.call("POST", path, &body).await.refused_v1(400, "VALIDATION_ERROR");
            let shown: String = body.chars().take(200).collect();
            assert_eq!(error["details"]["field"], field, "{shown}: {error}");
            assert!(error["details"]["rule"].as_str().unwrap().starts_with(rule), "{shown}: {error}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(rule) && message.len() < 400, "{shown}: {message}");
        }
    }
    assert_eq!(rig.count().await, 0);
    assert!(rig.nudged.lock().unwrap().is_empty());
}

#[tokio::test]
async fn payloads_survive_to_the_byte() {
    for text in [
        r#"{"b":1.10,"a":12345678901234567890,"a":2}"#,
        r#"[ 1 , -0, 1e400, 0.1e-7 ]"#,
        r#""\u00e9 é e\u0301 \u0000 \/ 😀""#,
        r#"{"nested":{"deep":[[[]]]}, "t" : true}"#,
        "false",
        "null",
    ] {
        for path in PATHS {
            let rig = Rig::new();
            let reply = rig.call("POST", path, &with(&format!(r#","payload":{text}"#))).await;
            let shown = format!(r#""payload":{text},"retryPolicy""#);
            assert!(reply.text.contains(&shown), "{}", reply.text);
            let read = rig.get("/api/v1/timers/default/a").await;
            assert!(read.text.contains(&shown), "{}", read.text);
        }
    }
}

#[tokio::test]
async fn a_taken_id_is_resolved_by_the_table_of_conflicts() {
    const SAME: &str = ALICE;
    const OTHER: &str = r#"{"id":"a","groupId":"g","executeAt":"2030-01-01T01:00:00Z","callbackUrl":"http://b.example/"}"#;
    const LATER: &str = r#"{"id":"a","groupId":"g","executeAt":"2030-01-01T02:00:00Z","callbackUrl":"http://a.example/hook"}"#;
    let kept = (200, "");
    let taken = (409, "TIMER_ALREADY_EXISTS");
    let busy = (409, "TIMER_NOT_PENDING");
    // status, answers of the first generation (the same, other content, another time), answers of the second
    for (status, first, second) in [
        ("pending", [kept, taken, taken], [kept; 3]),
        ("executing", [kept; 3], [busy; 3]),
        ("completed", [kept, taken, taken], [kept; 3]),
        ("failed", [kept, taken, taken], [kept; 3]),
        ("canceled", [kept, taken, taken], [kept; 3]),
    ] {
        for (path, answers) in PATHS.into_iter().zip([first, second]) {
            for (body, (code, error)) in [SAME, OTHER, LATER].into_iter().zip(answers) {
                let rig = Rig::new();
                created(&rig, SAME).await;
                bring_to(&rig, status).await;
                let before = rig.get("/api/v1/timers/g/a").await.json();
                let reply = rig.call("POST", path, body).await;
                let what = format!("{path} {status} {body}");
                assert_eq!(reply.status, code, "{what}: {}", reply.text);
                let after = rig.get("/api/v1/timers/g/a").await.json();
                if code == 409 {
                    assert_eq!(reply.refused_v1(409, error)["details"], json!({"status": status}), "{what}");
                    assert_eq!(after, before, "{what}");
                } else if path.ends_with("/create") {
                    let asked: Value = serde_json::from_str(body).unwrap();
                    assert_eq!(after["status"], "pending", "{what}");
                    assert_eq!(
                        (&after["executeAt"], &after["callbackUrl"]),
                        (&asked["executeAt"], &asked["callbackUrl"]),
                        "{what}"
                    );
                    assert_eq!(reply.json(), after, "{what}");
                } else {
                    assert_eq!(after, before, "{what}");
                    assert_eq!(reply.json(), before, "{what}");
                }
                assert_eq!(rig.count().await, 1);
            }
        }
    }
}

#[tokio::test]
async fn messages_about_a_taken_id_speak_of_ids() {
    let rig = Rig::new();
    created(&rig, ALICE).await;
    let other = ALICE.replace("a.example", "b.example");
    let error = rig.call("POST", "/api/v1/timers", &other).await.json();
    assert_eq!(error["message"], "a timer with this id exists and has other content");
    bring_to(&rig, "executing").await;
    let error = rig.call("POST", "/api/v1/timers/create", &other).await.json();
    assert_eq!(error["message"], "the timer with this id is being delivered: try again when it has ended");
}

#[tokio::test]
async fn a_repeated_create_is_answered_even_after_the_timer_was_due() {
    let rig = Rig::new();
    created(&rig, ALICE).await;
    rig.complete_all().await;
    rig.clock.advance(domain::Span::from_secs(7200));
    assert_eq!(created(&rig, ALICE).await["status"], "completed");
    let error = rig.call("POST", "/api/v1/timers/create", ALICE).await.refused_v1(400, "VALIDATION_ERROR");
    assert_eq!(error["message"], "executeAt must be in the future");
}

#[tokio::test]
async fn the_same_id_in_another_namespace_is_another_timer() {
    let rig = Rig::new();
    let other = ALICE.replace("a.example", "b.example");
    created(&rig, ALICE).await;
    created(&rig, &other.replace(r#""groupId":"g""#, r#""namespace":"h""#)).await;
    created(&rig, &other.replace(r#""groupId":"g","#, "")).await;
    assert_eq!(rig.count().await, 3);
    for (group, url) in [("g", "http://a.example/hook"), ("h", "http://b.example/hook"), ("default", "http://b.example/hook")] {
        assert_eq!(rig.get(&format!("/api/v1/timers/{group}/a")).await.json()["callbackUrl"], url);
    }
}

#[tokio::test]
async fn a_key_of_the_native_dialect_is_the_same_id() {
    const NATIVE: &str = r#"{"execute_at":"2030-01-01T01:00:00Z","namespace":"g","key":"a",
        "callback":{"type":"http","url":"http://a.example/hook","protocol":"timer"}}"#;
    let rig = Rig::new();
    rig.created(NATIVE).await;
    created(&rig, ALICE).await;
    assert_eq!(rig.count().await, 1);
    assert_eq!(rig.call("POST", "/timers", NATIVE).await.message(), "timer already exists");
}
