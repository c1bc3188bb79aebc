//! Changing a timer that is there: locked, looked at, decided upon, written.
//!
//! Every change of a timer locks its row in `due` first, or its row in `outcome` or `paused` when it stands there; only then the definition.
//! So a definition cannot change under a session that holds one of those, and no two sessions wait for each other in a circle.

use std::sync::Arc;

use domain::{Definition, Fingerprint, NewTimer, Pause, Resolution, Status, Timer, TimerId, Times, Timestamp, resolve};
use sqlx::{MySqlConnection, Row};
use store::Created;
use store_sql::{Call, as_created, sql};

use crate::{
    create::INSERT_DUE,
    failure::{Failure, Step},
    journal::Entries,
    rows::{self, DefinitionColumns, Standing, shard_column},
    sessions::Sessions,
    transaction::Transaction,
};

/// How often a timer may move while we try to get hold of it.
const CHASES_MAX: usize = 8;

pub(crate) const LOCK_DUE: &str = sql!("sql/lock_due.sql");
pub(crate) const LOCK_OUTCOME: &str = sql!("sql/lock_outcome.sql");
pub(crate) const LOCK_PAUSED: &str = sql!("sql/lock_paused.sql");
pub(crate) const READ_DEFINITION: &str = sql!("sql/read_definition.sql");
pub(crate) const UPDATE_DEFINITION: &str = sql!("sql/update_definition.sql");
pub(crate) const MOVE_DUE: &str = sql!("sql/move_due.sql");
pub(crate) const READDRESS_DUE: &str = sql!("sql/readdress_due.sql");
pub(crate) const MOVE_PAUSED: &str = sql!("sql/move_paused.sql");
pub(crate) const READDRESS_PAUSED: &str = sql!("sql/readdress_paused.sql");
pub(crate) const DELETE_OUTCOME: &str = sql!("sql/delete_outcome.sql");

/// When a timer that was changed is tried next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextAttempt {
    /// Attempts start over.
    AtTheNewTime,
    /// The due time is the old one: whatever was planned stays, unless the timer expires before that.
    AsItWas,
}

/// A timer that no other session can change until the transaction ends.
#[derive(Debug)]
pub struct Held {
    pub timer: Timer,
    pub fingerprint: Fingerprint,
    /// When its next attempt is due, in microseconds; `None` once it has ended.
    pub at: Option<i64>,
}

/// Locks the timer, inside a transaction. `None` when there is none.
pub async fn hold(session: &mut MySqlConnection, id: TimerId, shards: u16) -> Result<Option<Held>, Failure> {
    for _ in 0..CHASES_MAX {
        let locked = match lock_due(session, id, shards).await? {
            Some((at, standing)) => Some((Some(at), standing)),
            None => match lock_outcome(session, id).await? {
                Some(standing) => Some((None, standing)),
                None => lock_paused(session, id).await?.map(|(at, standing)| (Some(at), standing)),
            },
        };
        let definition = sqlx::query(READ_DEFINITION).bind(id.as_uuid()).fetch_optional(&mut *session).await.or_not_done()?;
        match (definition, locked) {
            (None, _) => return Ok(None),
            // It moved from one table to another while we looked at each.
            (Some(_), None) => {}
            (Some(row), Some((at, standing))) => {
                let fingerprint = rows::fingerprint(&row)?;
                return Ok(Some(Held { timer: rows::timer(id, &row, standing)?, fingerprint, at }));
            }
        }
    }
    Err(Failure::contention("other sessions keep moving this timer"))
}

async fn lock_due(session: &mut MySqlConnection, id: TimerId, shards: u16) -> Result<Option<(i64, Standing)>, Failure> {
    let query = sqlx::query(LOCK_DUE).bind(shard_column(id, shards)).bind(id.as_uuid()).bind(id.as_uuid());
    let Some(row) = query.fetch_optional(session).await.or_not_done()? else { return Ok(None) };
    let claimed: bool = row.try_get("claimed").or_not_done()?;
    let standing = Standing {
        status: if claimed { Status::Executing } else { Status::Pending },
        attempt: row.try_get("attempt").or_not_done()?,
        last_error: row.try_get("last_error").or_not_done()?,
        executed_at: None,
        finished_at: None,
        pause: None,
    };
    Ok(Some((row.try_get("at").or_not_done()?, standing)))
}

