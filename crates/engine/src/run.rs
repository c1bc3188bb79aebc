use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use domain::Backoff;
use futures_util::{
    FutureExt,
    future::{BoxFuture, join, join_all, pending},
};
use scheduler::{Claims, tasks};
use store::{Claimed, Settlement, StoreResult};
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{Deliver, Pipeline, ahead::Ahead, recover, settle};

/// How many results may wait to be recorded.
const SETTLEMENTS_MAX: usize = 4096;
/// How many that were claimed early may wait to be put in order. All of them have permits.
const EARLY_MAX: usize = 256;
/// How many claims may be under way: while the store answers one, the next is asked for, if there is much to take.
const CLAIMS_AT_ONCE: usize = 2;
/// How long the store may take to answer at the very end.
const RELEASE_TIME: Duration = Duration::from_secs(2);
/// How long the last claim may take when the service stops.
const CLAIM_TIME: Duration = Duration::from_secs(5);
/// How long calls under way may take to finish when the service stops.
const DRAIN_TIME: Duration = Duration::from_secs(30);

/// How a pipeline ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Drained {
    /// Everything that was under way is finished and recorded.
    Completely,
    /// Some calls did not finish in time. Their timers stay `executing` until the next owner takes them up.
    Partly,
    /// A part of the pipeline had failed, and everything was stopped because of that.
    Broken,
}

impl<D: Deliver> Pipeline<D> {
    /// Runs until `stop`, then hands the shards over and finishes what is under way.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) -> Drained {
        let broken = CancellationToken::new();
        let background = TaskTracker::new();
        let ended = CancellationToken::new();
        let keep = |name, task: BoxFuture<'static, ()>| background.spawn(watch(name, task, stop.clone(), broken.clone()));
        // The node lives to the very end: what is being delivered is still ours.
        let beat = self.heartbeats.beat(Arc::clone(&self.scheduler), Arc::clone(&self.clock), ended.clone()).boxed();
        self.heartbeats.spawn(&background, watch("beat", beat, stop.clone(), broken.clone()));
        keep("live", self.heartbeats.report_progress(Arc::clone(&self.clock), ended.clone()).boxed());
        keep("tell", tasks::send_nudges(Arc::clone(&self.scheduler), ended.clone()).boxed());
        keep("hear", tasks::receive_nudges(Arc::clone(&self.scheduler), stop.clone()).boxed());
        keep("load", tasks::load(Arc::clone(&self.scheduler), stop.clone()).boxed());
        keep("sweep", tasks::sweep(Arc::clone(&self.scheduler), stop.clone()).boxed());
        keep("purge", tasks::purge(Arc::clone(&self.scheduler), stop.clone()).boxed());
        keep("recover", recover::run(Arc::clone(&self), stop.clone()).boxed());

        let (settlements, to_settle) = mpsc::channel(SETTLEMENTS_MAX);
        let settle = settle::run(Arc::clone(&self), to_settle).boxed();
        let settling = tokio::spawn(watch("settle", settle, stop.clone(), broken.clone()));
        let deliveries = TaskTracker::new();
        let start = |claimed| self.start(claimed, &deliveries, &settlements, &stop);
        let (early, to_start) = mpsc::channel(EARLY_MAX);
        let claiming = async {
            join_all((0..CLAIMS_AT_ONCE).map(|_| self.claim_loop(&start, &early, &stop))).await;
            drop(early);
        };
        // A claim under way is seen through: what it took must be delivered or given back, not left `executing`.
        tokio::select! {
            biased;
            _ = join(claiming, self.start_in_time(to_start, &start)) => {}
            () = async { stop.cancelled().await; tokio::time::sleep(CLAIM_TIME).await } => {}
        }

