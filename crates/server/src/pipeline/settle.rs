use std::{sync::Arc, time::Duration};

use store::Settlement;
use tokio::sync::mpsc;

use super::{Deliver, Pipeline};

/// The most results recorded in one commit.
const BATCH_MAX: usize = 1024;
/// How many commits may be under way at once: while one waits for the disk, the next gathers.
const BATCHES_IN_FLIGHT: usize = 2;

/// Records results until there are no more senders: whatever has come in goes into one batch.
pub(super) async fn run<D: Deliver>(pipeline: Arc<Pipeline<D>>, mut results: mpsc::Receiver<Settlement>) {
    let mut in_flight = tokio::task::JoinSet::new();
    loop {
        if in_flight.len() >= BATCHES_IN_FLIGHT {
            in_flight.join_next().await;
        }
        let mut batch = Vec::new();
        if results.recv_many(&mut batch, BATCH_MAX).await == 0 {
            break;
        }
        let pipeline = Arc::clone(&pipeline);
        in_flight.spawn(async move { pipeline.record(batch).await });
    }
    while in_flight.join_next().await.is_some() {}
}

impl<D: Deliver> Pipeline<D> {
    /// Records one batch, for as long as it takes: a call that was made and not recorded would be made again.
    async fn record(&self, batch: Vec<Settlement>) {
        let counted = self.settle_until_answered(&batch).await;
        let fenced = counted.iter().filter(|counted| !**counted).count();
        if fenced > 0 {
            self.figures.fenced(fenced);
            tracing::warn!(
                results = fenced,
                "results did not count: their timers are in other hands, or they were recorded before"
            );
        }
        self.figures.settled(&batch, &counted);
        self.scheduler.settled(&batch);
    }

    pub(super) async fn settle_until_answered(&self, batch: &[Settlement]) -> Vec<bool> {
        let mut pause = Duration::from_millis(20);
        loop {
            match self.store.settle(batch).await {
                Ok(counted) => return counted,
                Err(error) => {
                    tracing::warn!(%error, results = batch.len(), "results could not be recorded; trying again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(1));
                }
            }
        }
    }
}
