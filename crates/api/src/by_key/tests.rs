use std::fmt::Write;

use domain::Next;
use serde_json::json;

use crate::rig::{NOW, Rig, request};

/// Every byte that is not plain, as clients encode one segment of a path.
fn encoded(segment: &str) -> String {
    segment.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => text.push(char::from(byte)),
            other => write!(text, "%{other:02X}").unwrap(),
        }
        text
    })
}

fn timer(namespace: &str, key: &str) -> String {
    json!({"delay": "1h", "callback": {"type": "http", "url": "http://a"}, "namespace": namespace, "key": key}).to_string()
}

#[tokio::test]
async fn a_timer_is_found_by_whatever_its_key_is() {
    let longest = "😀".repeat(255);
    for (namespace, key) in [
        ("default", "order-7"),
        ("tenant a", "a/b/../c"),
        ("é", "100%"),
        ("a?b=c", "x#y&z"),
        (".", ".."),
        ("batch", "cancel"),
        ("{namespace}", "{key}"),
        (longest.as_str(), longest.as_str()),
    ] {
        let rig = Rig::new();
        let id = rig.created(&timer(namespace, key)).await;
        let path = format!("/namespaces/{}/timers/{}", encoded(namespace), encoded(key));
        let found = rig.get(&path).await;
        assert_eq!((found.status.as_u16(), found.data("id"), found.data("key")), (200, id.into(), key.into()), "{path}");
    }
}

#[tokio::test]
async fn every_call_is_the_one_of_the_id() {
    let rig = Rig::new();
    let id = rig.created(&timer("n", "k")).await;
    let (by_id, by_key) = (format!("/timers/{id}"), "/namespaces/n/timers/k");
    assert_eq!(rig.get(by_key).await.text, rig.get(&by_id).await.text);
    let changed = rig.call("PUT", by_key, r#"{"metadata":1}"#).await;
    assert_eq!((changed.message().as_str(), &changed.headers["etag"]), ("timer updated successfully", &"\"2\"".parse().unwrap()));
    assert_eq!(rig.call("POST", &format!("{by_key}/fire"), "").await.message(), "timer fires now");
    rig.settle_all(&Next::Failed { at: NOW, error: "503".to_owned() }).await;
    assert_eq!(rig.get(&format!("{by_key}/attempts")).await.text, rig.get(&format!("{by_id}/attempts")).await.text);
    assert_eq!(rig.call("POST", &format!("{by_key}/retry"), "").await.message(), "timer is tried again");
    let pinged = rig.call("POST", &format!("{by_key}/ping"), r#"{"delay":"2h"}"#).await;
    assert_eq!((pinged.message().as_str(), &pinged.headers["etag"]), ("timer postponed successfully", &"\"5\"".parse().unwrap()));
    assert_eq!(pinged.data("execute_at"), "2030-01-01T02:00:00Z");
    let paused = rig.call("POST", &format!("{by_key}/pause"), r#"{"note":"wait"}"#).await;
    assert_eq!((paused.data("status"), &paused.headers["etag"]), ("paused".into(), &"\"6\"".parse().unwrap()), "{}", paused.text);
    assert_eq!(rig.get(&by_id).await.data("status"), "paused");
    let resumed = rig.call("POST", &format!("{by_key}/resume"), r#"{"missed":"fire"}"#).await;
    assert_eq!(
        (resumed.data("status"), &resumed.headers["etag"]),
        ("pending".into(), &"\"7\"".parse().unwrap()),
        "{}",
        resumed.text
    );
    for (method, rest, body) in [
        ("PUT", "", "{}"),
        ("DELETE", "", ""),
        ("POST", "/fire", ""),
        ("POST", "/retry", ""),
        ("POST", "/ping", ""),
        ("POST", "/pause", ""),
        ("POST", "/resume", ""),
    ] {
        let mut stale = request(method, &format!("{by_key}{rest}"), body);
        stale.headers_mut().insert("if-match", "\"1\"".parse().unwrap());
        assert_eq!(rig.send(stale).await.refused(412, 6), "timer has revision 7, not 1", "{method} {rest}");
    }
    assert_eq!(rig.call("DELETE", by_key, "").await.data("status"), "canceled");
    assert_eq!(rig.get(&by_id).await.data("status"), "canceled");
}

#[tokio::test]
async fn a_key_opens_only_its_own_namespaces() {
    let rig = Rig::new();
    rig.created(&timer("a", "k")).await;
    let tenant = rig.issued(r#"["b"]"#, "write").await;
    for (method, rest, body) in [
        ("GET", "", ""),
        ("PUT", "", r#"{"metadata":1}"#),
        ("DELETE", "", ""),
        ("POST", "/fire", ""),
        ("POST", "/retry", ""),
        ("POST", "/ping", ""),
        ("POST", "/pause", ""),
        ("POST", "/resume", ""),
        ("GET", "/attempts", ""),
    ] {
        let path = format!("/namespaces/a/timers/k{rest}");
        assert_eq!(rig.call_with(&tenant, method, &path, body).await.refused(404, 3), "timer not found", "{method} {path}");
    }
    let reader = rig.issued(r#"["a"]"#, "read").await;
    for (method, rest, body) in [
        ("PUT", "", "{}"),
        ("DELETE", "", ""),
        ("POST", "/fire", ""),
        ("POST", "/retry", ""),
        ("POST", "/ping", ""),
        ("POST", "/pause", ""),
        ("POST", "/resume", ""),
    ] {
        let path = format!("/namespaces/a/timers/k{rest}");
        assert_eq!(
            rig.call_with(&reader, method, &path, body).await.refused(403, 4),
            "this key may only read",
            "{method} {path}"
        );
    }
    assert_eq!(rig.call_with(&reader, "GET", "/namespaces/a/timers/k", "").await.data("status"), "pending");
}

#[tokio::test]
async fn what_is_no_namespace_or_key_is_named() {
    let rig = Rig::new();
    for (path, message) in [
        ("/namespaces/%ff/timers/k", "namespace must be valid UTF-8"),
        ("/namespaces/n/timers/%ff", "key must be valid UTF-8"),
        ("/namespaces/n/timers/a%00", "key must not contain control characters"),
        ("/namespaces/a%0a/timers/k", "namespace must not contain control characters"),
        ("/namespaces//timers/k", "namespace must have 1 to 255 characters"),
        (&format!("/namespaces/n/timers/{}", "k".repeat(256)), "key must have 1 to 255 characters"),
    ] {
        assert_eq!(rig.get(path).await.refused(400, 2), message, "{path}");
    }
    for path in ["/namespaces/n/timers/", "/namespaces/n/timers/a/b"] {
        assert_eq!(rig.get(path).await.refused(404, 3), "no such route: see /docs", "{path}");
    }
    assert_eq!(rig.get("/namespaces/n/timers/unknown").await.refused(404, 3), "timer not found");
}