        if let Err(error) = self.leave().await {
            tracing::warn!(%error, "the shards could not be handed over yet");
        }
        let drained = self.drain(deliveries, settlements, settling).await;
        ended.cancel();
        background.close();
        // Steps that still wait for a store that is away are given up: they would change nothing any more.
        let _ = tokio::time::timeout(RELEASE_TIME, background.wait()).await;
        match tokio::time::timeout(RELEASE_TIME, self.end_lease()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the store did not take the leave; the lease of this node will run out"),
            Err(_) => tracing::warn!("the store did not answer; the lease of this node will run out"),
        }
        if broken.is_cancelled() { Drained::Broken } else { drained }
    }

    async fn leave(&self) -> StoreResult<()> {
        let scheduler = Arc::clone(&self.scheduler);
        self.heartbeats.run(async move { scheduler.leave().await }).await
    }

    async fn end_lease(&self) -> StoreResult<()> {
        let scheduler = Arc::clone(&self.scheduler);
        self.heartbeats.run(async move { scheduler.end_lease().await }).await
    }

    /// Waits for something to be due, claims it, starts it, until `stop`. What was claimed early is started in time. No error ends this.
    async fn claim_loop(&self, start: &impl Fn(Claimed), early: &mpsc::Sender<Claimed>, stop: &CancellationToken) {
        let mut backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(1));
        while !stop.is_cancelled() {
            let result = self.scheduler.claim_once().await;
            tasks::report("claim", &result);
            match result {
                Ok(Claims { claimed, more_due }) => {
                    backoff.went_well();
                    let now = self.clock.now();
                    for claimed in claimed {
                        if claimed.entry.at <= now {
                            start(claimed);
                        } else {
                            // Its receiver lives as long as this loop.
                            let _ = early.send(claimed).await;
                        }
                    }
                    if more_due {
                        // Lets the deliveries begin before the next claim.
                        tokio::task::yield_now().await;
                    } else {
                        tokio::select! {
                            biased;
                            () = self.scheduler.wait() => {}
                            () = stop.cancelled() => {}
                        }
                    }
                }
                Err(_) => tasks::pause(stop, backoff.failed()).await,
            }
        }
    }

    /// Starts what was claimed early at its time, until nothing more can come and all of it has started.
    async fn start_in_time(&self, mut early: mpsc::Receiver<Claimed>, start: &impl Fn(Claimed)) {
        let (mut ahead, mut may_come) = (Ahead::default(), true);
        while may_come || ahead.next_due().is_some() {
            while let Some(claimed) = ahead.take(self.clock.now(), self.scheduler.claim_ahead()) {
                start(claimed);
            }
            let next = ahead.next_due();
            let at = async {
                match next {
                    Some(at) => self.scheduler.wait_until(at).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = at => {}
                claimed = early.recv(), if may_come => match claimed {
                    Some(claimed) => ahead.add(claimed),
                    None => may_come = false,
                },
            }
        }
    }

    fn start(
        self: &Arc<Self>,
        claimed: Claimed,
        deliveries: &TaskTracker,
        settlements: &mpsc::Sender<Settlement>,
        stop: &CancellationToken,
    ) {
        let pipeline = Arc::clone(self);
        let settlements = settlements.clone();
        let stop = stop.clone();
        // Boxed before it is handed around: it is large, and the runtime moves what it is given several times.
        deliveries.spawn(Box::pin(async move {
            let settlement = pipeline.deliver(claimed, &stop).await;
            // Fails only when the settling has been given up at the end of a drain.
            let _ = settlements.send(settlement).await;
        }));
    }

    async fn drain(
        &self,
        deliveries: TaskTracker,
        settlements: mpsc::Sender<Settlement>,
        settling: tokio::task::JoinHandle<()>,
    ) -> Drained {
        deliveries.close();
        drop(settlements);
        if !deliveries.is_empty() {
            tracing::info!(calls = deliveries.len(), "finishing the calls under way");
        }
        let finish = async {
            deliveries.wait().await;
            settling.await
        };
        match tokio::time::timeout(DRAIN_TIME, finish).await {
            Ok(_) => Drained::Completely,
            Err(_) => {
                tracing::warn!(calls = deliveries.len(), "calls or their records did not finish within {DRAIN_TIME:?}");
                Drained::Partly
            }
        }
    }
}

/// Runs a task that must not end by a panic. If it does, everything stops: a service that still answers but no longer fires, or
/// no longer looks for what it missed, would be worse than one that is started afresh.
async fn watch(name: &'static str, task: BoxFuture<'static, ()>, stop: CancellationToken, broken: CancellationToken) {
    if AssertUnwindSafe(task).catch_unwind().await.is_err() {
        tracing::error!(task = name, "a part of the scheduler panicked; stopping");
        broken.cancel();
        stop.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_stops_everything() {
        let (stop, broken) = (CancellationToken::new(), CancellationToken::new());
        watch("fine", async {}.boxed(), stop.clone(), broken.clone()).await;
        assert!(!stop.is_cancelled() && !broken.is_cancelled());
        watch("faulty", async { panic!("on purpose") }.boxed(), stop.clone(), broken.clone()).await;
        assert!(stop.is_cancelled() && broken.is_cancelled());
    }
}
