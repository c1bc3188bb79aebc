//! What receivers get, and what becomes of timers whose calls fail.

use std::time::Duration;

use serde_json::json;

use crate::rig::{
    Backend, Receiver, Reply, Service, beside_others, callback_to, for_each_store, instant, micros, now, wait_for_wall,
};

const SOON: Duration = Duration::from_secs(10);

for_each_store!(
    payload_and_metadata_arrive_and_return_as_the_text_they_were,
    the_short_form_posts_to_the_url_with_the_id_appended,
    a_receiver_gets_every_header_that_was_promised,
    a_call_that_fails_makes_a_failed_timer_with_the_reason,
    a_retry_policy_repeats_a_failed_call_under_the_same_webhook_id,
    retries_of_a_millisecond_come_a_second_apart_unless_it_is_configured,
    what_is_later_than_the_overdue_window_expires_with_a_reason,
    metrics_and_documentation_are_served,
    repeating_a_create_with_a_key_never_fires_again,
);

async fn payload_and_metadata_arrive_and_return_as_the_text_they_were(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::start();
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let payloads = [
        r#"{"z":1.10,"a":12345678901234567890,"m":1e400,"n":-0,"z2":"\u00e9 é e\u0301 😀","list":[1, 2 ,3]}"#,
        r#""just a text""#,
        "null",
        "0.1000",
        r#"{ "b" : 1 , "a" : {} }"#,
    ];
    for payload in payloads {
        let body = format!(
            r#"{{"delay":"1ms","metadata":{payload},"callback":{{"type":"http","url":"{}","payload":{payload}}}}}"#,
            receiver.url("/verbatim")
        );
        let seen = receiver.count();
        let created = client.post(&body).await;
        assert_eq!(created.status, 201, "{}", created.text);
        let calls = receiver.wait_for(seen + 1, SOON).await;
        assert_eq!(calls[seen].body, payload);
        let shown = client.get(&format!("/timers/{}", created.id())).await.text;
        assert!(shown.contains(&format!(r#""payload":{payload}"#)), "{payload} in {shown}");
        if payload != "null" {
            assert!(shown.contains(&format!(r#""metadata":{payload}"#)), "{payload} in {shown}");
        }
    }
    service.stop().await;
}

async fn the_short_form_posts_to_the_url_with_the_id_appended(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::start();
    let mut service = Service::start_with(&backend, &[]).await;
    let client = service.client();
    let asked = now();
    let answer =
        client.post(&json!({"hours": 0, "minutes": 0, "seconds": 1, "url": receiver.url("/short/form")}).to_string()).await;
    assert_eq!((answer.status, answer.message().as_str()), (201, "timer created successfully"), "{}", answer.text);
    assert_eq!(answer.json()["data"]["time_left"], 1, "{}", answer.text);
    let call = &receiver.wait_for(1, SOON).await[0];
    assert_eq!((call.method.as_str(), call.path.as_str()), ("POST", format!("/short/form/{}", answer.id()).as_str()));
    assert!(call.arrived >= asked + 1_000_000, "early");
    client.wait_for_status(&answer.id(), "completed").await;
    service.stop().await;
}

async fn a_receiver_gets_every_header_that_was_promised(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::start();
    let secret = ("SIGNING_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s"), secret]).await;
    let client = service.client();
    let at = now() + 300_000;
    let mut callback = callback_to(&receiver.url("/headers?q=1"), &json!({"a": 1}));
    callback["headers"] = json!({"X-Custom": "mine", "Authorization": "Bearer token"});
    let timer =
        json!({"execute_at": instant(at), "namespace": "shop", "key": "order-1", "correlation_id": "c-7", "callback": callback});
    let id = client.create(&timer).await;
    let call = &receiver.wait_for(1, SOON).await[0];

    assert_eq!((call.method.as_str(), call.path.as_str()), ("POST", "/headers?q=1"));
    for (name, value) in [
        ("x-timer-id", id.as_str()),
        ("x-timer-namespace", "shop"),
        ("x-timer-attempt", "1"),
        ("x-correlation-id", "c-7"),
        ("content-type", "application/json"),
        ("user-agent", concat!("timer-platform/", env!("CARGO_PKG_VERSION"))),
        ("x-custom", "mine"),
        ("authorization", "Bearer token"),
    ] {
        assert_eq!(call.header(name), value, "{name}");
    }
    assert_eq!(micros(call.header("x-timer-scheduled-at")), at);
    assert!(!call.header("webhook-id").is_empty());
    let stamp: i64 = call.header("webhook-timestamp").parse().expect("seconds");
    assert!((stamp - now() / 1_000_000).abs() <= 30, "{stamp}");
    assert!(call.header("webhook-signature").starts_with("v1,"), "{call:?}");
    assert!(!service.log().contains("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") && !service.log().contains("Bearer token"));
    service.stop().await;
}

async fn a_call_that_fails_makes_a_failed_timer_with_the_reason(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::replying(|call| match call.path.as_str() {
        "/broken" => Reply::Status(500),
        "/moved" => Reply::Status(302),
        _ => Reply::Never,
    });
    let mut service = Service::start(&backend).await;
    let client = service.client();
    // No receiver listens there once the listener is gone.
    let closed = format!("http://127.0.0.1:{}/", throwaway::free_port());
    let mut hanging = callback_to(&receiver.url("/hangs"), &json!(1));
    hanging["timeout"] = json!("200ms");
    for (callback, reason) in [
        (callback_to(&receiver.url("/broken"), &json!(1)), "500"),
        (callback_to(&receiver.url("/moved"), &json!(1)), "302"),
        (callback_to(&closed, &json!(1)), "refused"),
        (hanging, "200ms"),
    ] {
        let id = client.create(&json!({"delay": "1ms", "callback": callback})).await;
        let timer = client.wait_for_status(&id, "failed").await;
        assert!(timer["last_error"].as_str().is_some_and(|error| error.contains(reason)), "{reason} in {timer}");
        assert_eq!(timer["attempt"], 1, "{timer}");
        assert!(timer["executed_at"].is_string(), "{timer}");
    }
    assert_eq!(receiver.count(), 3, "each is tried once");
    service.stop().await;
}

async fn a_retry_policy_repeats_a_failed_call_under_the_same_webhook_id(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::replying(|call| Reply::Status(if call.header("x-timer-attempt") == "1" { 503 } else { 200 }));
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let policy = json!({"max_retries": 3, "initial_interval": "200ms"});
    let timer =
        json!({"delay": "1ms", "retry_policy": policy, "callback": callback_to(&receiver.url("/again"), &json!({"n": 1}))});
    let id = client.create(&timer).await;
    let calls = receiver.wait_for(2, SOON).await;
    let timer = client.wait_for_status(&id, "completed").await;

    assert_eq!(receiver.count(), 2);
    assert_eq!([calls[0].header("x-timer-attempt"), calls[1].header("x-timer-attempt")], ["1", "2"]);
    assert_eq!(calls[0].header("webhook-id"), calls[1].header("webhook-id"));
    assert_eq!(calls[0].header("x-timer-scheduled-at"), calls[1].header("x-timer-scheduled-at"));
    assert_eq!(calls[0].body, calls[1].body);
    // 200 ms, less a tenth of chance.
    assert!(calls[1].arrived - calls[0].arrived >= 180_000, "{} µs", calls[1].arrived - calls[0].arrived);
    assert_eq!(timer["attempt"], 2, "{timer}");
    service.stop().await;
}

async fn retries_of_a_millisecond_come_a_second_apart_unless_it_is_configured(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::replying(|_| Reply::Status(500));
    // Empty is as good as unset.
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s"), ("RETRY_INTERVAL_MIN", "")]).await;
    let client = service.client();
    let policy = json!({"max_retries": 2, "initial_interval": "1ms", "backoff_multiplier": 1, "max_interval": "1ms"});
    let callback = callback_to(&receiver.url("/fails"), &json!(null));
    let id = client.create(&json!({"delay": "1ms", "callback": callback, "retry_policy": policy})).await;
    client.wait_for_status(&id, "failed").await;
    let arrived: Vec<i64> = receiver.calls().iter().map(|call| call.arrived).collect();
    assert_eq!(arrived.len(), 3);
    assert!(arrived.windows(2).all(|pair| pair[1] - pair[0] >= 990_000), "{arrived:?}");
    service.stop().await;
}

async fn what_is_later_than_the_overdue_window_expires_with_a_reason(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::start();
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s"), ("OVERDUE_WINDOW", "10s")]).await;
    let client = service.client();
    let register = async |delay: &str| {
        client.create(&json!({"delay": delay, "callback": callback_to(&receiver.url("/late"), &json!(1))})).await
    };
    let (late, too_late) = (register("14s").await, register("3s").await);
    service.stop().await;

    // The one is eleven seconds late by then, and the other is just due.
    wait_for_wall(now() + 14_000_000).await;
    service.start_again().await;
    let client = service.client();
    let expired = client.wait_for_status(&too_late, "expired").await;
    client.wait_for_status(&late, "completed").await;

    assert!(expired["last_error"].as_str().is_some_and(|error| error.contains("OVERDUE_WINDOW")), "{expired}");
    assert_eq!(expired["attempt"], 0, "nothing was sent: {expired}");
    let calls = receiver.calls();
    assert_eq!(calls.iter().map(|call| call.timer_id()).collect::<Vec<_>>(), [late.as_str()]);
    service.stop().await;
}

async fn metrics_and_documentation_are_served(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::replying(|call| Reply::Status(if call.path == "/broken" { 500 } else { 200 }));
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let done = client.create(&json!({"delay": "1ms", "callback": callback_to(&receiver.url("/"), &json!(1))})).await;
    let failed = client.create(&json!({"delay": "1ms", "callback": callback_to(&receiver.url("/broken"), &json!(1))})).await;
    let canceled = client.create(&json!({"delay": "1d", "callback": callback_to(&receiver.url("/"), &json!(1))})).await;
    assert!(client.try_cancel(&canceled).await.is_ok_and(|answer| answer.status == 200));
    client.wait_for_status(&done, "completed").await;
    client.wait_for_status(&failed, "failed").await;

    let promised = [
        "timer_created_total{result=\"created\"} 3",
        "timer_fired_total 2",
        "timer_completed_total 1",
        "timer_failed_total 1",
        "timer_canceled_total 1",
        "timer_claims_total 2",
        "timer_pending_in_memory ",
        "timer_lateness_seconds_bucket{",
        "timer_callback_duration_seconds_bucket{",
        "timer_store_call_duration_seconds_bucket{",
        "timer_store_batch_size_bucket{",
        "timer_claim_batch_size_bucket{",
    ];
    let metrics = client.get("/metrics").await.text;
    let missing: Vec<_> = promised.iter().filter(|line| !metrics.contains(**line)).collect();
    assert!(missing.is_empty(), "{missing:?} in\n{metrics}");

    let document = client.get("/openapi.json").await;
    assert_eq!(document.status, 200);
    assert!(document.json()["paths"]["/timers/{id}"]["put"].is_object());
    let page = client.get("/docs").await;
    assert_eq!(page.status, 200);
    assert!(page.headers["content-type"].to_str().is_ok_and(|kind| kind.starts_with("text/html")), "{:?}", page.headers);
    for foreign in ["src=\"http", "href=\"http", "@import", "//cdn"] {
        assert!(!page.text.contains(foreign), "{foreign} in the documentation page");
    }
    let pong = client.get("/ping").await;
    assert_eq!((pong.status, pong.message().as_str()), (200, "pong"));
    let health = client.get("/healthz").await;
    assert_eq!((health.status, health.message().as_str()), (200, "healthy"));
    service.stop().await;
}

async fn repeating_a_create_with_a_key_never_fires_again(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::start();
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let timer = json!({"delay": "1ms", "key": "once", "callback": callback_to(&receiver.url("/once"), &json!(1))}).to_string();
    let first = client.post(&timer).await;
    assert_eq!(first.status, 201, "{}", first.text);
    client.wait_for_status(&first.id(), "completed").await;

    let again = client.post(&timer).await;
    assert_eq!((again.status, again.message().as_str(), again.id()), (200, "timer already exists", first.id()), "{}", again.text);
    let other = json!({"delay": "2ms", "key": "once", "callback": callback_to(&receiver.url("/other"), &json!(1))});
    let other = client.post(&other.to_string()).await;
    assert_eq!((other.status, &other.json()["code"]), (409, &json!(6)), "{}", other.text);
    client.wait_until_finished(SOON).await;
    assert_eq!(receiver.count(), 1);
    service.stop().await;
}
