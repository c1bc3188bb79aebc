//! Changing a timer that is there: locked, looked at, decided upon, written.
//!
//! Every change of a timer locks its row in `due` first, or its row in `outcome` or `paused` when it stands there; only then the definition.
//! So a definition cannot change under a session that holds one of those, and no two sessions wait for each other in a circle.

use std::sync::Arc;

use domain::{Definition, Fingerprint, NewTimer, Pause, Resolution, Status, Timer, TimerId, Times, Timestamp, resolve};
use sqlx::{AssertSqlSafe, Row, mysql::MySqlRow};
use store::Created;
use store_sql::{Call, Standing, as_created, sql};

use crate::{
    connector::Connector,
    failure::{Failure, Step},
    journal::Entries,
    literal::{self, placed},
    rows::{self, DefinitionColumns, Fields, shard_column},
    session::Session,
    transaction::Transaction,
};

/// How often a timer may move while we try to get hold of it.
const CHASES_MAX: usize = 8;

pub(crate) const LOCK_DUE: &str = sql!("sql/lock_due.sql");
pub(crate) const LOCK_OUTCOME: &str = sql!("sql/lock_outcome.sql");
pub(crate) const LOCK_PAUSED: &str = sql!("sql/lock_paused.sql");
pub(crate) const READ_DEFINITION: &str = sql!("sql/read_definition.sql");
pub(crate) const UPDATE_DEFINITION: &str = sql!("sql/update_definition.sql");
pub(crate) const INSERT_DUE: &str = sql!("sql/insert_due.sql");
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
pub async fn hold(session: &mut Session, id: TimerId, shards: u16) -> Result<Option<Held>, Failure> {
    let text = hold_text(id, shards);
    for _ in 0..CHASES_MAX {
        let rows = sqlx::raw_sql(AssertSqlSafe(text.clone())).fetch_all(&mut *session).await.or_not_done()?;
        let (mut locked, mut definition) = (None, None);
        for row in rows {
            if has(&row, "callback_config") {
                definition = Some(row);
            } else {
                locked = locked.or(Some(locked_standing(&row)?));
            }
        }
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
    Err(Failure::contention("other sessions keep moving this timer"))
}

/// All that is needed to hold a timer, in one round trip: its row is in one of three tables, and the definition is read after it is locked.
fn hold_text(id: TimerId, shards: u16) -> String {
    let (shard, id) = (shard_column(id, shards).to_string(), format!("X'{}'", id.as_uuid().simple()));
    let text = [LOCK_DUE, LOCK_OUTCOME, LOCK_PAUSED, READ_DEFINITION].join("; ");
    text.replacen('?', &shard, 1).replace('?', &id)
}

fn has(row: &MySqlRow, column: &str) -> bool {
    row.try_column(column).is_ok()
}

/// When the next attempt is due, and how the timer stands, by the row that was locked. Each table has columns of its own.
fn locked_standing(row: &MySqlRow) -> Result<(Option<i64>, Standing), Failure> {
    let mut standing = Standing {
        status: Status::Pending,
        attempt: row.try_get("attempt").or_not_done()?,
        last_error: row.try_get("last_error").or_not_done()?,
        executed_at: None,
        finished_at: None,
        pause: None,
    };
    if has(row, "finished_at") {
        let status: String = row.try_get("status").or_not_done()?;
        standing.status = Status::parse(&status).ok_or_else(|| store::Unreadable("its status is not known".to_owned()))?;
        standing.executed_at = row.try_get("executed_at").or_not_done()?;
        standing.finished_at = row.try_get("finished_at").or_not_done()?;
        return Ok((None, standing));
    }
    if has(row, "paused_at") {
        let at = Timestamp::from_micros(row.try_get("paused_at").or_not_done()?);
        standing.status = Status::Paused;
        standing.pause = Some(Pause { at, note: row.try_get("note").or_not_done()? });
    } else if row.try_get("claimed").or_not_done()? {
        standing.status = Status::Executing;
    }
    Ok((Some(row.try_get("at").or_not_done()?), standing))
}

/// Has the timer that is held replaced with `timer` by the commit: one that had ended is pending then, a paused one stays paused.
pub fn replace(
    transaction: &mut Transaction<'_>,
    held: &Held,
    timer: &Timer,
    fingerprint: Fingerprint,
    next: NextAttempt,
    shards: u16,
) -> Result<(), Failure> {
    let columns = DefinitionColumns::of(&timer.definition, timer.execute_at, fingerprint, shards);
    let due_at = place(transaction, held, timer, &columns, next);
    transaction.then(placed(
        UPDATE_DEFINITION,
        [
            literal::text(&columns.namespace),
            literal::optional_text(columns.key.as_deref()),
            literal::number(columns.asked),
            literal::number(columns.execute_at),
            literal::optional_number(due_at),
            literal::text(columns.callback_type),
            literal::text(&columns.callback_config),
            literal::optional_text(columns.metadata.as_deref()),
            literal::optional_text(columns.correlation_id.as_deref()),
            literal::optional_text(columns.retry_policy.as_deref()),
            literal::text(columns.delivery),
            literal::bytes(&columns.fingerprint),
            literal::number(timer.created_at.as_micros()),
            literal::number(timer.updated_at.as_micros()),
            literal::number(i64::from(timer.revision)),
            literal::optional_text(columns.options.as_deref()),
            literal::optional_text(columns.group.as_deref()),
            literal::id(columns.id),
        ],
    ));
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
    entries.write(transaction)
}

/// Places the next attempt of a timer that is held. Answers with where its row in `due` is, if not at its due time.
fn place(
    transaction: &mut Transaction<'_>,
    held: &Held,
    timer: &Timer,
    columns: &DefinitionColumns,
    next: NextAttempt,
) -> Option<i64> {
    let is_paused = held.timer.status == Status::Paused;
    let number = |number: i64| literal::number(number);
    let (id, destination) = (literal::id(columns.id), number(columns.destination));
    let (shard, execute_at) = (number(i64::from(columns.shard)), number(columns.execute_at));
    let mut due_at = None;
    let statement = match (held.at, next) {
        (Some(_), NextAttempt::AsItWas) if is_paused => placed(READDRESS_PAUSED, [destination, id]),
        (Some(_), NextAttempt::AtTheNewTime) if is_paused => placed(MOVE_PAUSED, [execute_at, destination, id]),
        (Some(at), NextAttempt::AsItWas) => {
            let next = timer.next_look(Timestamp::from_micros(at)).as_micros();
            due_at = Some(next);
            placed(READDRESS_DUE, [number(next), destination, shard, number(at), id])
        }
        (Some(at), NextAttempt::AtTheNewTime) => placed(MOVE_DUE, [execute_at, destination, shard, number(at), id]),
        (None, _) => {
            transaction.then(placed(DELETE_OUTCOME, [id.clone()]));
            placed(INSERT_DUE, [shard, execute_at, id, destination])
        }
    };
    transaction.then(statement);
    due_at
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

    async fn run(&self, session: &mut Session) -> Result<Option<Created>, Failure> {
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
                let definition = Definition { asked: new.definition.asked.clone(), ..held.timer.definition.clone() };
                (renewed(&held, definition, at, new.created_at), held.fingerprint)
            }
            Resolution::Revive => {
                // Above the one of its former life, so that no client takes the two for the same.
                (Timer { revision: held.timer.revision.saturating_add(1), ..as_created(new) }, *fingerprint)
            }
        };
        replace(&mut transaction, &held, &timer, fingerprint, NextAttempt::AtTheNewTime, *shards)?;
        transaction.commit().await?;
        Ok(Some(Created::Replaced(timer)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_is_held_in_one_round_trip() {
        let id = TimerId::parse("id", "0190163d-8694-739b-aea5-966c26f8ad91").unwrap();
        let text = hold_text(id, 64);
        assert!(!text.contains('?'), "{text}");
        assert_eq!(text.matches("X'0190163d8694739baea5966c26f8ad91'").count(), 5, "{text}");
        assert!(text.contains("shard = 17 AND id = X'"), "{text}");
    }
}
