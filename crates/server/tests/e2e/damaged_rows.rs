//! Rows that the service has not made: each costs its own timer at most, and no other one.

use std::time::Duration;

use serde_json::json;

use crate::rig::{Backend, Receiver, Service, beside_others, callback_to, eventually, for_each_store, now};

const TIMERS: usize = 60;
const SOON: Duration = Duration::from_secs(15);
/// Enough to damage a few of them first.
const DELAY: &str = "5s";

for_each_store!(an_outcome_of_a_pending_timer_holds_up_nothing, a_row_that_cannot_be_recorded_is_set_aside);

/// Timers that are due together, in the order of their creation.
async fn due_together(service: &Service, receiver: &Receiver) -> Vec<String> {
    let client = service.client();
    let timer = |n| json!({"delay": DELAY, "callback": callback_to(&receiver.url("/due"), &json!(n))});
    let mut ids = Vec::new();
    for n in 0..TIMERS {
        ids.push(client.create(&timer(n)).await);
    }
    ids
}

async fn an_outcome_of_a_pending_timer_holds_up_nothing(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::start();
    let mut service = Service::start(&backend).await;
    let ids = due_together(&service, &receiver).await;
    for id in [&ids[7], &ids[20]] {
        // Recent, so that the purge of old outcomes does not come first.
        backend.complete_what_is_due(id, now());
    }

    receiver.wait_for(TIMERS, SOON).await;
    let client = service.client();
    for id in &ids {
        let timer = client.wait_for_status(id, "completed").await;
        assert!(timer["executed_at"].is_string(), "the outcome is the one of the call: {timer}");
    }
    assert_eq!(client.metric("timer_settlements_set_aside_total").await.unwrap_or_default(), 0.0);
    service.stop().await;
    service.start_again().await;
    service.stop().await;
    assert_eq!(receiver.count(), TIMERS, "each was called once");
}

async fn a_row_that_cannot_be_recorded_is_set_aside(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::start();
    let mut service = Service::start(&backend).await;
    let ids = due_together(&service, &receiver).await;
    let damaged = &ids[7];
    backend.damage(damaged);

    receiver.wait_for(TIMERS, SOON).await;
    let client = service.client();
    for id in ids.iter().filter(|id| *id != damaged) {
        client.wait_for_status(id, "completed").await;
    }
    eventually("it is counted as set aside", SOON, async || {
        (client.metric("timer_settlements_set_aside_total").await? == 1.0).then_some(())
    })
    .await;
    assert_eq!(client.timer(damaged).await["status"], "executing");
    let log = service.log();
    assert!(log.contains("is set aside") && log.contains(damaged) && log.contains("this row is damaged"), "{log}");
    service.stop().await;
    assert_eq!(receiver.count(), TIMERS, "each was called once");
}
