use domain::Span;

use crate::rig::Rig;

const TIMER: &str = r#"{"delay":"1h","callback":{"type":"http","url":"http://a"}}"#;

#[tokio::test]
async fn a_timer_is_postponed_with_and_without_a_body() {
    let rig = Rig::new();
    let id = rig.created(TIMER).await;
    let path = format!("/timers/{id}/ping");
    rig.clock.advance(Span::from_secs(60));
    for (body, due) in [
        ("", "2030-01-01T01:01:00Z"),
        ("{}", "2030-01-01T01:01:00Z"),
        ("null", "2030-01-01T01:01:00Z"),
        (r#"{"delay":"2h"}"#, "2030-01-01T02:01:00Z"),
    ] {
        let reply = rig.call("POST", &path, body).await;
        assert_eq!((reply.status.as_u16(), reply.message().as_str()), (200, "timer postponed successfully"), "{}", reply.text);
        assert_eq!((reply.data("status"), reply.data("execute_at")), ("pending".into(), due.into()), "{body}");
    }
    for (body, message) in [
        (r#"{"delay":"x"}"#, "delay must be a duration such as 90s, 1h30m or PT15M"),
        (r#"{"delay":null}"#, "delay must be a string"),
        (r#"{"by":"1h"}"#, "'by' is not a known field"),
    ] {
        assert_eq!(rig.call("POST", &path, body).await.refused(400, 2), message, "{body}");
    }
}

#[tokio::test]
async fn what_has_ended_begins_anew_unless_it_was_canceled() {
    let rig = Rig::new();
    let id = rig.created(TIMER).await;
    let path = format!("/timers/{id}/ping");
    rig.complete_all().await;
    assert_eq!(rig.call("POST", &path, "").await.data("status"), "pending");
    rig.call("DELETE", &format!("/timers/{id}"), "").await;
    assert_eq!(rig.call("POST", &path, "").await.refused(409, 6), "cannot ping timer with status 'canceled'");
    let unknown = "/timers/01890a5d-ac96-774b-bcce-b302099a8057/ping";
    assert_eq!(rig.call("POST", unknown, "").await.refused(404, 3), "timer not found");
}
