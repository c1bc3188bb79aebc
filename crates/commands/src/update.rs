use domain::{Invalid, Status, Timer, TimerId, Timestamp};
use store::{Changed, StoreError};

use crate::{CommandError, Commands, Patch, Verb, call, call::ReadBack};

/// How often an update is retried because the timer was changed concurrently.
const ROUNDS_MAX: u32 = 8;

impl Commands {
    /// Changes a pending timer. Once this returns, the old version never fires.
    pub async fn update(&self, id: TimerId, patch: &Patch) -> Result<Timer, CommandError> {
        if patch.is_empty() {
            self.check_may_write()?;
            return pending(self.get(id).await?, Verb::Update);
        }
        self.change(id, Verb::Update, |timer, now| patch.clone().apply(timer, now, &self.rules)).await
    }

    /// Replaces a pending timer with what `make` makes of it.
    pub(crate) async fn change(
        &self,
        id: TimerId,
        verb: Verb,
        make: impl Fn(Timer, Timestamp) -> Result<Timer, Invalid>,
    ) -> Result<Timer, CommandError> {
        self.check_may_write()?;
        for _ in 0..ROUNDS_MAX {
            let timer = pending(self.get(id).await?, verb)?;
            let now = self.clock.now();
            let due_before = timer.execute_at;
            let changed = make(timer, now)?;
            if let Some(timer) = self.update_once(&changed, verb, now).await? {
                metrics::counter!("timer_updated_total").increment(1);
                // A due timer without a new time may be waiting for a retry, whose time the scheduler knows. A timer that is
                // not due yet may have a new destination.
                if timer.execute_at != due_before || timer.execute_at > now {
                    self.scheduled(&timer);
                }
                return Ok(timer);
            }
        }
        let cause = format!("timer {id} was changed by others {ROUNDS_MAX} times in a row");
        Err(CommandError::Unavailable(StoreError::Unavailable(cause.into())))
    }

    /// Tries one change. `None` when the timer is no longer what the change was made from.
    async fn update_once(&self, changed: &Timer, verb: Verb, now: Timestamp) -> Result<Option<Timer>, CommandError> {
        match call::writing(self.stores.timers.update(changed, now)).await {
            Ok(Changed::Done(timer)) => Ok(Some(timer)),
            Ok(Changed::StaleRevision) => Ok(None),
            Ok(Changed::WrongStatus(timer)) => pending(timer, verb).map(|_| None),
            Ok(Changed::NotFound) => Err(CommandError::NotFound),
            Err(cause @ StoreError::Unknown(_)) => {
                let mut read_back = ReadBack::of("update", cause);
                let timer = read_back.timer(self, changed.id()).await?.ok_or(CommandError::NotFound)?;
                if is_made_by(&timer, changed, now) {
                    return Ok(Some(timer));
                }
                read_back.pause().await?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn pending(timer: Timer, verb: Verb) -> Result<Timer, CommandError> {
    match timer.status {
        Status::Pending => Ok(timer),
        status => Err(CommandError::WrongStatus { verb, status }),
    }
}

/// Whether this change made the timer what it is, even if it has fired since, or was rescheduled by its receiver.
fn is_made_by(timer: &Timer, changed: &Timer, now: Timestamp) -> bool {
    timer.revision > changed.revision
        && timer.definition == changed.definition
        && (timer.updated_at == now || timer.status != Status::Pending)
}

#[cfg(test)]
mod tests;
