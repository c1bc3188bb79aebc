use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use dev::{Advance, AdvanceClock, AdvanceError, Advanced, Answers, Arrival, DevTools, Inbox};
use domain::{Span, Timestamp};
use serde_json::json;

use crate::rig::{NOW, Rig};

/// Notes what it is asked for.
#[derive(Default)]
struct Noted(Mutex<Vec<(Advance, Duration)>>);

#[async_trait]
impl AdvanceClock for Noted {
    async fn advance(&self, by: Advance, timeout: Duration) -> Result<Advanced, AdvanceError> {
        self.0.lock().unwrap().push((by, timeout));
        match by {
            Advance::To(at) if at <= NOW => Err(AdvanceError::Past),
            Advance::UntilIdle => Err(AdvanceError::NotMovable),
            _ => Ok(Advanced { now: NOW, fired: 3, completed: 1, failed: 1, expired: 0, pending: 2, next: None, complete: true }),
        }
    }
}

fn rig() -> (Rig, DevTools, Arc<Noted>) {
    let noted = Arc::new(Noted::default());
    let tools = DevTools { inbox: Arc::new(Inbox::default()), answers: Arc::new(Answers::default()), clock: noted.clone() };
    (Rig::with_dev_tools(tools.clone()), tools, noted)
}

fn arrival(timer: &str) -> Arrival {
    Arrival {
        at: NOW,
        lateness_ms: Some(2),
        timer_id: Some(timer.to_owned()),
        attempt: Some(1),
        method: "POST".to_owned(),
        path: "/x?a=1".to_owned(),
        headers: BTreeMap::from([("webhook-id".to_owned(), "w".to_owned())]),
        body: "{\"n\": 1.10}".to_owned(),
        signature_valid: Some(true),
        answered: Some(200),
    }
}

#[tokio::test]
async fn a_service_without_these_tools_knows_no_such_routes() {
    let rig = Rig::new();
    for (method, path) in [("GET", "/dev/inbox"), ("PUT", "/dev/inbox/answers"), ("POST", "/dev/clock/advance")] {
        rig.call(method, path, "{}").await.refused(404, 3);
    }
}

#[tokio::test]
async fn only_the_administrator_may_use_them() {
    let (rig, ..) = rig();
    let key = rig.issued("null", "write").await;
    for (method, path) in
        [("GET", "/dev/inbox"), ("DELETE", "/dev/inbox"), ("PUT", "/dev/inbox/answers"), ("POST", "/dev/clock/advance")]
    {
        rig.call_with(&key, method, path, "{}").await.refused(403, 4);
        rig.call_with("wrong", method, path, "{}").await.refused(401, 4);
    }
}

#[tokio::test]
async fn calls_are_listed_by_filter_and_the_inbox_is_emptied() {
    let (rig, tools, _) = rig();
    tools.inbox.record(arrival("a"));
    tools.inbox.record(arrival("b"));
    let listed = rig.get("/dev/inbox?timer=b&path=/x&after=1&limit=5&wait=10s").await.json();
    assert_eq!(
        listed["data"]["calls"],
        json!([{"seq": 2, "at": "2030-01-01T00:00:00Z", "lateness_ms": 2, "timer_id": "b", "attempt": 1, "method": "POST",
            "path": "/x?a=1", "headers": {"webhook-id": "w"}, "body": "{\"n\": 1.10}", "signature_valid": true, "answered": 200,
            "duplicate_of": 1}])
    );
    for (query, message) in [
        ("limit=0", "limit must be a whole number from 1 to 1000"),
        ("after=x", "after must be a whole number from 0 to 18446744073709551615"),
        ("wait=2m", "wait must not be longer than 1m"),
        ("page=1", "'page' is not a known parameter"),
    ] {
        assert_eq!(rig.get(&format!("/dev/inbox?{query}")).await.refused(400, 2), message);
    }
    assert_eq!(rig.call("DELETE", "/dev/inbox", "").await.data("deleted"), 2);
    assert_eq!(rig.get("/dev/inbox").await.data("calls"), json!([]));
}

