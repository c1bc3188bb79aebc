//! Timers fire at their time: never early, none lost, none twice.

use std::{collections::HashMap, time::Duration};

use serde_json::json;

use crate::{
    lateness::Lateness,
    rig::{Backend, Receiver, Service, beside_others, by_tier, callback_to, for_each_store, instant, now, tolerated},
};

const TIMERS: usize = 1_000;
const SPREAD_MICROS: i64 = 10_000_000;
/// Time to register them all before the first is due.
const LEAD_MICROS: i64 = 4_000_000;
const CALLERS: usize = 8;
/// Of 99 in 100; in a build, of every second one.
const MILLIS_MAX: f64 = 1_000.0;

for_each_store!(a_thousand_timers_over_ten_seconds_fire_on_time);

async fn a_thousand_timers_over_ten_seconds_fire_on_time(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::start();
    let mut service = Service::start(&backend).await;
    let first = now() + LEAD_MICROS;

    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (client, url) = (service.client(), receiver.url("/on-time"));
            tokio::spawn(async move {
                let mut due = Vec::new();
                for n in (caller..TIMERS).step_by(CALLERS) {
                    let at = first + SPREAD_MICROS * n as i64 / TIMERS as i64;
                    let id =
                        client.create(&json!({"execute_at": instant(at), "callback": callback_to(&url, &json!({"n": n}))})).await;
                    // A machine that is too busy to register it in time makes no promise about it.
                    due.push((id, (at, now().max(at))));
                }
                due
            })
        })
        .collect();
    let mut due = HashMap::new();
    for caller in callers {
        due.extend(caller.await.expect("a caller that got all its answers"));
    }

    let client = service.client();
    receiver.wait_for(TIMERS, Duration::from_secs(60)).await;
    // From here on nothing can come twice any more.
    client.wait_until_finished(Duration::from_secs(20)).await;
    let calls = receiver.calls();

    assert_eq!(calls.len(), TIMERS, "calls for {TIMERS} timers");
    let mut missing = due.clone();
    let late = calls.iter().map(|call| {
        let (at, possible) =
            missing.remove(call.timer_id()).unwrap_or_else(|| panic!("a second call, or one of no timer: {call:?}"));
        assert!(call.arrived >= at, "{} µs early: {call:?}", at - call.arrived);
        (call.arrived - possible).max(0)
    });
    let lateness = Lateness::of(late);
    println!("{}: on time: {lateness}", backend.name());
    assert!(missing.is_empty(), "lost: {missing:?}");
    assert!(lateness.percentile(by_tier(99, 50)) < tolerated(MILLIS_MAX), "{lateness}");
    assert_eq!(client.count("completed").await, TIMERS as u64);
    service.stop().await;
}
