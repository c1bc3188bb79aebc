use domain::{Event, Status, Timer, TimerId, Timestamp};
use store::{Changed, StoreError, StoreResult};

use crate::{CommandError, Commands, Verb, call, call::ReadBack};

impl Commands {
    /// Cancels a pending or paused timer, if it has the `expected` revision where one is given. Once this returns, the timer never
    /// fires. Idempotent.
    pub async fn cancel(&self, id: TimerId, expected: Option<u32>) -> Result<Timer, CommandError> {
        self.check_may_write()?;
        self.check_seen(id).await?;
        match self.cancel_surely(id, expected).await? {
            Changed::Done(timer) => {
                metrics::counter!("timer_canceled_total").increment(1);
                Ok(timer)
            }
            Changed::WrongStatus(timer) | Changed::StaleRevision(timer) => {
                CommandError::check_revision(&timer, expected)?;
                match timer.status {
                    Status::Canceled => Ok(timer),
                    status => Err(CommandError::WrongStatus { verb: Verb::Cancel, status }),
                }
            }
            Changed::NotFound => Err(CommandError::NotFound),
        }
    }

    async fn cancel_surely(&self, id: TimerId, expected: Option<u32>) -> StoreResult<Changed> {
        let now = self.clock.now();
        let cause = match self.cancel_once(id, expected, now).await {
            Err(cause @ StoreError::Unknown(_)) => cause,
            known => return known,
        };
        let mut read_back = ReadBack::of("cancel", cause);
        loop {
            match read_back.timer(self, id).await? {
                None => return Ok(Changed::NotFound),
                // A timer that was registered anew since may have been canceled before, by this command or by another.
                Some(timer) if is_another(&timer, expected) && timer.created_at > now => return Err(read_back.given_up()),
                Some(timer) if is_another(&timer, expected) => return Ok(Changed::StaleRevision(timer)),
                Some(timer) if timer.status == Status::Canceled => return Ok(Changed::Done(timer)),
                Some(timer) if timer.status.after(Event::Cancel).is_none() => return Ok(Changed::WrongStatus(timer)),
                Some(_) => {}
            }
            match self.cancel_once(id, expected, now).await {
                Err(StoreError::Unknown(_) | StoreError::Unavailable(_)) => read_back.pause().await?,
                known => return known,
            }
        }
    }

    async fn cancel_once(&self, id: TimerId, expected: Option<u32>, now: Timestamp) -> StoreResult<Changed> {
        call::writing(self.stores.timers.cancel(id, expected, now)).await
    }
}

fn is_another(timer: &Timer, expected: Option<u32>) -> bool {
    expected.is_some_and(|expected| timer.revision != expected)
}

#[cfg(test)]
mod tests;
