use domain::{Invalid, Status, Timer, TimerId, Timestamp};
use store::{Changed, StoreError};

use crate::{CommandError, Commands, Patch, Verb, call, call::ReadBack};

/// How often an update is retried because the timer was changed concurrently.
const ROUNDS_MAX: u32 = 8;

/// What one try of a change came to.
enum Tried {
    Done(Box<Timer>),
    /// The timer is no longer what the change was made from, and the change was not made.
    Stale,
    /// Its answer was lost, and the timer does not show that the change was made.
    Unanswered(ReadBack),
}

impl Commands {
    /// Changes a pending or paused timer, if it has the `expected` revision where one is given. Once this returns, the old version never
    /// fires.
    pub async fn update(&self, id: TimerId, patch: &Patch, expected: Option<u32>) -> Result<Timer, CommandError> {
        if patch.is_empty() {
            self.check_may_write()?;
            return pending(self.get(id).await?, Verb::Update, expected);
        }
        self.change(id, Verb::Update, expected, |timer, now| patch.clone().apply(timer, now, &self.rules)).await
    }

    /// Replaces a pending or paused timer with what `make` makes of it. Without an `expected` revision, a change that was overtaken by
    /// another is made again from what that one left.
    pub(crate) async fn change(
        &self,
        id: TimerId,
        verb: Verb,
        expected: Option<u32>,
        make: impl Fn(Timer, Timestamp) -> Result<Timer, Invalid>,
    ) -> Result<Timer, CommandError> {
        self.check_may_write()?;
        let mut unanswered: Option<(Timer, Timestamp, ReadBack)> = None;
        for _ in 0..ROUNDS_MAX {
            let met = self.get(id).await?;
            if let (Some(expected), Some((changed, now, read_back))) = (expected, &unanswered)
                && met.revision != expected
            {
                return overtaken(met, changed, *now, read_back).inspect(|timer| self.scheduled(timer));
            }
            let timer = pending(met, verb, expected)?;
            let now = self.clock.now();
            let due_before = timer.execute_at;
            let changed = make(timer, now)?;
            match self.try_change(&changed, verb, now, expected).await? {
                Tried::Done(timer) => {
                    metrics::counter!("timer_updated_total").increment(1);
                    // A due timer without a new time may be waiting for a retry, whose time the scheduler knows. A timer that is
                    // not due yet may have a new destination.
                    if timer.execute_at != due_before || timer.execute_at > now {
                        self.scheduled(&timer);
                    }
                    return Ok(*timer);
                }
                Tried::Stale => {}
                Tried::Unanswered(mut read_back) => {
                    read_back.pause().await?;
                    unanswered = Some((changed, now, read_back));
                }
            }
        }
        let cause = format!("timer {id} was changed concurrently {ROUNDS_MAX} times in a row");
        Err(CommandError::Unavailable(StoreError::Unavailable(cause.into())))
    }

    async fn try_change(
        &self,
        changed: &Timer,
        verb: Verb,
        now: Timestamp,
        expected: Option<u32>,
    ) -> Result<Tried, CommandError> {
        match call::writing(self.stores.timers.update(changed, now)).await {
            Ok(Changed::Done(timer)) => Ok(Tried::Done(Box::new(timer))),
            Ok(Changed::StaleRevision(_)) => Ok(Tried::Stale),
            Ok(Changed::WrongStatus(timer)) => pending(timer, verb, expected).map(|_| Tried::Stale),
            Ok(Changed::NotFound) => Err(CommandError::NotFound),
            Err(cause @ StoreError::Unknown(_)) => {
                let mut read_back = ReadBack::of("update", cause);
                let timer = read_back.timer(self, changed.id()).await?.ok_or(CommandError::NotFound)?;
                Ok(if is_made_by(&timer, changed, now) { Tried::Done(Box::new(timer)) } else { Tried::Unanswered(read_back) })
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The answer to a change of one revision whose own answer was lost, and after which the timer was met with another revision.
fn overtaken(met: Timer, changed: &Timer, now: Timestamp, read_back: &ReadBack) -> Result<Timer, CommandError> {
    if is_made_by(&met, changed, now) {
        return Ok(met);
    }
    // Of several changes since, the first may have been this one.
    if met.revision > changed.revision + 1 {
        return Err(read_back.given_up().into());
    }
    Err(CommandError::StaleRevision { revision: met.revision, expected: changed.revision })
}

fn pending(timer: Timer, verb: Verb, expected: Option<u32>) -> Result<Timer, CommandError> {
    CommandError::check_revision(&timer, expected)?;
    match timer.status {
        Status::Pending => Ok(timer),
        // It is changed in its pause, and goes on with the change.
        Status::Paused if verb == Verb::Update => Ok(timer),
        status => Err(CommandError::WrongStatus { verb, status }),
    }
}

/// Whether this change made the timer what it is, even if it has fired since, or was rescheduled by its receiver.
fn is_made_by(timer: &Timer, changed: &Timer, now: Timestamp) -> bool {
    timer.revision > changed.revision
        && timer.definition == changed.definition
        && (timer.execute_at == changed.execute_at || timer.revision > changed.revision + 1)
        && (timer.updated_at == now || timer.status != Status::Pending)
}

#[cfg(test)]
mod tests;
