//! The loops around the steps. A loop waits, calls its step and logs; no error ends it.

use std::{sync::Arc, time::Duration};

use store::StoreResult;
use tokio_util::sync::CancellationToken;

use crate::{Scheduler, sweeping::SweepPosition};

/// Keeps the leases: often enough that one lost answer costs nothing.
pub async fn renew(scheduler: Arc<Scheduler>, stop: CancellationToken) {
    let interval = scheduler.config.shard_lease.as_duration() / 4;
    while !stop.is_cancelled() {
        let result = scheduler.renew_once().await;
        report("renew", &result);
        pause(&stop, if result.is_ok() { interval } else { interval / 4 }).await;
    }
}

/// Keeps the window filled.
pub async fn load(scheduler: Arc<Scheduler>, stop: CancellationToken) {
    const INTERVAL: Duration = Duration::from_millis(250);
    while !stop.is_cancelled() {
        let result = scheduler.load_once().await;
        report("load", &result);
        if !matches!(result, Ok(true)) {
            pause(&stop, INTERVAL).await;
        }
    }
}

/// Finds what was missed.
pub async fn sweep(scheduler: Arc<Scheduler>, stop: CancellationToken) {
    let mut position = SweepPosition::default();
    while !stop.is_cancelled() {
        let result = scheduler.sweep_once(&mut position).await;
        report("sweep", &result);
        pause(&stop, scheduler.config.sweep_interval).await;
    }
}

/// Removes what has been finished for long enough.
pub async fn purge(scheduler: Arc<Scheduler>, stop: CancellationToken) {
    const INTERVAL: Duration = Duration::from_secs(60);
    const BETWEEN_BATCHES: Duration = Duration::from_millis(50);
    while !stop.is_cancelled() {
        let result = scheduler.purge_once().await;
        report("purge", &result);
        pause(&stop, if matches!(result, Ok(true)) { BETWEEN_BATCHES } else { INTERVAL }).await;
    }
}

/// Logs a failed step once; it will be tried again.
pub fn report<T>(task: &'static str, result: &StoreResult<T>) {
    if let Err(error) = result {
        metrics::counter!("timer_task_errors_total", "task" => task).increment(1);
        tracing::warn!(task, %error, "a step of the scheduler failed; it will be tried again");
    }
}

/// Waits, unless everything stops.
pub async fn pause(stop: &CancellationToken, length: Duration) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = tokio::time::sleep(length) => {}
    }
}
