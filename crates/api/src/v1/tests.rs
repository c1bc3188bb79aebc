//! What holds for every route of this dialect.

use std::{collections::BTreeSet, sync::Arc};

use domain::{ManualClock, Next, names_of};
use serde_json::{Value, json};
use store::Operation;
use store_testing::{Fault, Faulty, Model};

use super::*;
use crate::rig::{KEY, NOW, Rig, request};

pub(super) const ALICE: &str =
    r#"{"id":"a","groupId":"g","executeAt":"2030-01-01T01:00:00Z","callbackUrl":"http://a.example/hook"}"#;
const PATCH: &str = r#"{"executeAt":"2030-01-01T02:00:00Z"}"#;
const SELECTED: &str = r#"{"namespace":"g","timerId":"a"}"#;

/// Every call that this dialect answers with success once [`ALICE`] is there.
pub(super) const CALLS: [(&str, &str, &str); 8] = [
    ("POST", "/api/v1/timers", ALICE),
    ("GET", "/api/v1/timers/g/a", ""),
    ("PUT", "/api/v1/timers/g/a", PATCH),
    ("POST", "/api/v1/timers/get", SELECTED),
    ("POST", "/api/v1/timers/update", r#"{"namespace":"g","timerId":"a","executeAt":"2030-01-01T02:00:00Z"}"#),
    ("POST", "/api/v1/timers/create", ALICE),
    ("POST", "/api/v1/timers/delete", SELECTED),
    ("DELETE", "/api/v1/timers/g/a", ""),
];

/// Creates a timer through this dialect.
pub(super) async fn created(rig: &Rig, body: &str) -> Value {
    let reply = rig.call("POST", "/api/v1/timers", body).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()
}

/// Brings everything that is pending into this status.
pub(super) async fn bring_to(rig: &Rig, status: &str) {
    match status {
        "pending" => {}
        "executing" => drop(rig.claim_all().await),
        "completed" => rig.complete_all().await,
        "failed" => rig.settle_all(&Next::Failed { at: NOW, error: "HTTP 500".to_owned() }).await,
        _ => assert_eq!(rig.call("DELETE", "/api/v1/timers/g/a", "").await.status, 204),
    }
}

#[tokio::test]
async fn every_call_works() {
    let rig = Rig::new();
    for (method, path, body) in CALLS {
        let reply = rig.call(method, path, body).await;
        assert!(reply.status.is_success(), "{method} {path}: {}", reply.text);
    }
}

#[tokio::test]
async fn nothing_of_a_timer_is_done_without_the_key() {
    let rig = Rig::new();
    created(&rig, ALICE).await;
    for (method, path, body) in CALLS.into_iter().chain([("GET", "/api/v1", ""), ("GET", "/api/v1/nowhere", "")]) {
        for shown in [None, Some("wrong"), Some(&KEY[1..])] {
            let mut request = request(method, path, body);
            request.headers_mut().remove("x-api-key");
            if let Some(shown) = shown {
                request.headers_mut().insert("x-api-key", shown.parse().unwrap());
            }
            let reply = rig.send(request).await;
            let error = reply.refused_v1(401, "UNAUTHORIZED");
            assert_eq!((&error["message"], &error["details"]), (&json!("unauthorized"), &json!({})));
            assert_eq!(error["timestamp"], "2030-01-01T00:00:00Z");
            assert_eq!(reply.headers["www-authenticate"], "ApiKey");
        }
    }
    assert_eq!(rig.get("/api/v1/timers/g/a").await.json()["status"], "pending");
}

#[tokio::test]
async fn what_is_not_there_is_said_in_the_words_of_this_dialect() {
    let rig = Rig::new();
    for path in [
        "/api/v1",
        "/api/v1/",
        "/api/v1/timer",
        "/api/v1/timers/",
        "/api/v1/timers/a",
        "/api/v1/timers/a/",
        "/api/v1/timers/a/b/c",
    ] {
        assert_eq!(rig.get(path).await.refused_v1(404, "ROUTE_NOT_FOUND")["message"], "no such route: see /docs", "{path}");
    }
    for (method, path, allow) in [
        ("GET", "/api/v1/timers", ["POST"].as_slice()),
        ("DELETE", "/api/v1/timers", &["POST"]),
        ("BREW", "/api/v1/timers", &["POST"]),
        ("POST", "/api/v1/timers/g/a", &["DELETE", "GET", "HEAD", "PUT"]),
        ("PATCH", "/api/v1/timers/g/a", &["DELETE", "GET", "HEAD", "PUT"]),
        ("GET", "/api/v1/timers/create", &["POST"]),
        ("PUT", "/api/v1/timers/update", &["POST"]),
        ("DELETE", "/api/v1/timers/delete", &["POST"]),
    ] {
        let reply = rig.call(method, path, "").await;
        reply.refused_v1(405, "METHOD_NOT_ALLOWED");
        let mut named: Vec<_> = reply.headers["allow"].to_str().unwrap().split(',').map(str::trim).collect();
        named.sort_unstable();
        assert_eq!(named, allow, "{method} {path}");
    }
    for (method, path, body) in CALLS.into_iter().filter(|(_, path, _)| !path.ends_with("/timers") && !path.ends_with("/create"))
    {
        let error = rig.call(method, path, body).await.refused_v1(404, "TIMER_NOT_FOUND");
        assert_eq!((&error["message"], &error["details"]), (&json!("timer not found"), &json!({})), "{method} {path}");
    }
}

#[tokio::test]
async fn a_body_must_be_json_and_say_so() {
    let rig = Rig::new();
    created(&rig, ALICE).await;
    let large = format!(r#"{{"id":"{}"}}"#, "x".repeat(1024 * 1024));
    for (method, path, body) in CALLS.into_iter().filter(|(_, _, body)| !body.is_empty()) {
        for (text, message) in [
            ("{", "the body is not valid JSON"),
            ("nonsense", "the body is not valid JSON"),
            ("[]", "the body must be a JSON object"),
            ("null", "the body must be a JSON object"),
            ("", "the body is missing: send a JSON object"),
        ] {
            let error = rig.call(method, path, text).await.refused_v1(400, "MALFORMED_REQUEST");
            assert!(error["message"].as_str().unwrap().starts_with(message), "{method} {path} {error}");
        }
        let reply = rig.call(method, path, &large).await;
        reply.refused_v1(413, "PAYLOAD_TOO_LARGE");
        assert_eq!(reply.headers["connection"], "close");
        for (name, value) in [("content-type", "text/plain"), ("content-encoding", "gzip")] {
            let mut request = request(method, path, body);
            request.headers_mut().insert(name, value.parse().unwrap());
            rig.send(request).await.refused_v1(415, "UNSUPPORTED_MEDIA_TYPE");
        }
        let error = rig.call(method, path, r#"{"dealy":1}"#).await.refused_v1(400, "VALIDATION_ERROR");
        assert_eq!(error["message"], "'dealy' is not a known field");
        assert_eq!(error["details"], json!({"field": "dealy", "rule": "is not a known field"}));
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_a_408() {
    let rig = Rig::new();
    let mut request = request("POST", "/api/v1/timers", "{}");
    let never = futures_util::stream::pending::<Result<bytes::Bytes, std::io::Error>>();
    *request.body_mut() = axum::body::Body::from_stream(never);
    rig.send(request).await.refused_v1(408, "REQUEST_TIMEOUT");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_is_a_503_that_gives_nothing_away() {
    let clock = Arc::new(ManualClock::at(NOW));
    let store = Arc::new(Faulty::new(Arc::new(Model::new(clock.clone(), 1))));
    let rig = Rig::over(store.clone(), clock, Vec::new());
    created(&rig, ALICE).await;
    store.set_down(true);
    for (method, path, body) in CALLS {
        let reply = rig.call(method, path, body).await;
        let error = reply.refused_v1(503, "SERVICE_UNAVAILABLE");
        assert_eq!(error["message"], "the store is not available and nothing was changed: try again later", "{method} {path}");
        assert!(!reply.text.contains("planned"));
        assert!(reply.headers.contains_key("retry-after"));
    }
    store.set_down(false);
    store.plan(Operation::Create, Fault::DoneUnknown);
    for _ in 0..1000 {
        store.plan(Operation::Get, Fault::NotDone);
    }
    let error = rig.call("POST", "/api/v1/timers", ALICE).await.refused_v1(503, "OUTCOME_UNKNOWN");
    assert!(error["message"].as_str().unwrap().contains("the outcome is unknown"), "{error}");
}

#[tokio::test]
async fn stored_data_that_cannot_be_read_is_a_500_that_gives_nothing_away() {
    let clock = Arc::new(ManualClock::at(NOW));
    let model = Arc::new(Model::new(clock.clone(), 1));
    let rig = Rig::over(model.clone(), clock, Vec::new());
    let id = rig.created(r#"{"delay":"1h","callback":{"type":"http","url":"http://a"},"namespace":"g","key":"a"}"#).await;
    model.spoil(domain::TimerId::parse("id", &id).unwrap());
    let error = rig.get("/api/v1/timers/g/a").await.refused_v1(500, "INTERNAL_ERROR");
    assert_eq!((&error["message"], &error["details"]), (&json!("internal error"), &json!({})));
}

#[tokio::test]
async fn metrics_count_requests_by_route_and_never_by_what_callers_made_up() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let _here = ::metrics::set_default_local_recorder(&recorder);
    let rig = Rig::new();
    created(&rig, ALICE).await;
    rig.get("/api/v1/timers/g/a").await;
    bring_to(&rig, "executing").await;
    rig.call("DELETE", "/api/v1/timers/g/a", "").await;
    rig.get("/api/v1/timers/made-up/a").await;
    let text = recorder.handle().render();
    for line in [
        r#"timer_http_requests_total{route="/api/v1/timers",method="POST",status="200"} 1"#,
        r#"timer_http_requests_total{route="/api/v1/timers/{groupId}/{timerId}",method="GET",status="200"} 1"#,
        r#"timer_http_requests_total{route="/api/v1/timers/{groupId}/{timerId}",method="GET",status="404"} 1"#,
        r#"timer_http_requests_total{route="/api/v1/timers/{groupId}/{timerId}",method="DELETE",status="409"} 1"#,
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains("made-up"));
}

fn schema(name: &str) -> Value {
    crate::openapi::document()["components"]["schemas"][name].clone()
}

fn properties(name: &str) -> BTreeSet<String> {
    schema(name)["properties"].as_object().unwrap().keys().cloned().collect()
}

fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

#[test]
fn what_is_described_is_what_is_read() {
    let read = |read: &[&'static str]| names(read.iter().copied());
    let selection = read(names_of::<selection::TimerSelection<'_>>());
    let selected = read(names_of::<update::UpdateSelectedTimer<'_>>());
    assert_eq!(properties("V1CreateTimer"), read(names_of::<create::CreateTimer<'_>>()));
    assert_eq!(properties("V1UpdateTimer"), &selected - &selection);
    assert_eq!(properties("V1UpdateSelectedTimer"), selected);
    assert_eq!(properties("V1TimerSelection"), selection);
    assert_eq!(properties("V1RetryPolicy"), read(names_of::<policy::PolicyRequest<'_>>()));
    for closed in ["V1CreateTimer", "V1UpdateTimer", "V1UpdateSelectedTimer", "V1TimerSelection", "V1RetryPolicy"] {
        assert_eq!(schema(closed)["additionalProperties"], false, "{closed}");
    }
    assert_eq!(schema("V1CreateTimer")["required"], json!(["id", "executeAt", "callbackUrl"]));
    assert_eq!(schema("V1UpdateSelectedTimer")["required"], json!(["timerId"]));
}

#[test]
fn what_is_described_has_the_limits_that_are_kept() {
    use domain::limits;
    for (form, pointer, kept) in [
        ("V1CreateTimer", "/properties/id/maxLength", limits::KEY_CHARS_MAX as f64),
        ("V1CreateTimer", "/properties/namespace/maxLength", limits::NAMESPACE_CHARS_MAX as f64),
        ("V1CreateTimer", "/properties/groupId/maxLength", limits::NAMESPACE_CHARS_MAX as f64),
        ("V1CreateTimer", "/properties/callbackUrl/maxLength", limits::URL_CHARS_MAX as f64),
        ("V1CreateTimer", "/properties/callbackTimeoutSeconds/maximum", limits::CALLBACK_TIMEOUT_MAX.as_secs_up() as f64),
        ("V1RetryPolicy", "/properties/maxRetries/maximum", f64::from(limits::RETRIES_MAX)),
        ("V1RetryPolicy", "/properties/backoffMultiplier/maximum", limits::BACKOFF_MULTIPLIER_MAX),
    ] {
        assert_eq!(schema(form).pointer(pointer).and_then(Value::as_f64), Some(kept), "{form}{pointer}");
    }
}

#[tokio::test]
async fn what_is_described_is_what_is_answered() {
    let rig = Rig::new();
    let body = ALICE.replace(r#""id":"a""#, r#""id":"a","retryPolicy":{}"#);
    let timer = created(&rig, &body).await;
    let members = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let required = |name: &str| names(schema(name)["required"].as_array().unwrap().iter().filter_map(Value::as_str));
    assert_eq!(members(&timer), properties("V1Timer"));
    assert_eq!(required("V1Timer"), properties("V1Timer"));
    assert_eq!(members(&timer["retryPolicy"]), properties("V1RetryPolicyOfTimer"));
    assert_eq!(required("V1RetryPolicyOfTimer"), properties("V1RetryPolicyOfTimer"));
    let error = rig.get("/api/v1/nowhere").await.json();
    assert_eq!(members(&error), properties("V1Error"));
    assert_eq!(properties("V1ErrorDetails"), names(["field", "rule", "status"]));
}

#[test]
fn every_call_is_described_with_every_answer_it_can_give() {
    let document = crate::openapi::document();
    for (method, path, body) in CALLS {
        let path = path.replace("/g/a", "/{groupId}/{timerId}");
        let operation = &document["paths"][&path][method.to_lowercase()];
        assert_eq!(operation["tags"], json!(["v1"]), "{method} {path}");
        let mut statuses = names(["400", "401", "403", "414", "429", "431", "500", "503"]);
        let is_create = path.ends_with("/timers") || path.ends_with("/create");
        let is_delete = method == "DELETE" || path.ends_with("/delete");
        let is_read = method == "GET" || path.ends_with("/get");
        statuses.extend(names([if is_delete { "204" } else { "200" }]));
        statuses.extend(names((!is_read).then_some("409")));
        statuses.extend(names((!is_create).then_some("404")));
        if !body.is_empty() {
            statuses.extend(names(["408", "413", "415"]));
        }
        let responses = operation["responses"].as_object().unwrap();
        assert_eq!(responses.keys().cloned().collect::<BTreeSet<_>>(), statuses, "{method} {path}");
        for (status, response) in responses.iter().filter(|(status, _)| !status.starts_with('2')) {
            let schema = &response["content"]["application/json"]["schema"]["$ref"];
            assert_eq!(schema, "#/components/schemas/V1Error", "{method} {path} {status}");
        }
    }
}
