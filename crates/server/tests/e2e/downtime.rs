//! A day of downtime: what is long overdue at the start fires, oldest first, and a page at a time.

use std::{collections::HashMap, time::Duration};

use futures_util::{StreamExt, stream};
use serde_json::json;

use crate::rig::{Backend, FakeTime, Receiver, Service, callback_to, eventually, for_each_store, heavy, instant, now};

const TIMERS: usize = 5_000;
/// Together more than the memory that is allowed.
const PAYLOAD_BYTES: usize = 24 * 1024;
const MEMORY_MIB_MAX: f64 = 110.0;
const DAY_MICROS: i64 = 24 * 3600 * 1_000_000;
/// How many calls of one tenant to one destination are in flight at once, which may overtake one another.
const IN_FLIGHT: usize = 256;

for_each_store!(after_a_day_of_downtime_everything_fires_oldest_first_in_bounded_memory);

async fn after_a_day_of_downtime_everything_fires_oldest_first_in_bounded_memory(backend: Backend) {
    let _machine = heavy().await;
    let receiver = Receiver::start();
    let due = register_yesterday(&backend, &receiver).await;
    assert_eq!(receiver.count(), 0, "nothing was due yesterday");

    let begun = now();
    let mut service = Service::start(&backend).await;
    let calls = receiver.wait_for(TIMERS, Duration::from_secs(90)).await;
    let took = (now() - begun) as f64 / 1e6;
    service.client().wait_until_finished(Duration::from_secs(20)).await;
    let peak = service.peak_mib();

    assert_eq!(receiver.count(), TIMERS, "none twice");
    let mut by_due: Vec<&str> = calls.iter().map(|call| call.timer_id()).collect();
    by_due.sort_by_key(|id| due[*id]);
    by_due.dedup();
    assert_eq!(by_due.len(), TIMERS, "none lost");
    let rank: HashMap<&str, usize> = by_due.iter().enumerate().map(|(rank, id)| (*id, rank)).collect();
    let overtaken = calls.iter().enumerate().map(|(place, call)| rank[call.timer_id()].saturating_sub(place)).max();
    println!(
        "{}: {TIMERS} timers a day overdue fired within {took:.1} s of the start, memory up to {peak:.0} MiB; \
         the most that one call overtook others: {overtaken:?} places",
        backend.name()
    );
    assert!(overtaken <= Some(2 * IN_FLIGHT), "a timer was called {overtaken:?} places too early");
    assert!(peak < MEMORY_MIB_MAX, "memory went up to {peak:.0} MiB");
    service.stop().await;
}

/// Registers timers with a service that lives a day ago, and stops it. The due times are not in the order of registration.
async fn register_yesterday(backend: &Backend, receiver: &Receiver) -> HashMap<String, i64> {
    let time = FakeTime::fixed("-1d");
    // Beside a database that lives today it is not well, and fires nothing, but it takes timers.
    let mut service = Service::begin_at(backend, &time, &[]);
    let client = service.client();
    eventually("the service of yesterday answers", Duration::from_secs(20), async || {
        client.try_send("GET", "/ping", None).await.is_ok().then_some(())
    })
    .await;
    let first = now() - DAY_MICROS + 3600 * 1_000_000;
    let url = receiver.url("/overdue");
    let padding = "x".repeat(PAYLOAD_BYTES);
    let register = async |n: usize| {
        // 7919 is a prime: every place is taken once.
        let at = first + (n * 7919 % TIMERS) as i64 * 10_000_000;
        (client.create(&json!({"execute_at": instant(at), "callback": callback_to(&url, &json!(padding))})).await, at)
    };
    let due: HashMap<String, i64> = stream::iter(0..TIMERS).map(register).buffer_unordered(16).collect().await;
    service.stop().await;
    assert_eq!(due.len(), TIMERS);
    due
}
