//! Changing a timer that is there: locked, looked at, decided upon, written.
//!
//! Every change of a timer locks its row in `due` first, or its row in `outcome` or `paused` when it stands there; only then the definition.
//! So a definition cannot change under a session that holds one of those, and no two sessions wait for each other in a circle.

use std::sync::Arc;

use domain::{Definition, Fingerprint, NewTimer, Pause, Resolution, Status, Timer, TimerId, Times, Timestamp, resolve};
use sqlx::{Connection, PgConnection, Row};
use store::Created;
use store_sql::{Call, Standing, as_created, sql};

use crate::{
    connector::Connector,
    failure::{Failure, Step},
    rows::{self, DefinitionColumns, Fields, shard_column},
};

/// How often a timer may move while we try to get hold of it.
const CHASES_MAX: usize = 8;

pub(crate) const LOCK_DUE: &str = sql!("sql/lock_due.sql");
pub(crate) const LOCK_OUTCOME: &str = sql!("sql/lock_outcome.sql");
pub(crate) const LOCK_PAUSED: &str = sql!("sql/lock_paused.sql");
pub(crate) const READ_DEFINITION: &str = sql!("sql/read_definition.sql");
pub(crate) const REPLACE_PENDING: &str = sql!("sql/replace_pending.sql");
pub(crate) const REPLACE_FINISHED: &str = sql!("sql/replace_finished.sql");
pub(crate) const READDRESS_PENDING: &str = sql!("sql/readdress_pending.sql");
pub(crate) const REPLACE_PAUSED: &str = sql!("sql/replace_paused.sql");
pub(crate) const READDRESS_PAUSED: &str = sql!("sql/readdress_paused.sql");

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
pub async fn hold(session: &mut PgConnection, id: TimerId, shards: u16) -> Result<Option<Held>, Failure> {
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
                return Ok(Some(Held { timer: store_sql::timer(id, &Fields(&row), standing)?, fingerprint, at }));
            }
        }
    }
    Err(Failure::contention("other requests keep moving this timer"))
}

async fn lock_due(session: &mut PgConnection, id: TimerId, shards: u16) -> Result<Option<(i64, Standing)>, Failure> {
    let query = sqlx::query(LOCK_DUE).bind(id.as_uuid()).bind(shard_column(id, shards));
    let Some(row) = query.fetch_optional(session).await.or_not_done()? else { return Ok(None) };
    let claimed: bool = row.try_get("claimed").or_not_done()?;
    let standing = Standing {
        status: if claimed { Status::Executing } else { Status::Pending },
        attempt: i64::from(row.try_get::<i32, _>("attempt").or_not_done()?),
        last_error: row.try_get("last_error").or_not_done()?,
        executed_at: None,
        finished_at: None,
        pause: None,
    };
    Ok(Some((row.try_get("at").or_not_done()?, standing)))
}

async fn lock_outcome(session: &mut PgConnection, id: TimerId) -> Result<Option<Standing>, Failure> {
    let query = sqlx::query(LOCK_OUTCOME).bind(id.as_uuid());
    let Some(row) = query.fetch_optional(session).await.or_not_done()? else { return Ok(None) };
    let status: String = row.try_get("status").or_not_done()?;
    Ok(Some(Standing {
        status: Status::parse(&status).ok_or_else(|| store::Unreadable("its status is not known".to_owned()))?,
        attempt: i64::from(row.try_get::<i32, _>("attempt").or_not_done()?),
        last_error: row.try_get("last_error").or_not_done()?,
        executed_at: row.try_get("executed_at").or_not_done()?,
        finished_at: row.try_get("finished_at").or_not_done()?,
        pause: None,
    }))
}

async fn lock_paused(session: &mut PgConnection, id: TimerId) -> Result<Option<(i64, Standing)>, Failure> {
    let query = sqlx::query(LOCK_PAUSED).bind(id.as_uuid());
    let Some(row) = query.fetch_optional(session).await.or_not_done()? else { return Ok(None) };
    let at = Timestamp::from_micros(row.try_get("paused_at").or_not_done()?);
    let standing = Standing {
        status: Status::Paused,
        attempt: i64::from(row.try_get::<i32, _>("attempt").or_not_done()?),
        last_error: row.try_get("last_error").or_not_done()?,
        executed_at: None,
        finished_at: None,
        pause: Some(Pause { at, note: row.try_get("note").or_not_done()? }),
    };
    Ok(Some((row.try_get("at").or_not_done()?, standing)))
}

