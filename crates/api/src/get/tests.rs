use serde_json::json;

use crate::rig::Rig;

#[tokio::test]
async fn everything_that_was_given_is_shown() {
    let rig = Rig::new();
    let id = rig
        .created(
            r#"{"delay":"90s","callback":{"type":"http","url":"http://a.example/","headers":{"X-B":"2","X-A":"1"},"payload":{"b":1}},
            "namespace":"n","key":"k","metadata":{"m":true},"correlation_id":"c","delivery":"at_most_once","retry_policy":{"max_retries":1},
            "expires_after":"30m","postpone_max":"1h","group":"g",
            "on_failure":{"type":"http","url":"http://b.example/","payload":[1]}}"#,
        )
        .await;
    let reply = rig.get(&format!("/timers/{id}")).await;
    assert_eq!((reply.status.as_u16(), reply.message().as_str()), (200, "success"));
    assert_eq!(
        reply.json()["data"],
        json!({
            "id": id, "namespace": "n", "key": "k", "group": "g", "status": "pending", "callback_type": "http",
            "execute_at": "2030-01-01T00:01:30Z", "time_left": 90, "executed_at": null,
            "created_at": "2030-01-01T00:00:00Z", "updated_at": "2030-01-01T00:00:00Z", "revision": 1,
            "callback_config": {
                "type": "http", "url": "http://a.example/", "headers": {"X-B": "2", "X-A": "1"}, "payload": {"b": 1},
                "timeout": "30s", "protocol": "webhook",
            },
            "metadata": {"m": true}, "correlation_id": "c", "delivery": "at_most_once", "attempt": 0, "last_error": null,
            "paused_at": null, "pause_note": null, "expires_at": "2030-01-01T00:31:30Z", "expires_after": "30m", "postpone_max": "1h", "on_success": null,
            "on_failure": {
                "type": "http", "url": "http://b.example/", "payload": [1], "timeout": "30s", "protocol": "webhook",
            },
            "retry_policy": {"max_retries": 1, "initial_interval": "30s", "backoff_multiplier": 2.0, "max_interval": "10m"},
        })
    );
}

#[tokio::test]
async fn a_finished_timer_says_when_and_how() {
    let rig = Rig::new();
    let id = rig.created(r#"{"seconds":90,"url":"http://a"}"#).await;
    rig.clock.advance(domain::Span::from_secs(100));
    rig.complete_all().await;
    let reply = rig.get(&format!("/timers/{id}")).await;
    assert_eq!(reply.data("status"), "completed");
    assert_eq!(reply.data("time_left"), 0);
    assert_eq!(reply.data("attempt"), 1);
    assert_eq!(reply.data("executed_at"), "2030-01-01T00:01:40Z");
}

#[tokio::test]
async fn an_id_must_be_a_uuid_of_a_timer() {
    let rig = Rig::new();
    for id in ["1", "x", "01890a5d-ac96-774b-bcce-b302099a805", "01890a5d-ac96-774b-bcce-b302099a805g", "%ff", "%00", "a%2Fb"] {
        for method in ["GET", "PUT", "DELETE"] {
            let reply = rig.call(method, &format!("/timers/{id}"), if method == "PUT" { "{}" } else { "" }).await;
            assert_eq!(reply.refused(400, 2), "id must be a UUID", "{method} {id}");
        }
    }
    for method in ["GET", "PUT", "DELETE"] {
        let body = if method == "PUT" { "{}" } else { "" };
        let reply = rig.call(method, "/timers/01890a5d-ac96-774b-bcce-b302099a8057", body).await;
        assert_eq!(reply.refused(404, 3), "timer not found");
    }
}
