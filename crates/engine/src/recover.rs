use std::{sync::Arc, time::Duration};

use scheduler::tasks;
use store::{Claimed, Settlement, StoreError, StoreResult};
use tokio_util::sync::CancellationToken;

use crate::{Deliver, Pipeline, deliver::is_retry, settle::Answered};

/// How often claims are looked for besides: one that its owner made just while its shard was taken over comes to light late.
const INTERVAL: Duration = Duration::from_secs(5);
/// After so many failures in a row it is asked whether the store is away or one of the results is in the way.
const FAILURES_MAX: u32 = 10;

/// Takes up what a dead owner left `executing`: at once when shards come in, and now and then to be sure.
pub(crate) async fn run<D: Deliver>(pipeline: Arc<Pipeline<D>>, stop: CancellationToken) {
    let mut failures = 0;
    while !stop.is_cancelled() {
        let result = pipeline.recover_once(failures).await;
        tasks::report("recover", &result);
        failures = if result.is_ok() { 0 } else { failures.saturating_add(1) };
        match result {
            // There may be more.
            Ok(recovered) if recovered > 0 => {}
            Ok(_) => tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = pipeline.scheduler.wait_for_take_over(INTERVAL) => {}
            },
            Err(_) => tasks::pause(&stop, Duration::from_millis(200)).await,
        }
    }
}

impl<D: Deliver> Pipeline<D> {
    /// One batch, after so many failures in a row. Returns how many were taken up.
    async fn recover_once(&self, failures: u32) -> StoreResult<usize> {
        let expired = self.scheduler.expired_once().await?;
        if expired.is_empty() {
            return Ok(0);
        }
        tracing::info!(timers = expired.len(), "taking up timers whose node did not record a result");
        let now = self.clock.now();
        let recover = |claimed: &Claimed| claimed.settle(delivery::recover(claimed, &self.namespaces, now));
        let batch: Vec<Settlement> = expired.iter().map(recover).collect();
        for (claimed, settlement) in expired.iter().zip(&batch) {
            if let Ok(timer) = &claimed.timer {
                self.follow_up(timer, &settlement.next, claimed.attempt).await;
            }
        }
        let answered = match self.store.settle(&batch).await {
            Ok(counted) => Answered { counted, set_aside: 0 },
            // One that cannot be recorded must not hold up the rest.
            Err(StoreError::Corrupt(_) | StoreError::Unknown(_)) => self.settle_until_answered(&batch).await,
            Err(StoreError::Unavailable(_)) if failures >= FAILURES_MAX => self.settle_until_answered(&batch).await,
            Err(error) => return Err(error),
        };
        self.metrics.settled(&batch, &answered.counted);
        let of_those = expired.iter().zip(&batch).zip(&answered.counted);
        let is_made_again = |((claimed, settlement), counted): &((&Claimed, &Settlement), &bool)| {
            **counted && is_retry(&settlement.next, claimed.attempt)
        };
        self.metrics.retries(of_those.filter(is_made_again).count());
        self.scheduler.settled(&batch);
        Ok(expired.len() - answered.set_aside)
    }
}
