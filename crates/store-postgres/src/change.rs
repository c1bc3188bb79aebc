//! What a caller changes about one timer: an update or its end while it is pending or paused, another try or a new life when it has ended.

use domain::{Event, Status, Timer, TimerId, Timestamp};
use sqlx::{Connection, PgConnection, Row};
use store::Changed;
use store_sql::{Call, sql};

use crate::{
    conflict::{NextAttempt, hold, renewed, replace},
    connector::Connector,
    failure::{Failure, Step},
    read::Read,
    rows::{destination_column, shard_column},
};

pub struct Update {
    pub changed: Timer,
    pub now: Timestamp,
    pub shards: u16,
}

impl Call<Connector> for Update {
    type Answer = Changed;
    const WRITES: bool = true;
    const LEAVES_A_TRANSACTION: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Changed, Failure> {
        let mut transaction = session.begin().await.or_not_done()?;
        let Some(held) = hold(&mut transaction, self.changed.id(), self.shards).await? else {
            return Ok(Changed::NotFound);
        };
        if held.timer.status.after(Event::Update).is_none() {
            return Ok(Changed::WrongStatus(held.timer));
        }
        if held.timer.revision != self.changed.revision {
            return Ok(Changed::StaleRevision(held.timer));
        }
        let mut timer = renewed(&held, self.changed.definition.clone(), self.changed.execute_at, self.now);
        let next = if timer.execute_at == held.timer.execute_at {
            (timer.attempt, timer.last_error) = (held.timer.attempt, held.timer.last_error.clone());
            NextAttempt::AsItWas
        } else {
            NextAttempt::AtTheNewTime
        };
        replace(&mut transaction, &held, &timer, timer.definition.fingerprint(), next, self.shards).await?;
        transaction.commit().await.or_unknown()?;
        Ok(Changed::Done(timer))
    }
}

pub(crate) const CANCEL: &str = sql!("sql/cancel.sql");

pub struct Cancel {
    pub id: TimerId,
    pub now: Timestamp,
    pub shards: u16,
}

impl Call<Connector> for Cancel {
    type Answer = Changed;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Changed, Failure> {
        let canceled = sqlx::query(CANCEL)
            .bind(self.id.as_uuid())
            .bind(shard_column(self.id, self.shards))
            .bind(self.now.as_micros())
            .fetch_optional(&mut *session)
            .await
            .or_unknown()?;
        // Read afterwards: the statement may have waited for an update, whose content it does not see.
        let existing = Read::new(vec![self.id], self.shards).run(session).await;
        let Some(canceled) = canceled else {
            return match existing?.remove(&self.id).transpose()?.map(|existing| existing.timer) {
                None => Ok(Changed::NotFound),
                Some(timer) if timer.status.after(Event::Cancel).is_some() => {
                    Err(Failure::contention("other requests keep moving this timer"))
                }
                Some(timer) => Ok(Changed::WrongStatus(timer)),
            };
        };
        let existing = existing.and_then(|mut existing| Ok(existing.remove(&self.id).transpose()?));
        let Some(existing) = existing.map_err(Failure::after_a_commit)? else {
            return Err(Failure::contention("it was canceled, and removed at once").after_a_commit());
        };
        // Whatever happened to it since, this is what the cancel made of it.
        Ok(Changed::Done(Timer {
            status: Status::Canceled,
            attempt: u32::try_from(canceled.try_get::<i32, _>("attempt").or_unknown()?).unwrap_or(0),
            last_error: canceled.try_get("last_error").or_unknown()?,
            executed_at: None,
            updated_at: self.now,
            pause: None,
            ..existing.timer
        }))
    }
}

/// A cancel of one revision of a timer.
///
/// Locks the timer first, because the statement of [`Cancel`] may wait for an update that leaves the timer where it is: it then sees
/// the row in `due` as it is now, and the definition with its revision as it was before.
pub struct CancelRevision {
    pub cancel: Cancel,
    pub revision: u32,
}

impl Call<Connector> for CancelRevision {
    type Answer = Changed;
    const WRITES: bool = true;
    const LEAVES_A_TRANSACTION: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Changed, Failure> {
        let Cancel { id, now, shards } = self.cancel;
        let mut transaction = session.begin().await.or_not_done()?;
        let Some(held) = hold(&mut transaction, id, shards).await? else {
            return Ok(Changed::NotFound);
        };
        if held.timer.status.after(Event::Cancel).is_none() {
            return Ok(Changed::WrongStatus(held.timer));
        }
        if held.timer.revision != self.revision {
            return Ok(Changed::StaleRevision(held.timer));
        }
        sqlx::query(CANCEL)
            .bind(id.as_uuid())
            .bind(shard_column(id, shards))
            .bind(now.as_micros())
            .execute(&mut *transaction)
            .await
            .or_not_done()?;
        transaction.commit().await.or_unknown()?;
        Ok(Changed::Done(Timer { status: Status::Canceled, updated_at: now, pause: None, ..held.timer }))
    }
}

pub(crate) const REOPEN: &str = sql!("sql/reopen.sql");

pub struct Reopen {
    pub id: TimerId,
    pub expected: Option<u32>,
    pub now: Timestamp,
    pub shards: u16,
}

impl Call<Connector> for Reopen {
    type Answer = Changed;
    const WRITES: bool = true;
    const LEAVES_A_TRANSACTION: bool = true;

    /// Holds the outcome first: a purge passes it over, and a replacement waits.
    async fn run(&self, session: &mut PgConnection) -> Result<Changed, Failure> {
        let mut transaction = session.begin().await.or_not_done()?;
        let Some(held) = hold(&mut transaction, self.id, self.shards).await? else {
            return Ok(Changed::NotFound);
        };
        if held.timer.status.after(Event::Reopen).is_none() {
            return Ok(Changed::WrongStatus(held.timer));
        }
        if self.expected.is_some_and(|expected| held.timer.revision != expected) {
            return Ok(Changed::StaleRevision(held.timer));
        }
        let timer = renewed(&held, held.timer.definition.clone(), held.timer.execute_at, self.now);
        sqlx::query(REOPEN)
            .bind(self.id.as_uuid())
            .bind(shard_column(self.id, self.shards))
            .bind(self.now.as_micros())
            .bind(destination_column(timer.definition.destination()))
            .bind(i64::from(timer.revision))
            .execute(&mut *transaction)
            .await
            .or_not_done()?;
        transaction.commit().await.or_unknown()?;
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
    const LEAVES_A_TRANSACTION: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Changed, Failure> {
        let mut transaction = session.begin().await.or_not_done()?;
        let Some(held) = hold(&mut transaction, self.changed.id(), self.shards).await? else {
            return Ok(Changed::NotFound);
        };
        if held.timer.status.after(Event::Revive).is_none() {
            return Ok(Changed::WrongStatus(held.timer));
        }
        if held.timer.revision != self.changed.revision {
            return Ok(Changed::StaleRevision(held.timer));
        }
        let renewed = renewed(&held, self.changed.definition.clone(), self.changed.execute_at, self.now);
        let timer = Timer { created_at: self.now, ..renewed };
        let fingerprint = timer.definition.fingerprint();
        replace(&mut transaction, &held, &timer, fingerprint, NextAttempt::AtTheNewTime, self.shards).await?;
        transaction.commit().await.or_unknown()?;
        Ok(Changed::Done(timer))
    }
}
