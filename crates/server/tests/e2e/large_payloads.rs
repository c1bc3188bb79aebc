//! However much is due at once, only what is being called is in memory.

use std::time::Duration;

use serde_json::json;

use crate::rig::{Backend, Crowd, Receiver, Service, eventually, fill, for_each_store, heavy, now};

const PAYLOAD_BYTES: usize = 64 * 1024;
const MEMORY_MIB_MAX: f64 = 300.0;
/// Together nearly twice what is allowed.
const FEW: usize = 8_000;
const MANY: usize = 100_000;

for_each_store!(half_a_gibibyte_that_is_due_at_once_is_never_in_memory_at_once);

async fn half_a_gibibyte_that_is_due_at_once_is_never_in_memory_at_once(backend: Backend) {
    large_timers_due_at_once(backend, FEW).await;
}

// 7 GiB of disk.
for_each_store!(soak: six_gibibytes_that_are_due_at_once_are_never_in_memory_at_once);

async fn six_gibibytes_that_are_due_at_once_are_never_in_memory_at_once(backend: Backend) {
    large_timers_due_at_once(backend, MANY).await;
}

async fn large_timers_due_at_once(backend: Backend, timers: usize) {
    let _machine = heavy().await;
    let receiver = Receiver::counting();
    let payload = json!("x".repeat(PAYLOAD_BYTES - 2));
    fill(&backend, &receiver, &Crowd { timers, payload: &payload, at: (now() - 1_000_000).to_string() }).await;

    let mut service = Service::start(&backend).await;
    let client = service.client();
    eventually("every timer has fired", Duration::from_secs(300), async || {
        (client.metric("timer_completed_total").await == Some(timers as f64)).then_some(())
    })
    .await;

    let peak = service.peak_mib();
    println!("{}: {timers} timers of {PAYLOAD_BYTES} bytes due at once; memory up to {peak:.0} MiB", backend.name());
    assert_eq!(receiver.count(), timers, "each has fired, once");
    assert!(peak < MEMORY_MIB_MAX, "{peak} MiB");
    service.stop().await;
}
