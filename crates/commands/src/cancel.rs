use domain::{Status, Timer, TimerId};
use store::{Changed, StoreError, StoreResult};

use crate::{CommandError, Commands, Verb, call, call::ReadBack};

impl Commands {
    /// Cancels a pending timer. Once this returns, the timer never fires. Idempotent.
    pub async fn cancel(&self, id: TimerId) -> Result<Timer, CommandError> {
        self.check_may_write()?;
        self.check_seen(id).await?;
        match self.cancel_surely(id).await? {
            Changed::Done(timer) => {
                metrics::counter!("timer_canceled_total").increment(1);
                Ok(timer)
            }
            Changed::WrongStatus(timer) if timer.status == Status::Canceled => Ok(timer),
            Changed::WrongStatus(timer) => Err(CommandError::WrongStatus { verb: Verb::Cancel, status: timer.status }),
            Changed::NotFound => Err(CommandError::NotFound),
            Changed::StaleRevision => Err(CommandError::Internal(StoreError::Corrupt("a cancel cannot be moved".into()))),
        }
    }

    async fn cancel_surely(&self, id: TimerId) -> StoreResult<Changed> {
        let cause = match self.cancel_once(id).await {
            Err(cause @ StoreError::Unknown(_)) => cause,
            known => return known,
        };
        let mut read_back = ReadBack::of("cancel", cause);
        loop {
            match read_back.timer(self, id).await? {
                None => return Ok(Changed::NotFound),
                Some(timer) if timer.status == Status::Canceled => return Ok(Changed::Done(timer)),
                Some(timer) if timer.status != Status::Pending => return Ok(Changed::WrongStatus(timer)),
                Some(_) => {}
            }
            match self.cancel_once(id).await {
                Err(StoreError::Unknown(_) | StoreError::Unavailable(_)) => read_back.pause().await?,
                known => return known,
            }
        }
    }

    async fn cancel_once(&self, id: TimerId) -> StoreResult<Changed> {
        call::writing(self.stores.timers.cancel(id, self.clock.now())).await
    }
}

#[cfg(test)]
mod tests;
