//! A receiver that hangs delays no other receiver, and costs no memory.

use std::{collections::HashMap, time::Duration};

use futures_util::{StreamExt, stream};
use serde_json::json;

use crate::{
    lateness::Lateness,
    rig::{Backend, Receiver, Reply, Service, beside_others, callback_to, for_each_store, instant, now, tolerated},
};

const HANGING: usize = 500;
/// Together more than the growth that is allowed: holding them all would show.
const HANGING_PAYLOAD_BYTES: usize = 220 * 1024;
const GROWTH_MIB_MAX: f64 = 100.0;
const OTHERS: usize = 150;
const OTHERS_BETWEEN_MICROS: i64 = 20_000;
const LATENESS_MILLIS_MAX: f64 = 1_000.0;

for_each_store!(a_destination_that_hangs_with_five_hundred_due_timers_delays_no_other);

async fn a_destination_that_hangs_with_five_hundred_due_timers_delays_no_other(backend: Backend) {
    let _machine = beside_others().await;
    let hanging = Receiver::replying(|_| Reply::Never);
    let other = Receiver::start();
    let service = Service::start(&backend).await;
    let client = service.client();
    let before = service.resident_mib();

    // They are due while they are being registered, so that all are overdue when the others come.
    let payload = json!("x".repeat(HANGING_PAYLOAD_BYTES));
    let timer = json!({"delay": "1ms", "callback": callback_to(&hanging.url("/hangs"), &payload)});
    stream::iter(0..HANGING).for_each_concurrent(4, async |_| drop(client.create(&timer).await)).await;
    hanging.wait_for(1, Duration::from_secs(10)).await;

    let first = now() + 1_000_000;
    let register = async |n: usize| {
        let at = first + OTHERS_BETWEEN_MICROS * n as i64;
        (client.create(&json!({"execute_at": instant(at), "callback": callback_to(&other.url("/answers"), &json!(n))})).await, at)
    };
    let due: HashMap<String, i64> = stream::iter(0..OTHERS).map(register).buffer_unordered(8).collect().await;
    let calls = other.wait_for(OTHERS, Duration::from_secs(20)).await;

    let lateness = Lateness::of(calls.iter().map(|call| call.arrived - due[call.timer_id()]));
    let growth = service.peak_mib() - before;
    println!(
        "{}: beside {HANGING} timers that hang ({} calls under way): {lateness}; memory grew by {growth:.0} MiB",
        backend.name(),
        hanging.count()
    );
    assert_eq!(calls.len(), OTHERS);
    assert!(lateness.max() < tolerated(LATENESS_MILLIS_MAX), "{lateness}");
    assert!(growth < GROWTH_MIB_MAX, "memory grew by {growth:.0} MiB");
    assert!(hanging.count() < HANGING, "calls to one destination are limited");
    // Not stopped in order: that would wait for the calls that hang.
}
