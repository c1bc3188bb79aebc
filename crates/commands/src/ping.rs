use domain::{Event, Invalid, RequestedTime, Span, Status, Timer, TimerId, Times, Timestamp};
use store::{Changed, StoreError};

use crate::{CommandError, Commands, EarliestAllowed, Verb, call, call::ReadBack};

/// How often a timer may be changed concurrently before its client is told to try again.
const ROUNDS_MAX: u32 = 8;

impl Commands {
    /// Postpones a timer, if it has the `expected` revision where one is given: it is due `delay` from now, or its own delay from
    /// now, but no later than its `postpone_max` allows. A timer that has ended starts anew, unless it was canceled. The time that
    /// its caller asked for stays: a repetition of the original request is still recognised.
    pub async fn ping(&self, id: TimerId, delay: Option<Span>, expected: Option<u32>) -> Result<Timer, CommandError> {
        self.check_may_write()?;
        for _ in 0..ROUNDS_MAX {
            let timer = self.get(id).await?;
            CommandError::check_revision(&timer, expected)?;
            if can_be_revived(timer.status) {
                let now = self.clock.now();
                let due = self.pinged_to(&timer, delay, now)?;
                if let Some(revived) = self.revive_once(&moved(timer, due)?, now).await? {
                    self.scheduled(&revived);
                    return Ok(revived);
                }
                continue;
            }
            let postponed = |timer: Timer, now| {
                let wanted = self.pinged_to(&timer, delay, now)?;
                let due = Times::of(&timer, wanted).postponed();
                moved(timer, due)
            };
            match self.change(id, Verb::Ping, postponed).await {
                // It has ended since it was read.
                Err(CommandError::WrongStatus { status, .. }) if can_be_revived(status) => {}
                answer => return answer,
            }
        }
        let cause = format!("timer {id} was changed {ROUNDS_MAX} times in a row");
        Err(CommandError::Unavailable(StoreError::Unavailable(cause.into())))
    }

    /// When the timer is due if nothing limits it.
    fn pinged_to(&self, timer: &Timer, delay: Option<Span>, now: Timestamp) -> Result<Timestamp, Invalid> {
        match (delay, timer.definition.asked) {
            (Some(delay), _) => self.rules.instant(RequestedTime::After(delay), EarliestAllowed::MinDelay, now),
            // Its own delay was allowed when the timer was registered.
            (None, own @ RequestedTime::After(_)) => self.rules.instant(own, EarliestAllowed::Now, now),
            (None, RequestedTime::At(_)) => Err(Invalid::new("delay", "is required, because the timer has an execute_at")),
        }
    }

    /// Tries one new life. `None` when the timer is no longer what it was made from.
    async fn revive_once(&self, changed: &Timer, now: Timestamp) -> Result<Option<Timer>, CommandError> {
        match call::writing(self.stores.timers.revive(changed, now)).await {
            Ok(Changed::Done(timer)) => Ok(Some(timer)),
            Ok(Changed::StaleRevision | Changed::WrongStatus(_)) => Ok(None),
            Ok(Changed::NotFound) => Err(CommandError::NotFound),
            Err(cause @ StoreError::Unknown(_)) => {
                let mut read_back = ReadBack::of("revive", cause);
                let timer = read_back.timer(self, changed.id()).await?.ok_or(CommandError::NotFound)?;
                if timer.revision > changed.revision && timer.created_at == now {
                    return Ok(Some(timer));
                }
                read_back.pause().await?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What was canceled stays so until it is registered again.
fn can_be_revived(status: Status) -> bool {
    status != Status::Canceled && status.after(Event::Revive).is_some()
}

fn moved(timer: Timer, due: Timestamp) -> Result<Timer, Invalid> {
    timer.definition.options.expiry.map_or(Ok(()), |expiry| expiry.check(due))?;
    Ok(Timer { execute_at: due, ..timer })
}

#[cfg(test)]
mod tests;
