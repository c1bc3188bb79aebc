use domain::{Event, Timer, TimerId, Timestamp};
use store::{Changed, DueEntry, StoreError};

use crate::{CommandError, Commands, Verb, call, call::ReadBack};

impl Commands {
    /// Makes a failed or expired timer due again now, with a new count of attempts, if it has the `expected` revision where one is
    /// given. Its due time stays, and with it the `webhook-id` by which the receiver recognises the call. Refuses a timer whose own
    /// expiry has come: it would end without a call.
    pub async fn retry(&self, id: TimerId, expected: Option<u32>) -> Result<Timer, CommandError> {
        self.check_may_write()?;
        let failed = self.get(id).await?;
        CommandError::check_revision(&failed, expected)?;
        if failed.status.after(Event::Reopen).is_none() {
            return Err(CommandError::WrongStatus { verb: Verb::Retry, status: failed.status });
        }
        let now = self.clock.now();
        if let Some(at) = failed.expires_at().filter(|expires_at| *expires_at <= now) {
            return Err(CommandError::Expired { verb: Verb::Retry, at });
        }
        let reopened = match call::writing(self.stores.timers.reopen(id, expected, now)).await {
            Err(cause @ StoreError::Unknown(_)) => self.confirm_retry(&failed, expected, now, cause).await?,
            known => reopened(known?, expected)?,
        };
        metrics::counter!("timer_retried_total").increment(1);
        (self.nudge)(&[DueEntry { at: now, id, destination: reopened.definition.destination() }]);
        Ok(reopened)
    }

    /// Finds the outcome of a retry whose answer was lost.
    async fn confirm_retry(
        &self,
        failed: &Timer,
        expected: Option<u32>,
        now: Timestamp,
        cause: StoreError,
    ) -> Result<Timer, CommandError> {
        let mut read_back = ReadBack::of("retry", cause);
        loop {
            let timer = read_back.timer(self, failed.id()).await?.ok_or(CommandError::NotFound)?;
            if timer.revision > failed.revision {
                return tried_again(timer, failed, expected, now, &read_back);
            }
            match call::writing(self.stores.timers.reopen(failed.id(), expected, now)).await {
                Err(StoreError::Unknown(_) | StoreError::Unavailable(_)) => read_back.pause().await?,
                // The first try may have been committed after the timer was read.
                Ok(Changed::WrongStatus(timer) | Changed::StaleRevision(timer)) if timer.revision > failed.revision => {
                    return tried_again(timer, failed, expected, now, &read_back);
                }
                known => return reopened(known?, expected),
            }
        }
    }
}

/// The answer to a retry whose own answer was lost, and after which the timer has a higher revision: only a retry, or a change after one,
/// raises that of a failed timer.
fn tried_again(
    timer: Timer,
    failed: &Timer,
    expected: Option<u32>,
    now: Timestamp,
    read_back: &ReadBack,
) -> Result<Timer, CommandError> {
    let is_made_here = expected.is_none() || timer.updated_at == now;
    // A timer that has ended or was changed since no longer shows which client had it tried again.
    let is_open = timer.status.is_finished() || timer.revision > failed.revision + 1;
    match (is_made_here, is_open) {
        (true, _) => Ok(timer),
        (false, true) => Err(read_back.given_up().into()),
        (false, false) => CommandError::check_revision(&timer, expected).map(|()| timer),
    }
}

fn reopened(changed: Changed, expected: Option<u32>) -> Result<Timer, CommandError> {
    match changed {
        Changed::Done(timer) => Ok(timer),
        Changed::WrongStatus(timer) | Changed::StaleRevision(timer) => {
            CommandError::check_revision(&timer, expected)?;
            Err(CommandError::WrongStatus { verb: Verb::Retry, status: timer.status })
        }
        Changed::NotFound => Err(CommandError::NotFound),
    }
}

#[cfg(test)]
mod tests;
