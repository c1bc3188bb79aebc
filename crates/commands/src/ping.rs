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
                let wanted = self.pinged_to(&timer, delay, now)?;
                // Its own delay was registered beside the limit, and stands.
                let limit = timer.definition.options.postpone_max.filter(|_| delay.is_some());
                let due = limit.map_or(wanted, |limit| wanted.min(now.saturating_add(limit)));
                if let Some(revived) = self.revive_surely(&moved(timer, due)?, expected, now).await? {
                    self.scheduled(&revived);
                    return Ok(revived);
                }
                continue;
            }
            let postponed = |timer: Timer, now| {
                let wanted = self.pinged_to(&timer, delay, now)?;
                let due = Times::of(&timer, wanted).postponed();
                Ok(moved(timer, due)?)
            };
            match self.change(id, Verb::Ping, expected, postponed).await {
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
        match (delay, &timer.definition.asked) {
            (Some(delay), _) => self.rules.instant(&RequestedTime::After(delay), EarliestAllowed::MinDelay, now),
            // Its own delay was allowed when the timer was registered.
            (None, own @ RequestedTime::After(_)) => self.rules.instant(own, EarliestAllowed::Now, now),
            (None, RequestedTime::At(_)) => Err(Invalid::new("delay", "is required, because the timer has an execute_at")),
        }
    }

    /// Gives the timer one new life. `None` when it is no longer what the new life was made from.
    async fn revive_surely(&self, changed: &Timer, expected: Option<u32>, now: Timestamp) -> Result<Option<Timer>, CommandError> {
        let mut lost: Option<ReadBack> = None;
        loop {
            let met = match (call::writing(self.stores.timers.revive(changed, now)).await, &mut lost) {
                (Ok(Changed::Done(timer)), _) => return Ok(Some(timer)),
                (Ok(Changed::NotFound), _) => return Err(CommandError::NotFound),
                (Ok(Changed::StaleRevision(_) | Changed::WrongStatus(_)), None) => return Ok(None),
                // The first try may have been committed late.
                (Ok(Changed::StaleRevision(timer) | Changed::WrongStatus(timer)), Some(_)) => timer,
                (Err(StoreError::Unknown(_) | StoreError::Unavailable(_)), Some(read_back)) => {
                    read_back.timer(self, changed.id()).await?.ok_or(CommandError::NotFound)?
                }
                (Err(cause @ StoreError::Unknown(_)), None) => {
                    let read_back = lost.insert(ReadBack::of("revive", cause));
                    read_back.timer(self, changed.id()).await?.ok_or(CommandError::NotFound)?
                }
                (Err(error), _) => return Err(error.into()),
            };
            let Some(read_back) = &mut lost else { return Ok(None) };
            if met.revision > changed.revision && met.created_at == now {
                return Ok(Some(met));
            }
            // Of several lives since, the first may have been this one.
            if expected.is_some() && met.revision > changed.revision + 1 {
                return Err(read_back.given_up().into());
            }
            if met.revision != changed.revision || !can_be_revived(met.status) {
                return Ok(None);
            }
            read_back.pause().await?;
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
