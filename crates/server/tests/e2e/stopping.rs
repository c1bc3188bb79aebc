//! SIGTERM and ctrl-C: calls under way are finished, nothing is called twice, and a second signal does not wait.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use crate::rig::{Backend, Client, Receiver, Reply, Service, beside_others, callback_to, for_each_store, now, tolerated};

/// Much shorter than the half minute for which a call that hangs is waited for.
const AT_ONCE_SECONDS_MAX: f64 = 3.0;
const CALLS: usize = 20;
const CALL_TIME: Duration = Duration::from_millis(1_500);
/// With half a second until the timer is due, and yet shorter than the lease of a shard (3.5 s).
const HAND_OVER_SECONDS_MAX: f64 = 3.0;

for_each_store!(
    calls_under_way_are_finished_before_a_stop_and_not_made_again,
    a_second_signal_ends_the_service_at_once,
    a_stopped_service_hands_its_timers_to_the_next_at_once,
    ctrl_c_stops_in_order_and_a_second_one_at_once,
);

async fn calls_under_way_are_finished_before_a_stop_and_not_made_again(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let timer = json!({"delay": "100ms", "callback": callback_to(&receiver.url("/slow"), &json!(1))});
    let ids = join_all((0..CALLS).map(async |_| client.create(&timer).await)).await;
    let later = client.create(&json!({"delay": "1h", "callback": callback_to(&receiver.url("/later"), &json!(1))})).await;
    receiver.wait_for(CALLS, Duration::from_secs(10)).await;

    let asked = now();
    service.stop_with_calls_under_way().await;
    let took = (now() - asked) as f64 / 1e6;
    println!("{}: stopped with {CALLS} calls under way in {took:.2} s", backend.name());

    service.start_again().await;
    let client = service.client();
    for id in &ids {
        let timer = client.timer(id).await;
        assert_eq!(timer["status"], "completed", "{timer}");
        assert_eq!(timer["attempt"], 1, "{timer}");
    }
    assert_eq!(client.timer(&later).await["status"], "pending");
    assert_eq!(receiver.count(), CALLS, "none was made again");
    service.stop().await;
}

async fn a_second_signal_ends_the_service_at_once(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::replying(|_| Reply::Never);
    let mut service = Service::start(&backend).await;
    let client = service.client();
    client.create(&json!({"delay": "1ms", "callback": callback_to(&receiver.url("/hangs"), &json!(1))})).await;
    receiver.wait_for(1, Duration::from_secs(10)).await;

    service.ask_to_stop();
    service.wait_for_log("stopping").await;
    assert!(service.is_running(), "it waits for the call under way");
    let asked = now();
    service.ask_to_stop();
    let status = service.wait_for_end().await;
    let took = (now() - asked) as f64 / 1e6;

    assert_eq!(status.code(), Some(1), "{status}");
    assert!(took < tolerated(AT_ONCE_SECONDS_MAX), "{took} s");
}

/// A node that stops in order gives its shards back: the next one does not wait for their leases.
async fn a_stopped_service_hands_its_timers_to_the_next_at_once(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::start();
    let mut service = Service::start(&backend).await;
    let id =
        service.client().create(&json!({"delay": "500ms", "callback": callback_to(&receiver.url("/next"), &json!(1))})).await;
    service.stop().await;
    let ended = now();
    assert_eq!(receiver.count(), 0, "stopped before it was due");

    service.start_again().await;
    let calls = receiver.wait_for(1, Duration::from_secs(10)).await;
    service.client().wait_for_status(&id, "completed").await;
    let gap = (calls[0].arrived - ended) as f64 / 1e6;
    println!("{}: the next one called {gap:.2} s after the end of the one before", backend.name());
    assert!(gap < HAND_OVER_SECONDS_MAX, "{gap} s");
    service.stop().await;
}

async fn ctrl_c_stops_in_order_and_a_second_one_at_once(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::replying(|call| if call.path == "/slow" { Reply::OkAfter(CALL_TIME) } else { Reply::Never });
    let mut service = Service::start(&backend).await;
    let register = async |client: &Client, path: &str| {
        client.create(&json!({"delay": "1ms", "callback": callback_to(&receiver.url(path), &json!(1))})).await
    };
    let slow = register(&service.client(), "/slow").await;
    receiver.wait_for(1, Duration::from_secs(10)).await;
    service.signal("INT");
    let status = service.wait_for_end().await;
    assert_eq!(status.code(), Some(0), "{status}");

    service.start_again().await;
    let client = service.client();
    assert_eq!(client.timer(&slow).await["status"], "completed");
    register(&client, "/hangs").await;
    receiver.wait_for(2, Duration::from_secs(10)).await;
    assert_eq!(receiver.count(), 2, "the first call is not made again");
    service.signal("INT");
    crate::rig::eventually("it takes no more requests", Duration::from_secs(10), async || {
        client.try_send("GET", "/ping", None).await.is_err().then_some(())
    })
    .await;
    assert!(service.is_running(), "it waits for the call under way");
    let asked = now();
    service.signal("INT");
    let status = service.wait_for_end().await;
    let took = (now() - asked) as f64 / 1e6;
    assert_eq!(status.code(), Some(1), "{status}");
    assert!(took < tolerated(AT_ONCE_SECONDS_MAX), "{took} s");
}
