//! `kill -9` while calls are under way: what becomes of them is what their timers asked for.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::json;

use crate::rig::{Backend, Call, Receiver, Reply, Service, beside_others, callback_to, for_each_store};

const SOON: Duration = Duration::from_secs(15);

for_each_store!(a_call_under_way_at_a_kill_is_made_again_only_if_that_is_wanted);

async fn a_call_under_way_at_a_kill_is_made_again_only_if_that_is_wanted(backend: Backend) {
    let _machine = beside_others().await;
    let taken = AtomicUsize::new(0);
    // The two calls of the service that is killed hang.
    let receiver =
        Receiver::replying(move |_| if taken.fetch_add(1, Ordering::Relaxed) < 2 { Reply::Never } else { Reply::Status(200) });
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let register = async |delivery: &str| {
        let callback = callback_to(&receiver.url(&format!("/{delivery}")), &json!(1));
        client.create(&json!({"delay": "1ms", "delivery": delivery, "callback": callback})).await
    };
    let (once, again) = (register("at_most_once").await, register("at_least_once").await);
    receiver.wait_for(2, SOON).await;

    service.kill();
    service.start_again().await;
    let client = service.client();
    let failed = client.wait_for_status(&once, "failed").await;
    let completed = client.wait_for_status(&again, "completed").await;

    assert!(failed["last_error"].as_str().is_some_and(|error| error.contains("at_most_once")), "{failed}");
    assert_eq!(failed["attempt"], 1, "{failed}");
    assert_eq!(completed["attempt"], 2, "{completed}");
    let calls = receiver.calls();
    let of = |id: &str| calls.iter().filter(|call| call.timer_id() == id).collect::<Vec<&Call>>();
    assert_eq!(of(&once).len(), 1, "{calls:?}");
    let repeated = of(&again);
    assert_eq!(repeated.len(), 2, "{calls:?}");
    assert_eq!(repeated[0].header("webhook-id"), repeated[1].header("webhook-id"));
    assert_eq!([repeated[0].header("x-timer-attempt"), repeated[1].header("x-timer-attempt")], ["1", "2"]);
    service.stop().await;
}
