use std::time::Duration;

use domain::{Backoff, Ending, NewTimer, Next, Timer, TimerId, follow_up};
use store::{Created, DueEntry, StoreError, StoreResult};

use crate::{Deliver, Pipeline};

/// How often damage must be met before it is believed.
const TRIES_MAX: u32 = 3;

/// A timer that tells of the end of another.
pub(crate) struct FollowUp {
    /// The timer that ends.
    of: TimerId,
    new: NewTimer,
}

impl FollowUp {
    /// The follow-up that is asked for, if the timer ends with the attempt of this number. Most timers have none, and cost nothing here.
    pub(crate) fn of(timer: &Timer, next: &Next, attempt: u32) -> Option<Self> {
        let options = &timer.definition.options;
        if options.on_success.is_none() && options.on_failure.is_none() {
            return None;
        }
        let new = follow_up(timer, &Ending::of(next, attempt)?)?;
        Some(Self { of: timer.id(), new })
    }
}

/// Follow-ups are registered before the end is recorded: after a crash in between, the same end leads to the same timer, which is
/// there already.
impl<D: Deliver> Pipeline<D> {
    /// Registers a follow-up, for as long as it takes: an end without its follow-up would be one that is never told.
    pub(crate) async fn register_until_stored(&self, follow_up: FollowUp) {
        let mut backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(1));
        while let Err(error) = self.register(std::slice::from_ref(&follow_up)).await {
            tracing::warn!(timer.id = %follow_up.of, %error, "a follow-up could not be stored; trying again");
            tokio::time::sleep(backoff.failed()).await;
        }
    }

    /// All of them, or an error if some may be missing. One that can never be stored is logged and counts as told.
    pub(crate) async fn register(&self, follow_ups: &[FollowUp]) -> StoreResult<()> {
        if follow_ups.is_empty() {
            return Ok(());
        }
        match self.create_now(follow_ups).await {
            // One that cannot be stored must not hold up the rest.
            Err(StoreError::Corrupt(_)) => {}
            stored => return stored,
        }
        for follow_up in follow_ups {
            self.register_or_give_up(follow_up).await?;
        }
        Ok(())
    }

    async fn register_or_give_up(&self, follow_up: &FollowUp) -> StoreResult<()> {
        for tried in 1..=TRIES_MAX {
            match self.create_now(std::slice::from_ref(follow_up)).await {
                Err(StoreError::Corrupt(error)) if tried == TRIES_MAX => {
                    tracing::error!(timer.id = %follow_up.of, %error, "the end of a timer cannot be told: its follow-up cannot be stored");
                }
                Err(StoreError::Corrupt(_)) => {}
                stored => return stored,
            }
        }
        Ok(())
    }

    /// Due from now on, not since the end of the call: the store may have been away for longer than `OVERDUE_WINDOW`.
    async fn create_now(&self, follow_ups: &[FollowUp]) -> StoreResult<()> {
        let now = self.clock.now();
        let new: Vec<NewTimer> =
            follow_ups.iter().map(|follow_up| NewTimer { execute_at: now, created_at: now, ..follow_up.new.clone() }).collect();
        let entries: Vec<DueEntry> = new
            .iter()
            .map(|new| DueEntry { at: new.execute_at, id: new.definition.id, destination: new.definition.destination() })
            .collect();
        let created = self.timers.create(new).await?;
        let is_new = |(created, entry)| matches!(created, Created::Created(_)).then_some(entry);
        let nudges: Vec<DueEntry> = created.into_iter().zip(entries).filter_map(is_new).collect();
        self.scheduler.nudge(&nudges);
        Ok(())
    }
}
