use domain::{Event, Timer, TimerId};
use store::{Changed, DueEntry, StoreError};

use crate::{CommandError, Commands, Verb, call, call::ReadBack};

impl Commands {
    /// Makes a failed or expired timer due again now, with a new count of attempts. Its due time stays, and with it the `webhook-id`
    /// by which the receiver recognises the call. Refuses a timer whose own expiry has come: it would end without a call.
    pub async fn retry(&self, id: TimerId) -> Result<Timer, CommandError> {
        self.check_may_write()?;
        let failed = self.get(id).await?;
        if failed.status.after(Event::Reopen).is_none() {
            return Err(CommandError::WrongStatus { verb: Verb::Retry, status: failed.status });
        }
        let now = self.clock.now();
        if let Some(expired_at) = failed.expires_at().filter(|expires_at| *expires_at <= now) {
            return Err(CommandError::Expired(expired_at));
        }
        let reopened = match call::writing(self.stores.timers.reopen(id, now)).await {
            Err(cause @ StoreError::Unknown(_)) => self.confirm_retry(&failed, cause).await?,
            known => reopened(known?)?,
        };
        metrics::counter!("timer_retried_total").increment(1);
        (self.nudge)(&[DueEntry { at: now, id, destination: reopened.definition.destination() }]);
        Ok(reopened)
    }

    /// Finds the outcome of a retry whose answer was lost.
    async fn confirm_retry(&self, failed: &Timer, cause: StoreError) -> Result<Timer, CommandError> {
        let mut read_back = ReadBack::of("retry", cause);
        loop {
            let timer = read_back.timer(self, failed.id()).await?.ok_or(CommandError::NotFound)?;
            // Only a retry, or a change after one, raises the revision of a failed timer.
            if timer.revision > failed.revision {
                return Ok(timer);
            }
            match call::writing(self.stores.timers.reopen(failed.id(), self.clock.now())).await {
                Err(StoreError::Unknown(_) | StoreError::Unavailable(_)) => read_back.pause().await?,
                known => return reopened(known?),
            }
        }
    }
}

fn reopened(changed: Changed) -> Result<Timer, CommandError> {
    match changed {
        Changed::Done(timer) => Ok(timer),
        Changed::WrongStatus(timer) => Err(CommandError::WrongStatus { verb: Verb::Retry, status: timer.status }),
        Changed::NotFound => Err(CommandError::NotFound),
        Changed::StaleRevision => Err(CommandError::Internal(StoreError::Corrupt("a retry cannot be moved".into()))),
    }
}

#[cfg(test)]
mod tests;
