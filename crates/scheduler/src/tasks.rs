//! The loops around the steps. A loop waits, calls its step and logs; no error ends it.

use std::{sync::Arc, time::Duration};

use store::{Cluster, HealthStore, StoreResult};
use tokio_util::sync::CancellationToken;

use crate::{Scheduler, sweeping::SweepPosition};

/// Keeps the node alive.
pub async fn beat(scheduler: Arc<Scheduler>, stop: CancellationToken) {
    let interval = scheduler.membership.beat_interval();
    while !stop.is_cancelled() {
        let result = scheduler.beat_once().await;
        report("beat", &result);
        // A shard that is handed over should not be without an owner for long.
        let is_settled = result.is_ok() && !scheduler.membership.awaits_shards();
        pause(&stop, if is_settled { interval } else { interval / 4 }).await;
    }
}

/// Sends nudges to other nodes about their timers.
pub async fn send_nudges(scheduler: Arc<Scheduler>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            result = scheduler.send_nudges() => report("tell", &result),
        }
    }
}

/// Receives the nudges of other nodes about timers that belong here.
pub async fn receive_nudges(scheduler: Arc<Scheduler>, stop: CancellationToken) {
    const AFTER_AN_ERROR: Duration = Duration::from_secs(1);
    while !stop.is_cancelled() {
        let result = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            result = scheduler.receive_nudges() => result,
        };
        report("hear", &result);
        if result.is_err() {
            pause(&stop, AFTER_AN_ERROR).await;
        }
    }
}

/// Keeps the window filled.
pub async fn load(scheduler: Arc<Scheduler>, stop: CancellationToken) {
    const INTERVAL: Duration = Duration::from_millis(250);
    while !stop.is_cancelled() {
        let result = scheduler.load_once().await;
        report("load", &result);
        if !matches!(result, Ok(true)) {
            tokio::select! {
                biased;
                () = scheduler.window.opened() => {}
                () = pause(&stop, INTERVAL) => {}
            }
        }
    }
}

/// Finds what was missed.
pub async fn sweep(scheduler: Arc<Scheduler>, stop: CancellationToken) {
    let mut position = SweepPosition::default();
    while !stop.is_cancelled() {
        let result = scheduler.sweep_once(&mut position).await;
        report("sweep", &result);
        pause(&stop, scheduler.sweeper.interval()).await;
    }
}

/// Removes what has been finished for long enough.
pub async fn purge(scheduler: Arc<Scheduler>, stop: CancellationToken) {
    const INTERVAL: Duration = Duration::from_secs(60);
    const UNTIL_IT_IS_OURS: Duration = Duration::from_millis(100);
    while !stop.is_cancelled() {
        // One node is enough for it.
        if !scheduler.is_purger() {
            pause(&stop, UNTIL_IT_IS_OURS).await;
            continue;
        }
        let result = scheduler.purge_once().await;
        report("purge", &result);
        pause(&stop, result.ok().flatten().unwrap_or(INTERVAL)).await;
    }
}

/// Measures from time to time how late the oldest timer of the whole database is, also where no node owns its shard, and shows
/// `observe` the cluster.
pub async fn watch_cluster(store: Arc<dyn HealthStore>, observe: impl Fn(&Cluster) + Send, stop: CancellationToken) {
    const INTERVAL: Duration = Duration::from_secs(10);
    while !stop.is_cancelled() {
        let seen = overdue_once(store.as_ref()).await;
        report("overdue", &seen);
        seen.iter().for_each(&observe);
        pause(&stop, INTERVAL).await;
    }
}

async fn overdue_once(store: &dyn HealthStore) -> StoreResult<Cluster> {
    let cluster = store.cluster().await?;
    let late = cluster.oldest_overdue.map_or(0.0, |at| cluster.now.since(at).as_duration().as_secs_f64());
    metrics::gauge!("timer_oldest_overdue_seconds").set(late);
    Ok(cluster)
}

/// Counts and logs a failed step once; it will be tried again. The name of the task is a label of a public metric.
pub fn report<T>(task: &'static str, result: &StoreResult<T>) {
    if let Err(error) = result {
        metrics::counter!("timer_task_errors_total", "task" => task).increment(1);
        tracing::warn!(task, %error, "a step of the scheduler failed; it will be tried again");
    }
}

/// Waits, unless everything stops.
pub async fn pause(stop: &CancellationToken, length: Duration) {
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = tokio::time::sleep(length) => {}
    }
}
