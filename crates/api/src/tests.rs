//! What holds for every route.

use std::sync::Arc;

use domain::ManualClock;
use store::Operation;
use store_testing::{Fault, Faulty, Model};

use crate::{
    auth::OPEN_PATHS,
    rig::{KEY, NOW, Rig, request},
};

const TIMER: &str = r#"{"seconds":90,"url":"http://a"}"#;

/// Every operation of the OpenAPI document that is not open to all, and a path that is no route.
fn guarded_operations() -> Vec<(String, String)> {
    let document = crate::openapi::document();
    let mut guarded = vec![("GET".to_owned(), "/nowhere".to_owned())];
    for (path, item) in document["paths"].as_object().unwrap() {
        // The other dialect has a test of its own.
        if !OPEN_PATHS.contains(&path.as_str()) && !path.starts_with("/api/v1/") {
            guarded.extend(item.as_object().unwrap().keys().map(|method| (method.to_uppercase(), path.clone())));
        }
    }
    guarded
}

#[tokio::test]
async fn nothing_of_a_timer_is_done_without_the_key() {
    let rig = Rig::new();
    let id = rig.created(TIMER).await;
    let one = format!("/timers/{id}");
    for (method, path) in guarded_operations() {
        let body = match (method.as_str(), path.as_str()) {
            ("POST", "/timers") => TIMER.to_owned(),
            ("POST", "/timers/batch") => format!(r#"{{"timers":[{TIMER}]}}"#),
            ("POST", "/timers/bulk") => r#"{"action":"cancel","filter":{},"expected_max":1}"#.to_owned(),
            ("POST", "/timers/cancel") => r#"{"status":"pending","expected_max":1}"#.to_owned(),
            ("POST", "/keys") => r#"{"name":"k","namespaces":null,"rights":"write"}"#.to_owned(),
            ("POST" | "PUT", _) => "{}".to_owned(),
            _ => String::new(),
        };
        let (method, path) = (method.as_str(), path.replace("{id}", &id));
        let long = format!("{KEY}x");
        for shown in [None, Some(""), Some("wrong"), Some(&KEY[1..]), Some(long.as_str()), Some(&KEY.to_uppercase())] {
            let mut request = request(method, &path, &body);
            request.headers_mut().remove("x-api-key");
            if let Some(shown) = shown {
                request.headers_mut().insert("x-api-key", shown.parse().unwrap());
            }
            assert_eq!(rig.send(request).await.refused(401, 4), "unauthorized", "{method} {path} {shown:?}");
        }
    }
    assert_eq!(rig.count().await, 1);
    assert_eq!(rig.get(&one).await.data("status"), "pending");
    for open in OPEN_PATHS {
        let mut request = request("GET", open, "");
        request.headers_mut().clear();
        assert_eq!(rig.send(request).await.status, 200, "{open}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_said_in_the_envelope() {
    let rig = Rig::new();
    for path in ["/", "/timer", "/timers/", "/timers/a/b", "/api", "/api/v2/timers", "/../etc/passwd"] {
        assert_eq!(rig.get(path).await.refused(404, 3), "no such route: see /docs", "{path}");
    }
    for (method, path, allow) in [
        ("DELETE", "/timers", ["GET", "HEAD", "POST"].as_slice()),
        ("PATCH", "/timers", &["GET", "HEAD", "POST"]),
        ("OPTIONS", "/timers", &["GET", "HEAD", "POST"]),
        ("BREW", "/timers", &["GET", "HEAD", "POST"]),
        ("POST", "/timers/01890a5d-ac96-774b-bcce-b302099a8057", &["DELETE", "GET", "HEAD", "PUT"]),
        ("GET", "/timers/batch", &["POST"]),
        ("DELETE", "/timers/cancel", &["POST"]),
        ("GET", "/timers/01890a5d-ac96-774b-bcce-b302099a8057/fire", &["POST"]),
        ("POST", "/healthz", &["GET", "HEAD"]),
        ("DELETE", "/ping", &["GET", "HEAD"]),
        ("POST", "/docs", &["GET", "HEAD"]),
    ] {
        let reply = rig.call(method, path, "").await;
        reply.refused(405, 2);
        let mut named: Vec<_> = reply.headers["allow"].to_str().unwrap().split(',').map(str::trim).collect();
        named.sort_unstable();
        assert_eq!(named, allow, "{method} {path}");
    }
}

#[tokio::test]
async fn ping_and_metrics_answer() {
    let rig = Rig::new();
    assert_eq!(rig.get("/ping").await.text, r#"{"code":0,"message":"pong","data":null}"#);
    let request_metrics = rig.get("/metrics").await;
    assert_eq!(
        (request_metrics.text.as_str(), request_metrics.headers["content-type"].to_str().unwrap()),
        ("timer_up 1\n", "text/plain; version=0.0.4; charset=utf-8")
    );
}

#[tokio::test]
async fn every_answer_carries_an_id_of_its_request() {
    let rig = Rig::new();
    for (given, is_taken) in [("my-id_1.2:3", true), ("", false), ("a b", false), ("<script>", false), (&"x".repeat(129), false)]
    {
        for path in ["/ping", "/nowhere", "/timers"] {
            let mut request = request("GET", path, "");
            request.headers_mut().insert("x-request-id", given.parse().unwrap());
            let reply = rig.send(request).await;
            let id = reply.headers["x-request-id"].to_str().unwrap();
            assert_eq!(id == given, is_taken, "{given}");
            assert!(id.len() >= 8, "{id}");
        }
    }
    assert_ne!(rig.get("/ping").await.headers["x-request-id"], rig.get("/ping").await.headers["x-request-id"]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_is_a_503_that_gives_nothing_away() {
    let clock = Arc::new(ManualClock::at(NOW));
    let store = Arc::new(Faulty::new(Arc::new(Model::new(clock.clone(), 1))));
    let rig = Rig::over(store.clone(), clock, Vec::new());
    let id = rig.created(TIMER).await;
    let one = format!("/timers/{id}");
    store.set_down(true);
    for (method, path, body) in [
        ("POST", "/timers", TIMER),
        ("GET", "/timers", ""),
        ("GET", &one, ""),
        ("PUT", &one, r#"{"metadata":1}"#),
        ("DELETE", &one, ""),
        ("POST", &format!("{one}/fire"), ""),
        ("POST", &format!("{one}/retry"), ""),
        ("GET", &format!("{one}/attempts"), ""),
        ("POST", "/timers/cancel", r#"{"status":"pending","expected_max":1}"#),
    ] {
        let reply = rig.call(method, path, body).await;
        assert_eq!(
            reply.refused(503, 1),
            "the store is not available and nothing was changed: try again later",
            "{method} {path}"
        );
        assert!(!reply.text.contains("planned"));
        assert!(reply.headers.contains_key("retry-after"));
    }
    store.set_down(false);
    store.plan(Operation::Create, Fault::DoneUnknown);
    for _ in 0..1000 {
        store.plan(Operation::Get, Fault::NotDone);
    }
    let message = rig.call("POST", "/timers", TIMER).await.refused(503, 1);
    assert!(
        message.contains("the outcome is unknown") && message.contains("repeating with the same key or id is safe"),
        "{message}"
    );
}

#[tokio::test]
async fn stored_data_that_cannot_be_read_is_a_500_that_gives_nothing_away() {
    let clock = Arc::new(ManualClock::at(NOW));
    let model = Arc::new(Model::new(clock.clone(), 1));
    let rig = Rig::over(model.clone(), clock, Vec::new());
    let id = rig.created(TIMER).await;
    model.spoil(domain::TimerId::parse("id", &id).unwrap());
    assert_eq!(rig.get(&format!("/timers/{id}")).await.refused(500, 1), "internal error");
}

#[tokio::test]
async fn a_panic_is_a_500_in_the_envelope() {
    let clock = Arc::new(ManualClock::at(NOW));
    let model = Arc::new(Model::new(clock.clone(), 1));
    let panics = crate::HealthItem { name: "x", read: Arc::new(|| panic!("with a secret")) };
    let rig = Rig::over(model, clock, vec![panics]);
    let reply = rig.get("/healthz").await;
    assert_eq!(reply.refused(500, 1), "internal error");
    assert!(reply.headers.contains_key("x-request-id"));
}

#[tokio::test]
async fn metrics_count_requests_by_route_and_never_by_what_callers_made_up() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let _here = ::metrics::set_default_local_recorder(&recorder);
    let rig = Rig::new();
    let id = rig.created(r#"{"delay":"1h","callback":{"type":"http","url":"http://a"},"namespace":"tenant-a"}"#).await;
    rig.get(&format!("/timers/{id}")).await;
    rig.call("PUT", &format!("/timers/{id}"), r#"{"metadata":1}"#).await;
    rig.call("DELETE", &format!("/timers/{id}"), "").await;
    rig.call("BREW", "/made-up", "").await;
    let text = recorder.handle().render();
    for line in [
        r#"timer_http_requests_total{route="/timers",method="POST",status="201"} 1"#,
        r#"timer_http_requests_total{route="/timers/{id}",method="GET",status="200"} 1"#,
        r#"timer_http_requests_total{route="unmatched",method="other",status="404"} 1"#,
        r#"timer_http_request_duration_seconds_count{route="/timers/{id}"} 3"#,
        r#"timer_created_total{result="created"} 1"#,
        "timer_updated_total 1",
        "timer_canceled_total 1",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains("made-up") && !text.contains("tenant-a") && !text.contains(&id));
}
