use domain::Next;
use http::HeaderValue;

use super::*;
use crate::rig::{NOW, Reply, Rig, request};

const TIMER: &str = r#"{"delay":"1h","callback":{"type":"http","url":"http://a"},"key":"k"}"#;

async fn expecting(rig: &Rig, method: &str, path: &str, body: &str, if_match: &str) -> Reply {
    let mut request = request(method, path, body);
    request.headers_mut().insert("if-match", HeaderValue::from_str(if_match).unwrap());
    rig.send(request).await
}

fn shown(reply: &Reply) -> (u16, u64, String) {
    let revision = reply.data("revision").as_u64().unwrap_or_else(|| panic!("{}", reply.text));
    (reply.status.as_u16(), revision, reply.headers["etag"].to_str().unwrap().to_owned())
}

#[test]
fn only_a_revision_in_quotes_or_a_star_is_understood() {
    for (text, expected) in [("*", None), ("\"0\"", Some(0)), ("\"7\"", Some(7)), ("\"4294967295\"", Some(u32::MAX))] {
        assert_eq!(IfMatch::parse(text.as_bytes()).unwrap(), IfMatch(expected), "{text}");
    }
    for text in [
        "",
        "abc",
        "7",
        "\"",
        "\"\"",
        "\"7",
        "7\"",
        "W/\"7\"",
        "\"7\", \"8\"",
        "\"7\",*",
        "\"07\"",
        "\"+7\"",
        "\"-7\"",
        "\"7.0\"",
        "\"4294967296\"",
        "\"99999999999999999999\"",
        "\" 7\"",
        "**",
        "\"٧\"",
    ] {
        let refusal = IfMatch::parse(text.as_bytes()).unwrap_err();
        assert_eq!(refusal.field, "If-Match", "{text}");
    }
}

