use domain::{Missed, Status, Timer, TimerId, Timestamp};
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
                let Some(timer) = read_back.timer(self, id).await? else { break Ok(Changed::NotFound) };
                match paused_since(&timer, expected, now) {
                    Trace::Made => break Ok(Changed::Done(timer)),
                    Trace::Open => return Err(read_back.given_up().into()),
                    Trace::NotMade => {}
                }
                match call::writing(self.stores.timers.pause(id, expected, note, now)).await {
                    Err(StoreError::Unknown(_) | StoreError::Unavailable(_)) => read_back.pause().await?,
                    // The first try may have been committed after the timer was read: what is there now decides.
                    Ok(Changed::StaleRevision(timer) | Changed::WrongStatus(timer))
                        if paused_since(&timer, expected, now) != Trace::NotMade => {}
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
                let Some(timer) = read_back.timer(self, id).await? else { break Ok(Changed::NotFound) };
                match resumed_since(&timer, &before, expected, now) {
                    Trace::Made => break Ok(Changed::Done(timer)),
                    Trace::Open => return Err(read_back.given_up().into()),
                    Trace::NotMade => {}
                }
                match call::writing(self.stores.timers.resume(id, expected, missed, now)).await {
                    Err(StoreError::Unknown(_) | StoreError::Unavailable(_)) => read_back.pause().await?,
                    Ok(Changed::StaleRevision(timer) | Changed::WrongStatus(timer))
                        if resumed_since(&timer, &before, expected, now) != Trace::NotMade => {}
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

/// What a timer shows of a change whose answer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trace {
    /// It was made.
    Made,
    /// It was not made, or not yet.
    NotMade,
    /// What came since hides whether it was made.
    Open,
}

/// Whether the timer was paused at `now`. A pause raises the revision, and so does what ends it.
fn paused_since(timer: &Timer, expected: Option<u32>, now: Timestamp) -> Trace {
    if timer.pause.as_ref().is_some_and(|pause| pause.at == now) {
        return Trace::Made;
    }
    match expected {
        Some(expected) if timer.revision > expected.saturating_add(1) => Trace::Open,
        // A cancel leaves the revision of the change before it.
        Some(expected) if timer.revision > expected && timer.status.is_finished() => Trace::Open,
        _ => Trace::NotMade,
    }
}

/// Whether a timer that was paused, `before`, was resumed at `now`. A client that expects no revision asks only that the pause is over,
/// by its own request or another.
fn resumed_since(timer: &Timer, before: &Timer, expected: Option<u32>, now: Timestamp) -> Trace {
    let is_made_here = timer.updated_at == now;
    match (timer.revision.saturating_sub(before.revision), timer.status) {
        // One that ends with its pause keeps its revision.
        (0, Status::Expired) if is_made_here => Trace::Made,
        // Paused as it was or changed in its pause, or ended in it.
        (0, _) | (1, Status::Paused) => Trace::NotMade,
        (1, _) if is_made_here => Trace::Made,
        // Paused anew.
        (_, Status::Paused) => Trace::Open,
        _ if expected.is_none() => Trace::Made,
        // Another client has ended the pause.
        (1, status) if !status.is_finished() => Trace::NotMade,
        _ => Trace::Open,
    }
}

#[cfg(test)]
mod tests;
