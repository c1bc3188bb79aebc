use std::{sync::Arc, time::Duration};

use domain::Backoff;
use scheduler::Linger;
use store::{Settlement, StoreError, StoreResult};
use tokio::{sync::mpsc, task::JoinSet};

use crate::{Deliver, Pipeline};

/// The most results recorded in one commit.
const BATCH_MAX: usize = 1024;
/// How many commits may be under way at once: while one waits for the disk, the next gathers.
const BATCHES_IN_FLIGHT: usize = 2;
/// Fewer results wait for more of them while another commit is under way.
const LINGER: Linger = Linger::BESIDE_A_COMMIT;
/// How often damage must be met before it is believed.
const TRIES_MAX: u32 = 3;
/// How often a store that takes other writes must refuse these before they are taken for the cause: some seconds for several, about a
/// minute for a single one, which may also wait for a lock.
const REFUSALS_MAX: u32 = 10;
const REFUSALS_ALONE_MAX: u32 = 60;

/// Records results until there are no more senders: whatever has come in goes into one batch.
pub(crate) async fn run<D: Deliver>(pipeline: Arc<Pipeline<D>>, mut results: mpsc::Receiver<Settlement>) {
    let mut in_flight = JoinSet::new();
    loop {
        if in_flight.len() >= BATCHES_IN_FLIGHT {
            end_of_one(&mut in_flight).await;
        }
        let mut batch = Vec::new();
        if results.recv_many(&mut batch, BATCH_MAX).await == 0 {
            break;
        }
        LINGER.until(wait_for_batch(&mut batch, &mut results, &mut in_flight)).await;
        let pipeline = Arc::clone(&pipeline);
        in_flight.spawn(async move { pipeline.record(batch).await });
    }
    while !in_flight.is_empty() {
        end_of_one(&mut in_flight).await;
    }
}

/// A panic goes on here: results that were never recorded must not go unnoticed.
async fn end_of_one(in_flight: &mut JoinSet<()>) {
    if let Some(Err(error)) = in_flight.join_next().await
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}

/// Adds results to the batch until no other commit is under way, the batch is large enough for a commit beside one, or no more
/// results can come.
async fn wait_for_batch(batch: &mut Vec<Settlement>, results: &mut mpsc::Receiver<Settlement>, in_flight: &mut JoinSet<()>) {
    while !LINGER.is_over(in_flight.len(), |count| batch.len() >= count) {
        tokio::select! {
            biased;
            () = end_of_one(in_flight) => {}
            received = results.recv_many(batch, BATCH_MAX - batch.len()) => if received == 0 { return },
        }
    }
}

/// What to do about results that the store did not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Again,
    /// Something among them is in the way: by halves, until it stands alone.
    Split,
    /// This one can never be recorded until what is stored is repaired.
    SetAside,
}

/// `tries` counts those that failed, this one included. A store that is away is waited for: only stored data that is damaged
/// stays damaged. A store that writes a batch in two commits says "unknown" when the second one met the damage, and not every
/// damage is called so: a store that takes other writes is not away.
const fn after_failure(error: &StoreError, results: usize, tries: u32, takes_writes: bool) -> Step {
    match error {
        StoreError::Corrupt(_) if results > 1 => Step::Split,
        StoreError::Corrupt(_) if tries >= TRIES_MAX => Step::SetAside,
        StoreError::Unknown(_) if results > 1 && tries >= TRIES_MAX => Step::Split,
        StoreError::Unavailable(_) if takes_writes && results > 1 && tries >= REFUSALS_MAX => Step::Split,
        StoreError::Unavailable(_) if takes_writes && tries >= REFUSALS_ALONE_MAX => Step::SetAside,
        _ => Step::Again,
    }
}

/// What the store said to a batch.
#[derive(Debug)]
pub(crate) struct Answered {
    /// Whether each result counted.
    pub counted: Vec<bool>,
    /// How many were set aside. None of them counted.
    pub set_aside: usize,
}

impl<D: Deliver> Pipeline<D> {
    /// Records one batch, for as long as it takes: a call that was made and not recorded would be made again.
    pub(crate) async fn record(&self, batch: Vec<Settlement>) {
        let Answered { counted, set_aside } = self.settle_until_answered(&batch).await;
        let fenced = counted.iter().filter(|counted| !**counted).count() - set_aside;
        if fenced > 0 {
            self.metrics.fenced(fenced);
            tracing::warn!(
                results = fenced,
                "results did not count: their timers are in other hands, or they were recorded before"
            );
        }
        self.metrics.settled(&batch, &counted);
        self.scheduler.settled(&batch);
    }

    /// Until each result is recorded or known to be one that cannot be: that one is set aside and holds up no other.
    pub(crate) async fn settle_until_answered(&self, batch: &[Settlement]) -> Answered {
        let mut answered = Answered { counted: vec![false; batch.len()], set_aside: 0 };
        let mut parts: Vec<_> = std::iter::once(0..batch.len()).collect();
        while let Some(part) = parts.pop() {
            match self.settle_part(&batch[part.clone()]).await {
                Ok(counted) => answered.counted[part].copy_from_slice(&counted),
                Err(_) if part.len() > 1 => {
                    let middle = part.start + part.len() / 2;
                    parts.extend([middle..part.end, part.start..middle]);
                }
                Err(error) => match self.settle_without_attempt(&batch[part.start]).await {
                    Some(counted) => answered.counted[part.start] = counted,
                    None => {
                        answered.set_aside += 1;
                        self.metrics.set_aside();
                        tracing::error!(
                            timer.id = %batch[part.start].entry.id, %error,
                            "a result cannot be recorded and is set aside; the timer stays executing until it is taken up again"
                        );
                    }
                },
            }
        }
        answered
    }

