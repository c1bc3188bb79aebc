use domain::{Status, Timer, TimerId, Timestamp};
use store::{Changed, StoreError};

use crate::{CommandError, Commands, Patch, Verb, call, call::ReadBack};

/// How often an update is made anew because somebody else changed the timer in between.
const ROUNDS_MAX: u32 = 8;

impl Commands {
    /// Changes a pending timer. When this answers, the old version never fires.
    pub async fn update(&self, id: TimerId, patch: &Patch) -> Result<Timer, CommandError> {
        for _ in 0..ROUNDS_MAX {
            let timer = pending(self.get(id).await?)?;
            if patch.is_empty() {
                return Ok(timer);
            }
            let now = self.clock.now();
            let due_before = timer.execute_at;
            let changed = patch.clone().apply(timer, now, &self.rules)?;
            if let Some(timer) = self.update_once(&changed, now).await? {
                metrics::counter!("timer_updated_total").increment(1);
                // One that was due and gets no new time may be waiting for a retry: the scheduler knows until when. One that is
                // still to come may have got another destination.
                if timer.execute_at != due_before || timer.execute_at > now {
                    self.scheduled(&timer);
                }
                return Ok(timer);
            }
        }
        let cause = format!("timer {id} was changed by others {ROUNDS_MAX} times in a row");
        Err(CommandError::Unavailable(StoreError::Unavailable(cause)))
    }

    /// Tries one change. `None` when the timer is no longer what the change was made from.
    async fn update_once(&self, changed: &Timer, now: Timestamp) -> Result<Option<Timer>, CommandError> {
        match call::writing(self.store.update(changed, now)).await {
            Ok(Changed::Done(timer)) => Ok(Some(timer)),
            Ok(Changed::Moved) => Ok(None),
            Ok(Changed::Met(timer)) => pending(timer).map(|_| None),
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

fn pending(timer: Timer) -> Result<Timer, CommandError> {
    match timer.status {
        Status::Pending => Ok(timer),
        status => Err(CommandError::Met { verb: Verb::Update, status }),
    }
}

/// Whether this timer is what that change made of it, even if it has fired since, or was moved by its receiver.
fn is_made_by(timer: &Timer, changed: &Timer, now: Timestamp) -> bool {
    timer.revision > changed.revision
        && timer.definition == changed.definition
        && (timer.updated_at == now || timer.status != Status::Pending)
}

#[cfg(test)]
mod tests;
