//! Where the heartbeats of this node are made: on a runtime of their own, so that no load of the firing costs the node its lease.
//! All that concerns its membership runs there, since a session with the database belongs to the runtime it was opened on.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use domain::{Cause, Clock};
use scheduler::{Scheduler, tasks};
use store::{StoreError, StoreResult};
use tokio::runtime::Handle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How often the firing reports that it makes progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);
/// The time without progress in firing after which a node stops its heartbeats: another node should own its shards.
const STANDSTILL_MAX: Duration = Duration::from_secs(30);

/// Runs the heartbeats of a node, by default on the runtime of the pipeline itself, as the simulation needs it.
#[derive(Default)]
pub struct Heartbeats {
    runtime: Option<Handle>,
    last_progress: Arc<AtomicU64>,
}

impl Heartbeats {
    /// On this runtime, which must be driven for as long as the pipeline runs.
    pub fn on(runtime: Handle) -> Self {
        Self { runtime: Some(runtime), last_progress: Arc::default() }
    }

    pub(crate) fn spawn(&self, tasks: &TaskTracker, task: impl Future<Output = ()> + Send + 'static) {
        match &self.runtime {
            Some(runtime) => drop(tasks.spawn_on(task, runtime)),
            None => drop(tasks.spawn(task)),
        }
    }

    /// Does what concerns the membership.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = StoreResult<T>> + Send + 'static,
    ) -> StoreResult<T> {
        match &self.runtime {
            Some(runtime) => {
                let done = runtime.spawn(work).await;
                done.unwrap_or_else(|error| {
                    Err(StoreError::Unknown(Cause::new(format!("the heartbeat thread ended: {error}"), error)))
                })
            }
            None => work.await,
        }
    }

    /// Keeps the node alive, until `stop`, unless its firing stands still for long.
    pub(crate) fn beat(
        &self,
        scheduler: Arc<Scheduler>,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static {
        let last_progress = self.runtime.as_ref().map(|_| Arc::clone(&self.last_progress));
        async move {
            let Some(last_progress) = last_progress else { return tasks::beat(scheduler, stop).await };
            last_progress.store(millis(&clock), Ordering::Relaxed);
            let stands_still =
                || millis(&clock).saturating_sub(last_progress.load(Ordering::Relaxed)) > STANDSTILL_MAX.as_millis() as u64;
            while !stop.is_cancelled() {
                tokio::select! {
                    () = tasks::beat(Arc::clone(&scheduler), stop.clone()) => {}
                    () = until(&stands_still) => {
                        tracing::error!("the firing has stood still for {STANDSTILL_MAX:?}; this node gives up its shards");
                    }
                }
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = until(|| !stands_still()) => {}
                }
            }
        }
    }

    /// Reports progress for as long as the runtime of the firing moves: it runs there, beside the firing.
    pub(crate) fn report_progress(
        &self,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static {
        let last_progress = self.runtime.as_ref().map(|_| Arc::clone(&self.last_progress));
        async move {
            let Some(last_progress) = last_progress else { return };
            while !stop.is_cancelled() {
                last_progress.store(millis(&clock), Ordering::Relaxed);
                tasks::pause(&stop, PROGRESS_INTERVAL).await;
            }
        }
    }
}

fn millis(clock: &Arc<dyn Clock>) -> u64 {
    u64::try_from(clock.monotonic().as_millis()).unwrap_or(u64::MAX)
}

async fn until(is_true: impl Fn() -> bool) {
    while !is_true() {
        tokio::time::sleep(PROGRESS_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests;