/// Replaces the timer that is held with `timer`: one that had ended is pending then, a paused one stays paused.
pub async fn replace(
    session: &mut PgConnection,
    held: &Held,
    timer: &Timer,
    fingerprint: Fingerprint,
    next: NextAttempt,
    shards: u16,
) -> Result<(), Failure> {
    let mut columns = DefinitionColumns::default();
    columns.push(&timer.definition, timer.execute_at, fingerprint, shards);
    let is_paused = held.timer.status == Status::Paused;
    let (statement, due_at) = match (held.at, next) {
        (Some(_), NextAttempt::AsItWas) if is_paused => (READDRESS_PAUSED, None),
        (Some(_), NextAttempt::AtTheNewTime) if is_paused => (REPLACE_PAUSED, None),
        (Some(at), NextAttempt::AsItWas) => (READDRESS_PENDING, Some(timer.next_look(Timestamp::from_micros(at)).as_micros())),
        (Some(_), NextAttempt::AtTheNewTime) => (REPLACE_PENDING, None),
        (None, _) => (REPLACE_FINISHED, None),
    };
    let mut query = sqlx::query(statement)
        .bind(columns.ids[0])
        .bind(&columns.namespaces[0])
        .bind(&columns.keys[0])
        .bind(columns.askeds[0])
        .bind(columns.execute_ats[0])
        .bind(due_at)
        .bind(columns.callback_types[0])
        .bind(&columns.callback_configs[0])
        .bind(&columns.metadatas[0])
        .bind(&columns.correlation_ids[0])
        .bind(&columns.retry_policies[0])
        .bind(columns.deliveries[0])
        .bind(&columns.fingerprints[0][..])
        .bind(timer.created_at.as_micros())
        .bind(timer.updated_at.as_micros())
        .bind(i64::from(timer.revision))
        .bind(columns.destinations[0])
        .bind(columns.shards[0])
        .bind(&columns.options[0])
        .bind(&columns.groups[0]);
    if let Some(at) = held.at.filter(|_| !is_paused) {
        query = query.bind(at);
    }
    query.execute(session).await.or_not_done()?;
    Ok(())
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

impl Call<Connector> for Resolve {
    /// `None` when nothing is in the way any more.
    type Answer = Option<Created>;
    const WRITES: bool = true;
    const LEAVES_A_TRANSACTION: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Option<Created>, Failure> {
        let Self { new, fingerprint, shards } = self;
        let mut transaction = session.begin().await.or_not_done()?;
        let Some(held) = hold(&mut transaction, new.definition.id, *shards).await? else { return Ok(None) };
        let existing = held.timer.definition.content_with(held.fingerprint);
        let wanted = new.definition.content_with(*fingerprint);
        let (timer, fingerprint) =
            match resolve(new.on_conflict, held.timer.status, existing, wanted, Times::of(&held.timer, new.execute_at)) {
                Resolution::Existing => return Ok(Some(Created::Existing(held.timer))),
                Resolution::Conflict => return Ok(Some(Created::Conflict(held.timer))),
                Resolution::PastExpiry => return Ok(Some(Created::PastExpiry(held.timer))),
                Resolution::Overwrite => (renewed(&held, new.definition.clone(), new.execute_at, new.created_at), *fingerprint),
                Resolution::Move(at) => {
                    let definition = Definition { asked: new.definition.asked.clone(), ..held.timer.definition.clone() };
                    (renewed(&held, definition, at, new.created_at), held.fingerprint)
                }
                Resolution::Revive => {
                    // Above the one of its former life, so that no client takes the two for the same.
                    (Timer { revision: held.timer.revision.saturating_add(1), ..as_created(new) }, *fingerprint)
                }
            };
        replace(&mut transaction, &held, &timer, fingerprint, NextAttempt::AtTheNewTime, *shards).await?;
        transaction.commit().await.or_unknown()?;
        Ok(Some(Created::Replaced(timer)))
    }
}
