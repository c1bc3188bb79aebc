use domain::{Status, Timer, TimerId, Timestamp};
use store::{Changed, StoreError};

use crate::{CommandError, Commands, Patch, Verb, call, call::ReadBack};

/// How often an update is retried because the timer was changed concurrently.
const ROUNDS_MAX: u32 = 8;

/// A change whose answer was lost. It is tried again as it was, so that it does not matter which of its tries was committed.
struct Lost {
    changed: Timer,
    due_before: Timestamp,
    now: Timestamp,
    read_back: ReadBack,
}

impl Commands {
    /// Changes a pending or paused timer, if it has the `expected` revision where one is given. Once this returns, the old version never
    /// fires.
    pub async fn update(&self, id: TimerId, patch: &Patch, expected: Option<u32>) -> Result<Timer, CommandError> {
        if patch.is_empty() {
            self.check_may_write()?;
            return pending(self.get(id).await?, Verb::Update, expected);
        }
        self.change(id, Verb::Update, expected, |timer, now| Ok(patch.clone().apply(timer, now, &self.rules)?)).await
    }

    /// When a timer would be due after a change that may be made: checks what can be checked without the store, and changes nothing.
    pub fn preview_update(&self, timer: &Timer, patch: &Patch) -> Result<Timestamp, CommandError> {
        self.check_may_write()?;
        let timer = pending(timer.clone(), Verb::Update, None)?;
        Ok(patch.clone().apply(timer, self.clock.now(), &self.rules)?.execute_at)
    }

    /// Replaces a pending or paused timer with what `make` makes of it. Without an `expected` revision, a change that was overtaken by
    /// another is made again from what that one left.
    pub(crate) async fn change(
        &self,
        id: TimerId,
        verb: Verb,
        expected: Option<u32>,
        make: impl Fn(Timer, Timestamp) -> Result<Timer, CommandError>,
    ) -> Result<Timer, CommandError> {
        self.check_may_write()?;
        let mut lost: Option<Lost> = None;
        for _ in 0..ROUNDS_MAX {
            let met = self.met(id, lost.as_mut()).await?;
            let again = match lost.take() {
                Some(lost) if is_made_by(&met, &lost.changed, lost.now) => {
                    return Ok(self.made(met, lost.due_before, lost.now));
                }
                Some(lost) if met.revision == lost.changed.revision => Some(lost),
                Some(lost) => {
                    overtaken(&met, &lost, expected)?;
                    None
                }
                None => None,
            };
            let timer = pending(met, verb, expected)?;
            let (changed, due_before, now, read_back) = match again {
                Some(Lost { changed, due_before, now, mut read_back }) => {
                    read_back.pause().await?;
                    (changed, due_before, now, Some(read_back))
                }
                None => {
                    let (due_before, now) = (timer.execute_at, self.clock.now());
                    (make(timer, now)?, due_before, now, None)
                }
            };
            let read_back = match (call::writing(self.stores.timers.update(&changed, now)).await, read_back) {
                (Ok(Changed::Done(timer)), _) => return Ok(self.made(timer, due_before, now)),
                // The timer shows what is in the way, which may be an earlier try of this change.
                (Ok(Changed::StaleRevision(_) | Changed::WrongStatus(_)), read_back) => read_back,
                (Ok(Changed::NotFound), _) => return Err(CommandError::NotFound),
                (Err(StoreError::Unknown(_) | StoreError::Unavailable(_)), Some(read_back)) => Some(read_back),
                (Err(cause @ StoreError::Unknown(_)), None) => Some(ReadBack::of("update", cause)),
                (Err(error), _) => return Err(error.into()),
            };
            lost = read_back.map(|read_back| Lost { changed, due_before, now, read_back });
        }
        let cause = format!("timer {id} was changed concurrently {ROUNDS_MAX} times in a row");
        let unavailable = CommandError::Unavailable(StoreError::Unavailable(cause.into()));
        Err(lost.map_or(unavailable, |lost| lost.read_back.given_up().into()))
    }

    /// The timer as it stands. While the outcome of a change is open, no failure to read it says that nothing was changed.
    async fn met(&self, id: TimerId, lost: Option<&mut Lost>) -> Result<Timer, CommandError> {
        match lost {
            None => self.get(id).await,
            Some(lost) => lost.read_back.timer(self, id).await?.ok_or(CommandError::NotFound),
        }
    }

    /// Tells the scheduler of a change that was made.
    fn made(&self, timer: Timer, due_before: Timestamp, now: Timestamp) -> Timer {
        metrics::counter!("timer_updated_total").increment(1);
        // A due timer without a new time may be waiting for a retry, whose time the scheduler knows. A timer that is not due yet may
        // have a new destination.
        if timer.execute_at != due_before || timer.execute_at > now {
            self.scheduled(&timer);
        }
        timer
    }
}

/// Refuses to repeat a change whose answer was lost, and after which the timer has another revision, unless it is certain that it was
/// not made and its client expects no revision.
fn overtaken(met: &Timer, lost: &Lost, expected: Option<u32>) -> Result<(), CommandError> {
    // Of several changes since, the first may have been this one.
    if met.revision > lost.changed.revision + 1 {
        return Err(lost.read_back.given_up().into());
    }
    CommandError::check_revision(met, expected)
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
