use domain::Span;

use crate::rig::Rig;

const TIMER: &str = r#"{"delay":"1h","callback":{"type":"http","url":"http://a"}}"#;

#[tokio::test]
async fn a_timer_is_paused_shown_and_resumed() {
    let rig = Rig::new();
    let id = rig.created(TIMER).await;
    let path = format!("/timers/{id}");
    for _ in 0..2 {
        let reply = rig.call("POST", &format!("{path}/pause"), r#"{"note":"why"}"#).await;
        assert_eq!((reply.status.as_u16(), reply.message().as_str()), (200, "timer paused successfully"), "{}", reply.text);
        assert_eq!(reply.data("status"), "paused");
    }
    let shown = rig.call("GET", &path, "").await;
    assert_eq!((shown.data("paused_at"), shown.data("pause_note")), ("2030-01-01T00:00:00Z".into(), "why".into()));
    assert_eq!(rig.call("GET", "/timers?status=paused", "").await.data("total"), 1);
    assert_eq!(rig.call("POST", &format!("{path}/fire"), "").await.refused(409, 6), "cannot fire timer with status 'paused'");
    for _ in 0..2 {
        let reply = rig.call("POST", &format!("{path}/resume"), "").await;
        assert_eq!((reply.status.as_u16(), reply.message().as_str()), (200, "timer resumed successfully"), "{}", reply.text);
        assert_eq!(reply.data("status"), "pending");
    }
    let shown = rig.call("GET", &path, "").await;
    assert_eq!((shown.data("paused_at"), shown.data("pause_note")), (serde_json::Value::Null, serde_json::Value::Null));
}

#[tokio::test]
async fn one_that_was_due_meanwhile_may_expire() {
    let rig = Rig::new();
    let id = rig.created(TIMER).await;
    rig.call("POST", &format!("/timers/{id}/pause"), "").await;
    rig.clock.advance(Span::from_secs(7200));
    let reply = rig.call("POST", &format!("/timers/{id}/resume"), r#"{"missed":"expire"}"#).await;
    assert_eq!(reply.data("status"), "expired", "{}", reply.text);
    assert_eq!(rig.call("GET", &format!("/timers/{id}"), "").await.data("last_error"), "was due while it was paused");
}

#[tokio::test]
async fn what_is_executing_or_has_ended_is_a_conflict() {
    let rig = Rig::new();
    let id = rig.created(TIMER).await;
    rig.claim_all().await;
    let pause = format!("/timers/{id}/pause");
    assert_eq!(rig.call("POST", &pause, "").await.refused(409, 6), "cannot pause timer with status 'executing'");
    let rig = Rig::new();
    let id = rig.created(TIMER).await;
    rig.complete_all().await;
    for verb in ["pause", "resume"] {
        let refusal = rig.call("POST", &format!("/timers/{id}/{verb}"), "{}").await.refused(409, 6);
        assert_eq!(refusal, format!("cannot {verb} timer with status 'completed'"));
    }
}

#[tokio::test]
async fn bodies_are_judged_and_may_be_missing() {
    let rig = Rig::new();
    let id = rig.created(TIMER).await;
    let long = format!(r#"{{"note":"{}"}}"#, "é".repeat(256));
    for (verb, body, refusal) in [
        ("pause", r#"{"why":"x"}"#, "'why' is not a known field"),
        ("pause", r#"{"note":7}"#, "note must be a string"),
        ("pause", &long, "note must not be longer than 255 characters"),
        ("resume", r#"{"missed":"later"}"#, "missed must be fire or expire"),
        ("resume", "[]", "the body must be a JSON object"),
    ] {
        assert_eq!(rig.call("POST", &format!("/timers/{id}/{verb}"), body).await.refused(400, 2), refusal, "{body}");
    }
    let unknown = "/timers/01890a5d-ac96-774b-bcce-b302099a8057/pause";
    assert_eq!(rig.call("POST", unknown, "").await.refused(404, 3), "timer not found");
}