async fn lock_outcome(session: &mut MySqlConnection, id: TimerId) -> Result<Option<Standing>, Failure> {
    let query = sqlx::query(LOCK_OUTCOME).bind(id.as_uuid());
    let Some(row) = query.fetch_optional(session).await.or_not_done()? else { return Ok(None) };
    let status: String = row.try_get("status").or_not_done()?;
    Ok(Some(Standing {
        status: Status::parse(&status).ok_or_else(|| store::Unreadable("its status is not known".to_owned()))?,
        attempt: row.try_get("attempt").or_not_done()?,
        last_error: row.try_get("last_error").or_not_done()?,
        executed_at: row.try_get("executed_at").or_not_done()?,
        finished_at: row.try_get("finished_at").or_not_done()?,
        pause: None,
    }))
}

async fn lock_paused(session: &mut MySqlConnection, id: TimerId) -> Result<Option<(i64, Standing)>, Failure> {
    let query = sqlx::query(LOCK_PAUSED).bind(id.as_uuid());
    let Some(row) = query.fetch_optional(session).await.or_not_done()? else { return Ok(None) };
    let at = Timestamp::from_micros(row.try_get("paused_at").or_not_done()?);
    let standing = Standing {
        status: Status::Paused,
        attempt: row.try_get("attempt").or_not_done()?,
        last_error: row.try_get("last_error").or_not_done()?,
        executed_at: None,
        finished_at: None,
        pause: Some(Pause { at, note: row.try_get("note").or_not_done()? }),
    };
    Ok(Some((row.try_get("at").or_not_done()?, standing)))
}

/// Replaces the timer that is held with `timer`: one that had ended is pending then, a paused one stays paused.
pub async fn replace(
    transaction: &mut Transaction<'_>,
    held: &Held,
    timer: &Timer,
    fingerprint: Fingerprint,
    next: NextAttempt,
    shards: u16,
) -> Result<(), Failure> {
    let columns = DefinitionColumns::of(&timer.definition, timer.execute_at, fingerprint, shards);
    let due_at = place(transaction, held, timer, &columns, next).await?;
    sqlx::query(UPDATE_DEFINITION)
        .bind(&columns.namespace)
        .bind(&columns.key)
        .bind(columns.asked)
        .bind(columns.execute_at)
        .bind(due_at)
        .bind(columns.callback_type)
        .bind(&columns.callback_config)
        .bind(&columns.metadata)
        .bind(&columns.correlation_id)
        .bind(&columns.retry_policy)
        .bind(columns.delivery)
        .bind(columns.fingerprint.as_slice())
        .bind(timer.created_at.as_micros())
        .bind(timer.updated_at.as_micros())
        .bind(i64::from(timer.revision))
        .bind(&columns.options)
        .bind(&columns.group)
        .bind(columns.id)
        .execute(transaction.session())
        .await
        .or_not_done()?;
    let (id, former) = (timer.id(), &held.timer);
    let mut entries = Entries::default();
    if former.status.is_finished() {
        entries.ended(transaction, id, former.updated_at, former.status);
    }
    if timer.created_at != former.created_at {
        entries.began(transaction, id, former.created_at);
        entries.created(transaction, id, timer.created_at);
    }
    entries.changed(id, timer.revision);
    entries.write(transaction).await
}