#[tokio::test]
async fn answers_are_programmed_as_a_whole() {
    let (rig, tools, _) = rig();
    let body = json!({"answers": [
        {"path": "/x", "status": 503, "headers": {"Retry-After": "7"}, "body": "busy", "delay": "1s", "times": 2},
        {"path": "/x", "hang": true},
        {"body": {"ok": false}},
    ]});
    assert_eq!(rig.call("PUT", "/dev/inbox/answers", &body.to_string()).await.data("answers"), 3);
    let taken = tools.answers.take("/x").unwrap();
    let reply = taken.reply.unwrap();
    assert_eq!((taken.delay, reply.status.as_u16(), reply.body.as_ref()), (Duration::from_secs(1), 503, &b"busy"[..]));
    assert_eq!(reply.headers["retry-after"], "7");
    tools.answers.take("/x").unwrap();
    assert_eq!(tools.answers.take("/x").unwrap().reply, None);
    let other = tools.answers.take("/y").unwrap().reply.unwrap();
    assert_eq!((other.status.as_u16(), other.body.as_ref()), (200, &br#"{"ok":false}"#[..]));
    for (answers, message) in [
        (json!({}), "answers is required"),
        (json!({"answers": 1}), "answers must be an array"),
        (json!({"answers": [{"path": "x"}]}), "answers.0.path must begin with /"),
        (json!({"answers": [{}, {"status": 99}]}), "answers.1.status must be a whole number from 200 to 599"),
        (
            json!({"answers": [{"headers": {"a b": "c"}}]}),
            "answers.0.headers must be an object with strings that are fit to be headers",
        ),
        (json!({"answers": [{"delay": "1h"}]}), "answers.0.delay must not be longer than 600 s"),
        (json!({"answers": [{"hang": 1}]}), "answers.0.hang must be true or false"),
        (json!({"answers": [{"wait": 1}]}), "answers.0.'wait' is not a known field"),
    ] {
        assert_eq!(rig.call("PUT", "/dev/inbox/answers", &answers.to_string()).await.refused(400, 2), message);
    }
    assert!(tools.answers.take("/y").is_some(), "what was refused has changed nothing");
    assert_eq!(rig.call("PUT", "/dev/inbox/answers", r#"{"answers": []}"#).await.data("answers"), 0);
    assert!(tools.answers.take("/y").is_none());
}

#[tokio::test]
async fn the_clock_is_moved_in_one_of_four_ways() {
    let (rig, _, noted) = rig();
    let advanced = rig.call("POST", "/dev/clock/advance", r#"{"by": "30d"}"#).await;
    assert_eq!(
        advanced.json()["data"],
        json!({"now": "2030-01-01T00:00:00Z", "fired": 3, "completed": 1, "failed": 1, "expired": 0, "pending": 2, "next": null,
            "complete": true})
    );
    rig.call("POST", "/dev/clock/advance", r#"{"to": "2030-02-01T00:00:00Z", "timeout": "2s"}"#).await;
    rig.call("POST", "/dev/clock/advance", r#"{"until": "next"}"#).await;
    assert_eq!(
        *noted.0.lock().unwrap(),
        [
            (Advance::By(Span::from_secs(30 * 86_400)), Duration::from_secs(30)),
            (Advance::To(Timestamp::parse("to", "2030-02-01T00:00:00Z").unwrap()), Duration::from_secs(2)),
            (Advance::UntilNext, Duration::from_secs(30)),
        ]
    );
    for (body, message) in [
        (r#"{"to": "2029-01-01T00:00:00Z"}"#, "to must be in the future"),
        (r#"{"until": "idle"}"#, "the clock can be moved only beside an SQLite file: this database has its own"),
        (r#"{"until": "noon"}"#, "until must be next or idle"),
        ("{}", "exactly one of by, to and until must be given"),
        (r#"{"by": "1s", "until": "next"}"#, "exactly one of by, to and until must be given"),
        (r#"{"by": "1s", "timeout": "1h"}"#, "timeout must not be longer than 10m"),
        (r#"{"by": "soon"}"#, "by must be a duration such as 90s, 1h30m or PT15M"),
    ] {
        assert_eq!(rig.call("POST", "/dev/clock/advance", body).await.refused(400, 2), message, "{body}");
    }
}
