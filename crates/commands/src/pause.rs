use domain::{Missed, Status, Timer, TimerId};
use store::{Changed, StoreError};

use crate::{CommandError, Commands, Verb, call, call::ReadBack};

impl Commands {
    /// Takes a pending timer out of what is due, if it has the `expected` revision where one is given. Once this returns, it does not
    /// fire until it is resumed. Idempotent.
    pub async fn pause(&self, id: TimerId, expected: Option<u32>, note: Option<&str>) -> Result<Timer, CommandError> {
        self.check_may_write()?;
        self.check_seen(id).await?;
        let now = self.clock.now();
        let mut answer = call::writing(self.stores.timers.pause(id, expected, note, now)).await;
        if let Err(cause @ StoreError::Unknown(_)) = answer {
            let mut read_back = ReadBack::of("pause", cause);
            answer = loop {
                match read_back.timer(self, id).await? {
                    None => break Ok(Changed::NotFound),
                    Some(timer) if is_paused_at(&timer, now) => break Ok(Changed::Done(timer)),
                    Some(_) => {}
                }
                match call::writing(self.stores.timers.pause(id, expected, note, now)).await {
                    Err(StoreError::Unknown(_) | StoreError::Unavailable(_)) => read_back.pause().await?,
                    known => break known,
                }
            };
        }
        match answer? {
            Changed::Done(timer) => {
                metrics::counter!("timer_paused_total").increment(1);
                Ok(timer)
            }
            Changed::WrongStatus(timer) | Changed::StaleRevision(timer) => {
                CommandError::check_revision(&timer, expected)?;
                match timer.status {
                    Status::Paused => Ok(timer),
                    status => Err(CommandError::WrongStatus { verb: Verb::Pause, status }),
                }
            }
            Changed::NotFound => Err(CommandError::NotFound),
        }
    }

    /// Ends the pause of a timer, if it has the `expected` revision where one is given. It goes on where it was; `missed` decides about
    /// one whose next attempt was due meanwhile. Idempotent: a pending timer stays as it is.
    pub async fn resume(&self, id: TimerId, expected: Option<u32>, missed: Missed) -> Result<Timer, CommandError> {
        self.check_may_write()?;
        let before = self.get(id).await?;
        CommandError::check_revision(&before, expected)?;
        match before.status {
            Status::Paused => {}
            Status::Pending => return Ok(before),
            status => return Err(CommandError::WrongStatus { verb: Verb::Resume, status }),
        }
        let now = self.clock.now();
        let mut answer = call::writing(self.stores.timers.resume(id, expected, missed, now)).await;
        if let Err(cause @ StoreError::Unknown(_)) = answer {
            let mut read_back = ReadBack::of("resume", cause);
            answer = loop {
                match read_back.timer(self, id).await? {
                    None => break Ok(Changed::NotFound),
                    // Whatever became of it since, it is not in this pause any more.
                    Some(timer) if timer.status != Status::Paused => break Ok(Changed::Done(timer)),
                    Some(_) => {}
                }
                match call::writing(self.stores.timers.resume(id, expected, missed, now)).await {
                    Err(StoreError::Unknown(_) | StoreError::Unavailable(_)) => read_back.pause().await?,
                    known => break known,
                }
            };
        }
        match answer? {
            Changed::Done(timer) => {
                metrics::counter!("timer_resumed_total").increment(1);
                // A retry that it waits for may be later; the scheduler then finds nothing, and the sweep finds the retry.
                self.scheduled(&Timer { execute_at: timer.execute_at.max(now), ..timer.clone() });
                Ok(timer)
            }
            Changed::WrongStatus(timer) | Changed::StaleRevision(timer) => {
                CommandError::check_revision(&timer, expected)?;
                match timer.status {
                    Status::Pending => Ok(timer),
                    status => Err(CommandError::WrongStatus { verb: Verb::Resume, status }),
                }
            }
            Changed::NotFound => Err(CommandError::NotFound),
        }
    }
}

/// Whether a pause at that time made the timer what it is.
fn is_paused_at(timer: &Timer, now: domain::Timestamp) -> bool {
    timer.pause.as_ref().is_some_and(|pause| pause.at == now)
}

#[cfg(test)]
mod tests;
