use std::{net::Ipv4Addr, time::Duration};

use axum::body::Body;
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use super::*;
use crate::rig::{KEY, Rig, request};

const TIMER: &str = r#"{"delay":"1h","callback":{"type":"http","url":"http://a.example/"}}"#;

/// A stream that is open.
struct Open {
    body: Body,
    text: String,
}

impl Open {
    async fn at(rig: &Rig, path: &str, headers: &[(&'static str, &str)]) -> Self {
        let mut request = request("GET", path, "");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let response = rig.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        Self { body: response.into_body(), text: String::new() }
    }

    /// Reads until the text has this.
    async fn read_to(&mut self, wanted: &str) -> &str {
        while !self.text.contains(wanted) {
            let frame = self.body.frame().await.expect("the stream goes on").unwrap();
            self.text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
        &self.text
    }

    fn lines(&self) -> Vec<Value> {
        self.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

const NDJSON: (&str, &str) = ("accept", "text/html, application/x-ndjson;q=0.9");

#[tokio::test(start_paused = true)]
async fn events_come_as_they_happen_in_the_format_that_is_asked_for() {
    let rig = Rig::new();
    let mut sent = Open::at(&rig, "/events", &[]).await;
    let mut lines = Open::at(&rig, "/events", &[NDJSON]).await;
    let id = rig.created(TIMER).await;
    let text = sent.read_to("event: created").await;
    assert!(text.starts_with(": position\nid: "), "{text}");
    assert!(text.contains("\ndata: {\"type\":\"created\",\"event_id\":") && text.contains(&id), "{text}");
    assert!(text.ends_with("\n\n"), "{text}");
    lines.read_to("created").await;
    let lines = lines.lines();
    assert_eq!(
        (&lines[0]["type"], &lines[1]["type"], &lines[1]["timer"]["id"]),
        (&"position".into(), &"created".into(), &id.into())
    );
    assert_eq!(lines[1]["at"], "2030-01-01T00:00:00Z");
    assert_eq!(lines[1].get("attempt"), None);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_gives_a_sign_of_life_with_its_position() {
    let rig = Rig::new();
    let mut stream = Open::at(&rig, "/events", &[]).await;
    for signs in 1..5 {
        while stream.text.matches(": position\nid: ").count() < signs {
            let frame = tokio::time::timeout(Duration::from_secs(11), stream.body.frame()).await.expect("a heartbeat");
            let frame = frame.unwrap().unwrap();
            stream.text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_resumes_from_the_last_id() {
    let rig = Rig::new();
    let mut stream = Open::at(&rig, "/events", &[NDJSON]).await;
    stream.read_to("position").await;
    let token = stream.lines()[0]["event_id"].as_str().unwrap().to_owned();
    drop(stream);
    let id = rig.created(TIMER).await;
    for (path, headers) in [
        (format!("/events?after={token}"), vec![NDJSON]),
        ("/events?after=x".to_owned(), vec![NDJSON, ("last-event-id", &token)]),
    ] {
        let mut resumed = Open::at(&rig, &path, &headers).await;
        assert!(resumed.read_to("created").await.contains(&id));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_type_no_id_or_no_parameter_is_refused() {
    let rig = Rig::new();
    for (query, complaint) in [
        ("types=created,deleted", "types must be some of created, changed, attempt and finished, separated by commas"),
        ("types=", "types must be some of created, changed, attempt and finished, separated by commas"),
        ("after=x", "after must be the id of an event"),
        ("colour=red", "'colour' is not a known parameter"),
        ("status=lost", "status"),
    ] {
        let refused = rig.get(&format!("/events?{query}")).await.refused(400, 2);
        assert!(refused.starts_with(complaint), "{query}: {refused}");
    }
    let old = token::write(crate::rig::NOW.saturating_sub(domain::Span::from_secs(25 * 60 * 60)));
    let refused = rig.get(&format!("/events?after={old}")).await.refused(400, 2);
    assert_eq!(refused, "after must not be older than 24 hours: begin anew without it");
    let mut request = request("GET", "/events", "");
    request.headers_mut().insert("last-event-id", "x".parse().unwrap());
    assert_eq!(rig.send(request).await.refused(400, 2), "Last-Event-ID must be the id of an event");
    let mut request = self::request("GET", "/events", "");
    request.headers_mut().insert("last-event-id", old.parse().unwrap());
    let refused = rig.send(request).await.refused(400, 2);
    assert_eq!(refused, "Last-Event-ID must not be older than 24 hours: begin anew without it");
}

#[tokio::test(start_paused = true)]
async fn the_ninth_stream_of_a_key_is_refused() {
    let rig = Rig::new();
    let mut open = Vec::new();
    for _ in 0..8 {
        open.push(Open::at(&rig, "/events", &[]).await);
    }
    let refused = rig.get("/events").await;
    assert_eq!(refused.status, 503);
    assert!(refused.message().starts_with("this key has 8 event streams open"), "{}", refused.text);
    open.pop();
    Open::at(&rig, "/events", &[("x-api-key", KEY)]).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_its_key_is_revoked() {
    let rig = Rig::new();
    let key = rig.issued(r#"["a"]"#, "read").await;
    let mut stream = Open::at(&rig, "/events", &[("x-api-key", &key)]).await;
    stream.read_to("position").await;
    let keys = rig.get("/keys").await;
    let id = keys.json()["data"]["keys"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(rig.call("DELETE", &format!("/keys/{id}"), "").await.status, 200);
    while let Some(frame) = tokio::time::timeout(Duration::from_secs(60), stream.body.frame()).await.expect("its end") {
        frame.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_the_service_stops() {
    let rig = Rig::new();
    let stopping = CancellationToken::new();
    let mut request = request("GET", "/events", "");
    request.extensions_mut().insert(Connected { address: Ipv4Addr::LOCALHOST.into(), stopping: stopping.clone() });
    let mut body = rig.router.clone().oneshot(request).await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    stopping.cancel();
    assert!(body.frame().await.is_none());
}
