//! Timers that fire when nothing has come for a while: debouncing, and a dead man's switch.

use std::time::Duration;

use serde_json::json;

use crate::rig::{Backend, Receiver, Service, beside_others, callback_to, eventually, for_each_store, micros, now};

const SOON: Duration = Duration::from_secs(20);
const DELAY_MICROS: i64 = 2_000_000;

for_each_store!(
    of_many_requests_in_a_row_only_the_last_one_fires,
    a_timer_that_is_pinged_fires_when_the_pings_stop_or_the_limit_has_come,
    the_earliest_or_the_latest_of_many_times_wins,
);

async fn of_many_requests_in_a_row_only_the_last_one_fires(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::start();
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s")]).await;
    let client = service.client();
    let request = json!({
        "key": "search", "delay": "2s", "on_conflict": "postpone", "callback": callback_to(&receiver.url("/"), &json!(1)),
    });
    let mut last = 0;
    for n in 0..8 {
        last = now();
        let answer = client.post(&request.to_string()).await;
        assert_eq!(answer.status, if n == 0 { 201 } else { 200 }, "{}", answer.text);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let calls = receiver.wait_for(1, SOON).await;
    assert!(calls[0].arrived >= last + DELAY_MICROS, "it waits for two seconds after the last request");
    let id = calls[0].timer_id().to_owned();
    client.wait_for_status(&id, "completed").await;
    // The next one begins a new life.
    let answer = client.post(&request.to_string()).await;
    assert_eq!((answer.status, answer.id()), (200, id.clone()), "{}", answer.text);
    receiver.wait_for(2, SOON).await;
    client.wait_for_status(&id, "completed").await;
    assert_eq!(receiver.count(), 2);
    let refused = json!({
        "key": "search", "execute_at": "2099-01-01T00:00:00Z", "on_conflict": "postpone",
        "callback": callback_to(&receiver.url("/"), &json!(1)),
    });
    let answer = client.post(&refused.to_string()).await;
    assert_eq!((answer.status, answer.message().as_str()), (400, "delay is required with on_conflict postpone"));
    service.stop().await;
}

async fn a_timer_that_is_pinged_fires_when_the_pings_stop_or_the_limit_has_come(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::start();
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s")]).await;
    let client = service.client();
    let began = now();
    let watched = client.create(&json!({"delay": "2s", "callback": callback_to(&receiver.url("/watched"), &json!(1))})).await;
    let limit = "5s";
    let limited = client
        .create(&json!({"delay": "2s", "postpone_max": limit, "callback": callback_to(&receiver.url("/limited"), &json!(1))}))
        .await;
    let (mut last, mut is_limited_called) = (began, false);
    while !is_limited_called {
        last = now();
        let answer = client.send("POST", &format!("/timers/{watched}/ping"), None).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        // It begins anew where it has fired, and is refused at the very moment of its call.
        if receiver.calls().iter().all(|call| call.path != "/limited") {
            let answer = client.send("POST", &format!("/timers/{limited}/ping"), None).await;
            assert!([200, 409].contains(&answer.status), "{}", answer.text);
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        is_limited_called = receiver.calls().iter().any(|call| call.path == "/limited");
        assert!(receiver.calls().iter().all(|call| call.path != "/watched"), "it is pinged all the time");
    }
    let called = receiver.calls();
    let at_the_limit = called.iter().find(|call| call.path == "/limited").expect("a call");
    assert!(at_the_limit.arrived >= began + 5_000_000, "not before its limit, though it was due every two seconds");
    let look = async || receiver.calls().into_iter().find(|call| call.path == "/watched");
    let watched_call = eventually("the call of what is pinged no more", SOON, look).await;
    assert!(watched_call.arrived >= last + DELAY_MICROS, "two seconds after the last ping");
    service.stop().await;
}

async fn the_earliest_or_the_latest_of_many_times_wins(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s")]).await;
    let client = service.client();
    for (mode, expected) in [("earliest", "2097-01-01T00:00:00Z"), ("latest", "2099-01-01T00:00:00Z")] {
        for year in [2098, 2097, 2099] {
            let request = json!({
                "key": mode, "on_conflict": mode, "execute_at": format!("{year}-01-01T00:00:00Z"),
                "callback": callback_to("http://127.0.0.1:9/", &json!(year)),
            });
            let answer = client.post(&request.to_string()).await;
            assert!(answer.status < 300, "{}", answer.text);
        }
        let timers = client.get("/timers").await.json()["data"]["timers"].clone();
        let timer = timers.as_array().expect("a list").iter().find(|timer| timer["key"] == mode).expect("the timer").clone();
        assert_eq!(micros(timer["execute_at"].as_str().expect("a time")), micros(expected), "{mode}: {timer}");
    }
    service.stop().await;
}
