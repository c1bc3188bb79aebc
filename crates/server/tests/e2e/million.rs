//! A million pending timers: the start reads only what it needs.

use std::{collections::HashSet, time::Duration};

use serde_json::json;

use crate::rig::{Backend, Crowd, Receiver, Service, fill, for_each_store, heavy, now, tolerated};

const FEW: usize = 100_000;
const MILLION: usize = 1_000_000;
const OVERDUE: usize = 10;
/// One in so many of them must be seen in memory before its size is looked at.
const NEAR_TERM_ONE_IN: usize = 20;
const FIRST_CALL_SECONDS_MAX: f64 = 5.0;
const MEMORY_MIB_MAX: f64 = 300.0;

for_each_store!(with_many_pending_timers_the_first_overdue_call_comes_at_once);
for_each_store!(soak: with_a_million_pending_timers_the_first_overdue_call_comes_at_once);

async fn with_many_pending_timers_the_first_overdue_call_comes_at_once(backend: Backend) {
    start_with_pending(backend, FEW).await;
}

async fn with_a_million_pending_timers_the_first_overdue_call_comes_at_once(backend: Backend) {
    start_with_pending(backend, MILLION).await;
}

async fn start_with_pending(backend: Backend, pending: usize) {
    let _machine = heavy().await;
    let receiver = Receiver::start();
    // Due over half an hour, from two minutes on, so that a part of them belongs to the near term; a few are overdue.
    let (earliest_allowed, overdue, step) = (now() + 120_000_000, now() - 60_000_000, 1_800_000_000 / pending);
    let at = format!("CASE WHEN n < {OVERDUE} THEN {overdue} + n ELSE {earliest_allowed} + n * {step} END");
    fill(&backend, &receiver, &Crowd { timers: pending, payload: &json!(1), at }).await;

    let begun = now();
    let mut service = Service::begin(&backend, &[]);
    let calls = receiver.wait_for(OVERDUE, Duration::from_secs(60)).await;
    let first = (calls[0].arrived - begun) as f64 / 1e6;
    let all = (calls[OVERDUE - 1].arrived - begun) as f64 / 1e6;
    service.wait_until_healthy().await;
    let client = service.client();
    crate::rig::eventually("the near term is in memory", Duration::from_secs(30), async || {
        client.metric("timer_pending_in_memory").await.filter(|entries| *entries > (pending / NEAR_TERM_ONE_IN) as f64)
    })
    .await;
    let peak = service.peak_mib();

    println!(
        "{}: with {pending} pending, the first overdue call came {first:.2} s after the start of the process, the last of {OVERDUE} \
         after {all:.2} s; memory up to {peak:.0} MiB",
        backend.name()
    );
    assert_eq!(receiver.calls().iter().map(|call| call.timer_id().to_owned()).collect::<HashSet<_>>().len(), OVERDUE);
    assert_eq!(receiver.count(), OVERDUE, "only what is overdue has fired");
    assert!(first < tolerated(FIRST_CALL_SECONDS_MAX), "{first} s");
    assert!(peak < MEMORY_MIB_MAX, "{peak} MiB");
    service.stop().await;
}
