use domain::{Attempt, Next, ReceivedAnswer, Span};
use serde_json::json;
use store::Settlement;

use crate::rig::{NOW, Rig};

const TIMER: &str = r#"{"seconds":90,"url":"http://a"}"#;

#[tokio::test]
async fn every_remembered_attempt_is_told_the_oldest_first() {
    let rig = Rig::new();
    let id = rig.created(TIMER).await;
    let path = format!("/timers/{id}/attempts");
    let nothing = rig.get(&path).await;
    assert_eq!((nothing.status.as_u16(), nothing.message().as_str()), (200, "success"));
    assert_eq!(nothing.json()["data"], json!({"attempts": []}));

    let first = Attempt {
        number: 1,
        started_at: NOW.saturating_add(Span::from_secs(90)),
        took: Span::from_micros(37_999),
        outcome: "status_5xx".to_owned(),
        status: Some(503),
        detail: Some("out of stock".to_owned()),
        node: Some("host-1:8080".to_owned()),
        answer: Some(ReceivedAnswer::new(vec![("server".to_owned(), "x".to_owned())], b"out of stock")),
    };
    let second = Attempt {
        number: 2,
        outcome: "refused".to_owned(),
        status: None,
        detail: None,
        node: None,
        answer: None,
        ..first.clone()
    };
    let third = Attempt { number: 3, answer: Some(ReceivedAnswer::new(Vec::new(), b"\xff\x00")), ..first.clone() };
    for attempt in [first, second, third] {
        let claimed = rig.claim_all().await;
        let next = Next::Pending { at: NOW, attempt: attempt.number, error: None };
        let settlement = Settlement { attempt: Some(attempt), ..claimed[0].settle(next) };
        assert_eq!(rig.store.settle(&[settlement]).await.unwrap(), [true]);
    }
    assert_eq!(
        rig.get(&path).await.json()["data"],
        json!({"attempts": [
            {"number": 1, "started_at": "2030-01-01T00:01:30Z", "took_ms": 37, "outcome": "status_5xx", "status": 503, "detail": "out of stock",
                "node": "host-1:8080", "answer": {"headers": {"server": "x"}, "body": "out of stock", "body_base64": null}},
            {"number": 2, "started_at": "2030-01-01T00:01:30Z", "took_ms": 37, "outcome": "refused", "status": null, "detail": null,
                "node": null, "answer": null},
            {"number": 3, "started_at": "2030-01-01T00:01:30Z", "took_ms": 37, "outcome": "status_5xx", "status": 503, "detail": "out of stock",
                "node": "host-1:8080", "answer": {"headers": {}, "body": null, "body_base64": "/wA="}},
        ]})
    );
}

#[tokio::test]
async fn what_is_no_timer_has_no_attempts() {
    let rig = Rig::new();
    assert_eq!(rig.get("/timers/x/attempts").await.refused(400, 2), "id must be a UUID");
    let unknown = "/timers/01890a5d-ac96-774b-bcce-b302099a8057/attempts";
    assert_eq!(rig.get(unknown).await.refused(404, 3), "timer not found");
}