/// Places the next attempt of a timer that is held. Answers with where its row in `due` is, if not at its due time.
async fn place(
    transaction: &mut Transaction<'_>,
    held: &Held,
    timer: &Timer,
    columns: &DefinitionColumns,
    next: NextAttempt,
) -> Result<Option<i64>, Failure> {
    let is_paused = held.timer.status == Status::Paused;
    let (id, shard, destination) = (columns.id, columns.shard, columns.destination);
    let mut due_at = None;
    let query = match (held.at, next) {
        (Some(_), NextAttempt::AsItWas) if is_paused => sqlx::query(READDRESS_PAUSED).bind(destination).bind(id),
        (Some(_), NextAttempt::AtTheNewTime) if is_paused => {
            sqlx::query(MOVE_PAUSED).bind(columns.execute_at).bind(destination).bind(id)
        }
        (Some(at), NextAttempt::AsItWas) => {
            let next = timer.next_look(Timestamp::from_micros(at)).as_micros();
            due_at = Some(next);
            sqlx::query(READDRESS_DUE).bind(next).bind(destination).bind(shard).bind(at).bind(id)
        }
        (Some(at), NextAttempt::AtTheNewTime) => {
            sqlx::query(MOVE_DUE).bind(columns.execute_at).bind(destination).bind(shard).bind(at).bind(id)
        }
        (None, _) => {
            sqlx::query(DELETE_OUTCOME).bind(id).execute(transaction.session()).await.or_not_done()?;
            sqlx::query(INSERT_DUE).bind(shard).bind(columns.execute_at).bind(id).bind(destination)
        }
    };
    query.execute(transaction.session()).await.or_not_done()?;
    Ok(due_at)
}

/// A timer that takes the new content or time, and starts its attempts over. A paused one stays paused.
pub fn renewed(held: &Held, definition: Definition, execute_at: Timestamp, now: Timestamp) -> Timer {
    Timer {
        definition,
        execute_at,
        status: if held.timer.status == Status::Paused { Status::Paused } else { Status::Pending },
        attempt: 0,
        last_error: None,
        executed_at: None,
        created_at: held.timer.created_at,
        updated_at: now,
        revision: held.timer.revision.saturating_add(1),
        pause: held.timer.pause.clone(),
    }
}

/// Decides what becomes of one timer whose id was taken.
pub struct Resolve {
    new: Arc<NewTimer>,
    fingerprint: Fingerprint,
    shards: u16,
}

impl Resolve {
    pub fn new(new: Arc<NewTimer>, shards: u16) -> Self {
        Self { fingerprint: new.definition.fingerprint(), new, shards }
    }
}

impl Call<Sessions> for Resolve {
    /// `None` when nothing is in the way any more.
    type Answer = Option<Created>;
    const WRITES: bool = true;

    async fn run(&self, session: &mut MySqlConnection) -> Result<Option<Created>, Failure> {
        let Self { new, fingerprint, shards } = self;
        let mut transaction = Transaction::recording(session).await?;
        let Some(held) = hold(transaction.session(), new.definition.id, *shards).await? else {
            return transaction.rollback().await.map(|()| None);
        };
        let existing = held.timer.definition.content_with(held.fingerprint);
        let wanted = new.definition.content_with(*fingerprint);
        let times = Times::of(&held.timer, new.execute_at);
        let (timer, fingerprint) = match resolve(new.on_conflict, held.timer.status, existing, wanted, times) {
            Resolution::Existing => return transaction.rollback().await.map(|()| Some(Created::Existing(held.timer))),
            Resolution::Conflict => return transaction.rollback().await.map(|()| Some(Created::Conflict(held.timer))),
            Resolution::PastExpiry => return transaction.rollback().await.map(|()| Some(Created::PastExpiry(held.timer))),
            Resolution::Overwrite => (renewed(&held, new.definition.clone(), new.execute_at, new.created_at), *fingerprint),
            Resolution::Move(at) => {
                let definition = Definition { asked: new.definition.asked, ..held.timer.definition.clone() };
                (renewed(&held, definition, at, new.created_at), held.fingerprint)
            }
            Resolution::Revive => {
                // Above the one of its former life, so that no client takes the two for the same.
                (Timer { revision: held.timer.revision.saturating_add(1), ..as_created(new) }, *fingerprint)
            }
        };
        replace(&mut transaction, &held, &timer, fingerprint, NextAttempt::AtTheNewTime, *shards).await?;
        transaction.commit().await?;
        Ok(Some(Created::Replaced(timer)))
    }
}
