//! What a caller changes about one timer: an update or its end while it is pending or paused, another try or a new life when it has ended.

use domain::{Event, Status, Timer, TimerId, Timestamp};
use store::{BulkStep, Changed};
use store_sql::Call;

use crate::{
    change_all::{Rows, apply},
    conflict::{Held, NextAttempt, hold, renewed, replace},
    connector::Connector,
    failure::Failure,
    rows::destination_column,
    session::Session,
    transaction::Transaction,
};

/// Locks the timer, if its status allows the event and it has the expected revision; otherwise says why not.
pub async fn hold_for(
    transaction: &mut Transaction<'_>,
    id: TimerId,
    event: Event,
    expected: Option<u32>,
    shards: u16,
) -> Result<Result<Held, Changed>, Failure> {
    let Some(held) = hold(transaction.session(), id, shards).await? else { return Ok(Err(Changed::NotFound)) };
    if held.timer.status.after(event).is_none() {
        return Ok(Err(Changed::WrongStatus(held.timer)));
    }
    if expected.is_some_and(|expected| expected != held.timer.revision) {
        return Ok(Err(Changed::StaleRevision(held.timer)));
    }
    Ok(Ok(held))
}

pub struct Update {
    pub changed: Timer,
    pub now: Timestamp,
    pub shards: u16,
}

impl Call<Connector> for Update {
    type Answer = Changed;
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<Changed, Failure> {
        let mut transaction = Transaction::recording(session).await?;
        let Timer { revision, .. } = self.changed;
        let held = match hold_for(&mut transaction, self.changed.id(), Event::Update, Some(revision), self.shards).await? {
            Ok(held) => held,
            Err(refusal) => return transaction.rollback().await.map(|()| refusal),
        };
        let mut timer = renewed(&held, self.changed.definition.clone(), self.changed.execute_at, self.now);
        let next = if timer.execute_at == held.timer.execute_at {
            (timer.attempt, timer.last_error) = (held.timer.attempt, held.timer.last_error.clone());
            NextAttempt::AsItWas
        } else {
            NextAttempt::AtTheNewTime
        };
        replace(&mut transaction, &held, &timer, timer.definition.fingerprint(), next, self.shards)?;
        transaction.commit().await?;
        Ok(Changed::Done(timer))
    }
}

pub struct Cancel {
    pub id: TimerId,
    pub expected: Option<u32>,
    pub now: Timestamp,
    pub shards: u16,
}

impl Call<Connector> for Cancel {
    type Answer = Changed;
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<Changed, Failure> {
        let mut transaction = Transaction::recording(session).await?;
        let held = match hold_for(&mut transaction, self.id, Event::Cancel, self.expected, self.shards).await? {
            Ok(held) => held,
            Err(refusal) => return transaction.rollback().await.map(|()| refusal),
        };
        let status = Status::Canceled;
        let step = BulkStep::End { status, error: None };
        apply(&mut transaction, step, &Rows::of(&held, 0, self.shards), None, self.now)?;
        transaction.commit().await?;
        Ok(Changed::Done(Timer { status, updated_at: self.now, pause: None, ..held.timer }))
    }
}

pub struct Reopen {
    pub id: TimerId,
    pub expected: Option<u32>,
    pub now: Timestamp,
    pub shards: u16,
}

impl Call<Connector> for Reopen {
    type Answer = Changed;
    const WRITES: bool = true;

    /// Holds the outcome first: a purge passes it over, and a replacement waits.
    async fn run(&self, session: &mut Session) -> Result<Changed, Failure> {
        let mut transaction = Transaction::recording(session).await?;
        let held = match hold_for(&mut transaction, self.id, Event::Reopen, self.expected, self.shards).await? {
            Ok(held) => held,
            Err(refusal) => return transaction.rollback().await.map(|()| refusal),
        };
        let timer = renewed(&held, held.timer.definition.clone(), held.timer.execute_at, self.now);
        let destination = destination_column(timer.definition.destination());
        let held = Held { at: Some(self.now.as_micros()), ..held };
        let step = BulkStep::Reopen { at: self.now };
        apply(&mut transaction, step, &Rows::of(&held, destination, self.shards), None, self.now)?;
        transaction.commit().await?;
        Ok(Changed::Done(timer))
    }
}

/// A new life for a timer that has ended, if it is still the one that its client has read.
pub struct Revive {
    pub changed: Timer,
    pub now: Timestamp,
    pub shards: u16,
}

impl Call<Connector> for Revive {
    type Answer = Changed;
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<Changed, Failure> {
        let mut transaction = Transaction::recording(session).await?;
        let Timer { revision, .. } = self.changed;
        let held = match hold_for(&mut transaction, self.changed.id(), Event::Revive, Some(revision), self.shards).await? {
            Ok(held) => held,
            Err(refusal) => return transaction.rollback().await.map(|()| refusal),
        };
        let renewed = renewed(&held, self.changed.definition.clone(), self.changed.execute_at, self.now);
        let timer = Timer { created_at: self.now, ..renewed };
        let fingerprint = timer.definition.fingerprint();
        replace(&mut transaction, &held, &timer, fingerprint, NextAttempt::AtTheNewTime, self.shards)?;
        transaction.commit().await?;
        Ok(Changed::Done(timer))
    }
}
