//! How the service advances when its clock is moved.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use commands::Filter;
use dev::{Advance, AdvanceClock, AdvanceError, Advanced, MovableClock};
use domain::{Cause, Clock, Shard, Status, Timestamp};
use engine::{Recorder, Totals};
use scheduler::{Scheduler, SweepPosition};
use store::{ShardCursor, Store, StoreError};
use tokio::{sync::Mutex, time::Instant};

use crate::serve::Parts;

/// How often it is looked whether everything is settled.
const GLANCE: Duration = Duration::from_millis(2);
/// How often the scheduler is told of the new time while it is not: a heartbeat that crossed the move may have hidden it.
const GLANCES_PER_PUSH: u32 = 25;
/// How long the pending timers are counted.
const COUNT_TIME: Duration = Duration::from_millis(500);

/// Moves the clock from due time to due time, and waits at each until everything is settled.
pub struct Advancer {
    /// `None`: the database has a clock of its own.
    clock: Option<Arc<MovableClock>>,
    store: Arc<dyn Store>,
    scheduler: Arc<Scheduler>,
    recorder: Arc<Recorder>,
    one_at_a_time: Mutex<()>,
}

/// Whether something came to its end before time ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Reached,
    OutOfTime,
}

#[async_trait]
impl AdvanceClock for Advancer {
    async fn advance(&self, by: Advance, timeout: Duration) -> Result<Advanced, AdvanceError> {
        let clock = self.clock.as_ref().ok_or(AdvanceError::NotMovable)?;
        let deadline = Instant::now() + timeout;
        let _one_at_a_time = self.one_at_a_time.lock().await;
        let begun = clock.now();
        let target = match by {
            Advance::By(span) => begun.saturating_add(span),
            Advance::To(at) if at <= begun => return Err(AdvanceError::Past),
            Advance::To(at) => at,
            Advance::UntilNext | Advance::UntilIdle => Timestamp::from_micros(i64::MAX),
        };
        let before = self.recorder.totals();
        let end = self.step_to(clock, by, target, deadline).await?;
        let pending = self.count_pending().await?;
        let Totals { fired, completed, failed, expired } = self.recorder.totals();
        Ok(Advanced {
            fired: fired - before.fired,
            completed: completed - before.completed,
            failed: failed - before.failed,
            expired: expired - before.expired,
            pending,
            next: self.next_due(Timestamp::from_micros(i64::MAX)).await?,
            now: clock.now(),
            complete: end == End::Reached,
        })
    }
}

impl Advancer {
    pub fn new(clock: Option<Arc<MovableClock>>, parts: Parts) -> Self {
        let Parts { store, scheduler, recorder, stop: _ } = parts;
        Self { clock, store, scheduler, recorder, one_at_a_time: Mutex::new(()) }
    }

    async fn step_to(
        &self,
        clock: &MovableClock,
        by: Advance,
        target: Timestamp,
        deadline: Instant,
    ) -> Result<End, AdvanceError> {
        // What is due before the clock is moved is not a step of it.
        if self.settle(clock, deadline).await? == End::OutOfTime {
            return Ok(End::OutOfTime);
        }
        loop {
            let next = self.next_due(target).await?;
            let at = match (next, by) {
                (Some(next), _) => next,
                (None, Advance::By(_) | Advance::To(_)) => target,
                (None, Advance::UntilNext | Advance::UntilIdle) => return Ok(End::Reached),
            };
            // What has become due meanwhile is settled first, so that no claim is older than it seems.
            if self.scheduler.while_idle(|| clock.move_to(at)).is_some() {
                self.tell_the_time().await?;
            }
            if self.settle(clock, deadline).await? == End::OutOfTime {
                return Ok(End::OutOfTime);
            }
            let is_there = match by {
                Advance::By(_) | Advance::To(_) => clock.now() >= target,
                Advance::UntilNext => clock.now() >= at,
                Advance::UntilIdle => false,
            };
            if is_there {
                return Ok(End::Reached);
            }
        }
    }

    /// Waits until nothing is due that has not been settled.
    async fn settle(&self, clock: &MovableClock, deadline: Instant) -> Result<End, AdvanceError> {
        for glance in 1_u32.. {
            let is_idle = self.scheduler.while_idle(|| ()).is_some();
            if is_idle && self.scheduler.shards_held() > 0 && self.next_due(clock.now()).await?.is_none() {
                // Between the two looks something may have been claimed.
                if self.scheduler.while_idle(|| ()).is_some() {
                    return Ok(End::Reached);
                }
            }
            if Instant::now() >= deadline {
                return Ok(End::OutOfTime);
            }
            if glance.is_multiple_of(GLANCES_PER_PUSH) {
                self.tell_the_time().await?;
            }
            tokio::time::sleep(GLANCE).await;
        }
        Ok(End::OutOfTime)
    }

    /// Lets the scheduler see at once what it would see within a second: that the clock was set, and what is due by it.
    async fn tell_the_time(&self) -> Result<(), AdvanceError> {
        // Where it holds nothing yet, its own heartbeat will take the shards.
        if self.scheduler.shards_held() > 0 {
            self.scheduler.beat_once().await.map_err(of_store)?;
            self.scheduler.sweep_once(&mut SweepPosition::default()).await.map_err(of_store)?;
        }
        Ok(())
    }

    /// When the next attempt of a pending timer is due, if that is at or before `until`.
    async fn next_due(&self, until: Timestamp) -> Result<Option<Timestamp>, AdvanceError> {
        let shards = (0..self.store.shards()).map(|shard| ShardCursor { shard: Shard(shard), after: None });
        let first = self.store.due(&shards.collect::<Vec<_>>(), until, 1).await.map_err(of_store)?;
        Ok(first.iter().map(|entry| entry.at).min())
    }

    async fn count_pending(&self) -> Result<u64, AdvanceError> {
        let pending = Filter { status: vec![Status::Pending], ..Filter::default() };
        Ok(self.store.count(&pending, COUNT_TIME).await.map_err(of_store)?.timers)
    }
}

fn of_store(error: StoreError) -> AdvanceError {
    AdvanceError::Store(Cause::of(error))
}
