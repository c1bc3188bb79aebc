use std::time::Duration;

use domain::{Backoff, Ending, NewTimer, Next, Timer, follow_up};
use store::{Created, DueEntry, StoreError};

use crate::{Deliver, Pipeline};

/// How often damage must be met before it is believed.
const TRIES_MAX: u32 = 3;

impl<D: Deliver> Pipeline<D> {
    /// Registers the timer that tells of the end of another, if that is asked for, before the end is recorded: after a crash in
    /// between, the same end leads to the same timer, which is there already. Most timers have none, and cost nothing here.
    pub(crate) async fn follow_up(&self, timer: &Timer, next: &Next, attempt: u32) {
        let options = &timer.definition.options;
        if options.on_success.is_none() && options.on_failure.is_none() {
            return;
        }
        if let Some(new) = Ending::of(next, attempt).and_then(|ending| follow_up(timer, &ending)) {
            // Boxed, because it is rare and every delivery would carry its state.
            Box::pin(self.register_follow_up(timer, new)).await;
        }
    }

    /// For as long as it takes: an end without its follow-up would be one that is never told.
    async fn register_follow_up(&self, timer: &Timer, new: NewTimer) {
        let entry = DueEntry { at: new.execute_at, id: new.definition.id, destination: new.definition.destination() };
        let mut backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(1));
        let mut damaged = 0;
        loop {
            match self.timers.create(vec![new.clone()]).await {
                Ok(created) => {
                    if matches!(created.first(), Some(Created::Created(_))) {
                        self.scheduler.nudge(&[entry]);
                    }
                    return;
                }
                Err(error) => {
                    damaged += u32::from(matches!(error, StoreError::Corrupt(_)));
                    if damaged >= TRIES_MAX {
                        tracing::error!(timer.id = %timer.id(), %error, "the end of a timer cannot be told: its follow-up cannot be stored");
                        return;
                    }
                    tracing::warn!(timer.id = %timer.id(), %error, "a follow-up could not be stored; trying again");
                    tokio::time::sleep(backoff.failed()).await;
                }
            }
        }
    }
}
