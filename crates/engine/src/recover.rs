use std::{sync::Arc, time::Duration};

use scheduler::tasks;
use store::{Claimed, Settlement, StoreError, StoreResult};
use tokio_util::sync::CancellationToken;

use crate::{Deliver, Pipeline, deliver::is_retry, follow_up::FollowUp, settle::Answered};

/// How often claims are looked for besides: one that its owner made just while its shard was taken over comes to light late.
const INTERVAL: Duration = Duration::from_secs(5);
/// The number of failures in a row of a store that seems unavailable, from which a batch is settled in parts: a bad result may be the
/// reason. Other failures are split at once.
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
    /// Takes up one batch, after this number of failures in a row. Returns how many timers were taken up.
    async fn recover_once(&self, failures: u32) -> StoreResult<usize> {
        let expired = self.scheduler.expired_once().await?;
        if expired.is_empty() {
            return Ok(0);
        }
        tracing::info!(timers = expired.len(), "taking up timers whose node did not record a result");
        let now = self.clock.now();
        let (mut recovered, mut follow_ups) = (Vec::with_capacity(expired.len()), Vec::new());
        for claimed in expired {
            let settlement = claimed.settle(delivery::recover(&claimed, &self.namespaces, now));
            let follow_up = claimed.timer.as_ref().ok().and_then(|timer| FollowUp::of(timer, &settlement.next, claimed.attempt));
            recovered.push((claimed, settlement, follow_up.is_some()));
            follow_ups.extend(follow_up);
        }
        // Without their follow-ups these ends must not be recorded; the next batch meets them again. The rest does not wait for them.
        let told = self.register(&follow_ups).await;
        recovered.retain(|(_, _, is_followed)| told.is_ok() || !is_followed);
        let (expired, batch): (Vec<Claimed>, Vec<Settlement>) =
            recovered.into_iter().map(|(claimed, settlement, _)| (claimed, settlement)).unzip();
        let settled = if batch.is_empty() { 0 } else { self.settle_recovered(&expired, &batch, failures).await? };
        told.map(|()| settled)
    }

    /// Says how many count.
    async fn settle_recovered(&self, expired: &[Claimed], batch: &[Settlement], failures: u32) -> StoreResult<usize> {
        let now = self.clock.now();
        let answered = match self.store.settle(batch).await {
            Ok(counted) => Answered { counted, set_aside: 0 },
            // One that cannot be recorded must not hold up the rest.
            Err(StoreError::Corrupt(_) | StoreError::Unknown(_)) => self.settle_until_answered(batch).await,
            Err(StoreError::Unavailable(_)) if failures >= FAILURES_MAX => self.settle_until_answered(batch).await,
            Err(error) => return Err(error),
        };
        self.metrics.settled(batch, &answered.counted);
        let mut retries = 0;
        for ((claimed, settlement), _) in expired.iter().zip(batch).zip(&answered.counted).filter(|(_, counted)| **counted) {
            let is_made_again = is_retry(&settlement.next, claimed.attempt);
            retries += usize::from(is_made_again);
            let namespace = claimed.timer.as_ref().ok().map(|timer| &timer.definition.namespace);
            self.metrics.recorder.ended(namespace, now, None, &settlement.next, is_made_again);
        }
        self.metrics.retries(retries);
        self.scheduler.settled(batch);
        Ok(expired.len() - answered.set_aside)
    }
}