    /// What is remembered of an attempt is worth less than its result: without it, the timer would be called again. Tried once.
    async fn settle_without_attempt(&self, result: &Settlement) -> Option<bool> {
        result.attempt.as_ref()?;
        let bare = Settlement { attempt: None, ..result.clone() };
        let counted = self.store.settle(&[bare]).await.ok()?.first().copied()?;
        tracing::warn!(timer.id = %result.entry.id, "a result could only be recorded without its attempt");
        Some(counted)
    }

    /// All of `part`, or the error that is no reason to try it again as it is.
    async fn settle_part(&self, part: &[Settlement]) -> StoreResult<Vec<bool>> {
        let mut backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(1));
        let mut tries = 0;
        loop {
            let error = match self.store.settle(part).await {
                Ok(counted) => return Ok(counted),
                Err(error) => error,
            };
            tries += 1;
            let is_refusal = matches!(error, StoreError::Unavailable(_)) && tries >= REFUSALS_MAX;
            let takes_writes = is_refusal && self.health.probe().await.is_ok();
            if after_failure(&error, part.len(), tries, takes_writes) != Step::Again {
                return Err(error);
            }
            tracing::warn!(%error, results = part.len(), "results could not be recorded; trying again");
            tokio::time::sleep(backoff.failed()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{Destination, Next, TimerId, Timestamp};
    use store::{ClaimToken, DueEntry, Epoch, ShardLease};
    use tokio::{sync::oneshot, time::timeout};

    use super::*;

    fn result() -> Settlement {
        let at = Timestamp::from_micros(1);
        let entry = DueEntry { at, id: TimerId::random(at), destination: Destination(1) };
        let shard_lease = ShardLease { shard: entry.id.shard(1), epoch: Epoch(1) };
        Settlement { entry, shard_lease, token: ClaimToken(1), next: Next::Completed { at }, attempt: None }
    }

    /// A batch of one, beside another one that goes on until the sender is used.
    fn beside_another() -> (Vec<Settlement>, JoinSet<()>, oneshot::Sender<()>) {
        let (end, ended) = oneshot::channel();
        let mut in_flight = JoinSet::new();
        in_flight.spawn(async { ended.await.unwrap_or_default() });
        (vec![result()], in_flight, end)
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_batch_waits_until_the_other_one_ends_or_it_is_large() {
        let (sender, mut results) = mpsc::channel(2 * LINGER.worthwhile);
        let (mut batch, mut in_flight, end) = beside_another();
        let waiting = timeout(LINGER.longest, wait_for_batch(&mut batch, &mut results, &mut in_flight)).await;
        assert!(waiting.is_err(), "one is not worth it");
        end.send(()).unwrap();
        wait_for_batch(&mut batch, &mut results, &mut in_flight).await;
        assert_eq!(batch.len(), 1);

        let (mut batch, mut in_flight, _end) = beside_another();
        for _ in 1..LINGER.worthwhile {
            sender.try_send(result()).unwrap();
        }
        wait_for_batch(&mut batch, &mut results, &mut in_flight).await;
        assert_eq!(batch.len(), LINGER.worthwhile);
    }

    #[test]
    fn only_what_can_never_be_recorded_is_split_and_set_aside() {
        use Step::{Again, SetAside, Split};
        let (away, full) = (StoreError::Unavailable(String::new().into()), StoreError::Full(String::new().into()));
        let (unknown, damaged) = (StoreError::Unknown(String::new().into()), StoreError::Corrupt(String::new().into()));
        for (error, results, tries, takes_writes, step) in [
            (&away, 1, 100, false, Again),
            (&away, 1024, 100, false, Again),
            (&away, 1024, REFUSALS_MAX - 1, true, Again),
            (&away, 1024, REFUSALS_MAX, true, Split),
            (&away, 2, REFUSALS_MAX, true, Split),
            (&away, 1, REFUSALS_ALONE_MAX - 1, true, Again),
            (&away, 1, REFUSALS_ALONE_MAX, true, SetAside),
            (&full, 1024, 100, true, Again),
            (&unknown, 1024, 1, false, Again),
            (&unknown, 1024, TRIES_MAX, false, Split),
            (&unknown, 1, 100, true, Again),
            (&damaged, 1024, 1, false, Split),
            (&damaged, 2, 1, false, Split),
            (&damaged, 1, 1, false, Again),
            (&damaged, 1, TRIES_MAX, false, SetAside),
        ] {
            let taken = after_failure(error, results, tries, takes_writes);
            assert_eq!(taken, step, "{error}, {results} results, {tries} tries, takes other writes: {takes_writes}");
        }
    }

    #[tokio::test]
    #[should_panic(expected = "on purpose")]
    async fn a_batch_that_panics_is_noticed() {
        let mut in_flight = JoinSet::new();
        in_flight.spawn(async { panic!("on purpose") });
        end_of_one(&mut in_flight).await;
    }
}