#[tokio::test]
async fn every_answer_with_one_timer_shows_its_revision() {
    let rig = Rig::new();
    let created = rig.call("POST", "/timers", TIMER).await;
    assert_eq!(shown(&created), (201, 1, "\"1\"".to_owned()));
    assert_eq!(shown(&rig.call("POST", "/timers", TIMER).await), (200, 1, "\"1\"".to_owned()));
    let one = format!("/timers/{}", created.data("id").as_str().unwrap());
    assert_eq!(shown(&rig.call("PUT", &one, r#"{"metadata":1}"#).await), (200, 2, "\"2\"".to_owned()));
    assert_eq!(shown(&rig.call("PUT", &one, "{}").await), (200, 2, "\"2\"".to_owned()));
    assert_eq!(shown(&rig.get(&one).await), (200, 2, "\"2\"".to_owned()));
    // The second of each meets what is so already.
    for _ in 0..2 {
        assert_eq!(shown(&rig.call("POST", &format!("{one}/pause"), "").await), (200, 3, "\"3\"".to_owned()));
    }
    for _ in 0..2 {
        assert_eq!(shown(&rig.call("POST", &format!("{one}/resume"), "").await), (200, 4, "\"4\"".to_owned()));
    }
    assert_eq!(shown(&rig.call("POST", &format!("{one}/fire"), "").await), (200, 5, "\"5\"".to_owned()));
    rig.settle_all(&Next::Failed { at: NOW, error: "503".to_owned() }).await;
    assert_eq!(shown(&rig.call("POST", &format!("{one}/retry"), "").await), (200, 6, "\"6\"".to_owned()));
    assert_eq!(shown(&rig.call("DELETE", &one, "").await), (200, 6, "\"6\"".to_owned()));
    let list = rig.get("/timers").await;
    assert_eq!(list.data("timers")[0]["revision"], 6);
    assert!(!list.headers.contains_key("etag"));
}

#[tokio::test]
async fn a_change_of_another_revision_is_a_412_and_changes_nothing() {
    let rig = Rig::new();
    let one = format!("/timers/{}", rig.created(TIMER).await);
    rig.call("PUT", &one, r#"{"metadata":1}"#).await;
    let changes = [
        ("PUT", "", r#"{"metadata":2}"#),
        ("PUT", "", "{}"),
        ("DELETE", "", ""),
        ("POST", "/fire", ""),
        ("POST", "/retry", ""),
        ("POST", "/ping", ""),
        ("POST", "/pause", r#"{"note":"n"}"#),
        ("POST", "/resume", ""),
    ];
    let before = rig.get(&one).await.text;
    for (method, rest, body) in changes {
        let path = format!("{one}{rest}");
        for (if_match, message) in [("\"1\"", "timer has revision 2, not 1"), ("\"3\"", "timer has revision 2, not 3")] {
            let reply = expecting(&rig, method, &path, body, if_match).await;
            assert_eq!(reply.refused(412, 6), message, "{method} {path}");
            assert_eq!(reply.headers["etag"], "\"2\"");
        }
        for garbage in ["abc", "W/\"2\"", "\"2\", \"3\"", "2", "\"\""] {
            let message = expecting(&rig, method, &path, body, garbage).await.refused(400, 2);
            assert!(message.starts_with("If-Match must be"), "{message}");
        }
        let mut twice = request(method, &path, body);
        twice.headers_mut().append("if-match", HeaderValue::from_static("\"2\""));
        twice.headers_mut().append("if-match", HeaderValue::from_static("\"2\""));
        assert!(rig.send(twice).await.refused(400, 2).starts_with("If-Match must be"));
        assert_eq!(rig.get(&one).await.text, before, "{method} {path} {body}");
    }
    // What is paused already stays so only for a client that knows its revision.
    rig.call("POST", &format!("{one}/pause"), "").await;
    let before = rig.get(&one).await.text;
    for rest in ["/pause", "/resume"] {
        let reply = expecting(&rig, "POST", &format!("{one}{rest}"), "", "\"2\"").await;
        assert_eq!(reply.refused(412, 6), "timer has revision 3, not 2", "{rest}");
        assert_eq!(reply.headers["etag"], "\"3\"");
    }
    assert_eq!(rig.get(&one).await.text, before);
    rig.call("POST", &format!("{one}/resume"), "").await;
    // Also where the status would not permit it.
    rig.complete_all().await;
    assert_eq!(expecting(&rig, "DELETE", &one, "", "\"1\"").await.refused(412, 6), "timer has revision 4, not 1");
    assert_eq!(expecting(&rig, "DELETE", &one, "", "\"4\"").await.refused(400, 2), "cannot cancel timer with status 'completed'");
    let unknown = "/timers/01890a5d-ac96-774b-bcce-b302099a8057";
    for any in ["*", "\"1\""] {
        assert_eq!(expecting(&rig, "DELETE", unknown, "", any).await.refused(404, 3), "timer not found");
    }
}

#[tokio::test]
async fn a_ping_of_the_expected_revision_begins_anew_what_has_ended_since() {
    let rig = Rig::new();
    let one = format!("/timers/{}", rig.created(TIMER).await);
    rig.complete_all().await;
    assert_eq!(shown(&rig.get(&one).await), (200, 1, "\"1\"".to_owned()), "an end leaves the revision");
    let reply = expecting(&rig, "POST", &format!("{one}/ping"), "", "\"1\"").await;
    assert_eq!((shown(&reply), reply.data("status")), ((200, 2, "\"2\"".to_owned()), "pending".into()));
}

#[tokio::test]
async fn a_change_of_the_expected_revision_is_made() {
    let rig = Rig::new();
    let one = format!("/timers/{}", rig.created(TIMER).await);
    assert_eq!(expecting(&rig, "PUT", &one, r#"{"metadata":1}"#, "\"1\"").await.headers["etag"], "\"2\"");
    assert_eq!(expecting(&rig, "PUT", &one, r#"{"metadata":2}"#, "*").await.headers["etag"], "\"3\"");
    assert_eq!(expecting(&rig, "POST", &format!("{one}/fire"), "", "\"3\"").await.headers["etag"], "\"4\"");
    rig.settle_all(&Next::Failed { at: NOW, error: "503".to_owned() }).await;
    assert_eq!(expecting(&rig, "POST", &format!("{one}/retry"), "", "\"4\"").await.headers["etag"], "\"5\"");
    assert_eq!(expecting(&rig, "POST", &format!("{one}/ping"), "", "\"5\"").await.headers["etag"], "\"6\"");
    for (verb, if_match, etag, status) in [("pause", "\"6\"", "\"7\"", "paused"), ("resume", "\"7\"", "\"8\"", "pending")] {
        let reply = expecting(&rig, "POST", &format!("{one}/{verb}"), "", if_match).await;
        assert_eq!((reply.status.as_u16(), reply.data("status")), (200, status.into()), "{verb}: {}", reply.text);
        assert_eq!(reply.headers["etag"], etag, "{verb}");
    }
    // A cancel leaves the revision, so that repeating it is no error.
    for _ in 0..2 {
        assert_eq!(expecting(&rig, "DELETE", &one, "", "\"8\"").await.status, 200);
    }
    assert_eq!(expecting(&rig, "DELETE", &one, "", "\"4\"").await.refused(412, 6), "timer has revision 8, not 4");
}
