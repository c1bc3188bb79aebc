//! Recording what became of claimed timers.

use domain::{Next, Status, Timestamp};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use store::{DueEntry, Settlement, ShardLease};
use store_sql::{column, sql};

use crate::{
    attempts::Memory, failure::Failure, journal::Journal, migrate::SHARDS, ownership::is_current, rows::Id, tally::Tally,
    writer::Write,
};

pub const CLAIMED: &str = sql!("sql/claimed.sql");
pub const INSERT_OUTCOME: &str = sql!("sql/insert_outcome.sql");
pub const DELETE_DUE: &str = sql!("sql/delete_due.sql");
pub const RELEASE: &str = sql!("sql/release.sql");
pub const FOLLOW_DUE: &str = sql!("sql/follow_due.sql");
pub const FOLLOW_AGAIN: &str = sql!("sql/follow_again.sql");

pub struct Settle {
    pub batch: Vec<Settlement>,
}

impl Write for Settle {
    type Answer = Vec<bool>;
    const NAME: &'static str = "settle";

    fn rows(&self) -> usize {
        self.batch.len()
    }

    fn bytes(&self) -> usize {
        self.batch.iter().map(Settlement::answer_bytes).sum()
    }

    fn run(&self, connection: &Connection, tally: &mut Tally) -> Result<Vec<bool>, Failure> {
        let mut statements = Statements::prepare(connection)?;
        let mut memory = None;
        let mut known: Vec<(ShardLease, bool)> = Vec::new();
        let mut counted = Vec::with_capacity(self.batch.len());
        for settlement in &self.batch {
            let shard_lease = settlement.shard_lease;
            let current = match known.iter().find(|(seen, _)| *seen == shard_lease) {
                Some((_, current)) => *current,
                None => {
                    let current = is_current(connection, shard_lease)?;
                    known.push((shard_lease, current));
                    current
                }
            };
            let is_its_shard = shard_lease.shard == settlement.entry.id.shard(SHARDS);
            let is_settled = is_its_shard && statements.settle(settlement, current, tally)?;
            if let Some(attempt) = settlement.attempt.as_ref().filter(|_| is_settled) {
                let memory = match &mut memory {
                    Some(memory) => memory,
                    none => none.insert(Memory::prepare(connection)?),
                };
                let id = Id::of(settlement.entry.id);
                tally.journal.attempted(id, memory.keep(id, attempt)?);
            }
            counted.push(is_settled);
        }
        Ok(counted)
    }
}

struct Statements<'connection> {
    claimed: CachedStatement<'connection>,
    finish: Finish<'connection>,
    release: CachedStatement<'connection>,
    follow_due: CachedStatement<'connection>,
    follow_again: CachedStatement<'connection>,
}

impl<'connection> Statements<'connection> {
    fn prepare(connection: &'connection Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            claimed: connection.prepare_cached(CLAIMED)?,
            finish: Finish::prepare(connection)?,
            release: connection.prepare_cached(RELEASE)?,
            follow_due: connection.prepare_cached(FOLLOW_DUE)?,
            follow_again: connection.prepare_cached(FOLLOW_AGAIN)?,
        })
    }

    /// Whether the claim still stood.
    fn settle(&mut self, settlement: &Settlement, is_current: bool, tally: &mut Tally) -> rusqlite::Result<bool> {
        let DueEntry { at: was_due_at, id, .. } = settlement.entry;
        let (minute, id) = (was_due_at.minute(), Id::of(id));
        let (token, epoch) = (settlement.token.0, settlement.shard_lease.epoch.0);
        let key = params![minute, id, was_due_at.as_micros(), token, is_current, epoch];
        let row = |row: &rusqlite::Row<'_>| {
            Ok((
                row.get(column!(CLAIMED, "attempt"))?,
                row.get(column!(CLAIMED, "execute_at"))?,
                row.get::<_, Option<String>>(column!(CLAIMED, "namespace"))?,
                row.get(column!(CLAIMED, "created_at"))?,
            ))
        };
        let found = self.claimed.query_row(key, row).optional()?;
        let Some((attempt, execute_at, namespace, created_at)) = found else { return Ok(false) };
        let execute_at = Timestamp::from_micros(execute_at);
        let finished = |status, attempt, last_error, at| Finished {
            due_minute: minute,
            id,
            execute_at,
            status,
            attempt,
            namespace: namespace.as_deref(),
            last_error,
            executed_at: Some(at),
            finished_at: at,
            created_at,
        };
        let status = match &settlement.next {
            Next::Completed { at } => {
                self.finish.run(&finished(Status::Completed, attempt, None, *at), &mut tally.journal)?;
                Status::Completed
            }
            Next::Failed { at, error } => {
                self.finish.run(&finished(Status::Failed, attempt, Some(error), *at), &mut tally.journal)?;
                Status::Failed
            }
            Next::GivenUp { at, error } => {
                self.finish.run(&finished(Status::Failed, (attempt - 1).max(0), Some(error), *at), &mut tally.journal)?;
                Status::Failed
            }
            Next::Expired { at, error, is_called } => {
                let started = (attempt - i64::from(!is_called)).max(0);
                self.finish.run(&finished(Status::Expired, started, Some(error), *at), &mut tally.journal)?;
                Status::Expired
            }
            Next::Pending { at, attempt, error } => {
                let moved = (*at != execute_at).then_some(execute_at.as_micros());
                self.release.execute(params![minute, id, at.minute(), at.as_micros(), moved, attempt, error])?;
                if at.minute() != minute {
                    self.follow_due.execute(params![id, at.minute()])?;
                }
                Status::Pending
            }
            Next::Again { at } => {
                self.release.execute(params![minute, id, at.minute(), at.as_micros(), None::<i64>, 0, None::<&str>])?;
                let revision = |row: &rusqlite::Row<'_>| row.get("revision");
                let again = params![id, at.minute(), at.as_micros()];
                if let Some(revision) = self.follow_again.query_row(again, revision).optional()? {
                    tally.journal.changed(id, revision);
                }
                Status::Pending
            }
        };
        tally.turn(namespace.as_deref(), Status::Executing, status);
        Ok(true)
    }
}

/// A timer that leaves `due` for good.
pub struct Finished<'a> {
    pub due_minute: i64,
    pub id: Id,
    pub execute_at: Timestamp,
    pub status: Status,
    pub attempt: i64,
    pub namespace: Option<&'a str>,
    pub last_error: Option<&'a str>,
    pub executed_at: Option<Timestamp>,
    pub finished_at: Timestamp,
    /// As the row in `due` has it.
    pub created_at: Option<i64>,
}

/// The statements that take a timer from `due` to `outcome`.
pub struct Finish<'connection> {
    insert_outcome: CachedStatement<'connection>,
    delete_due: CachedStatement<'connection>,
}

impl<'connection> Finish<'connection> {
    pub fn prepare(connection: &'connection Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            insert_outcome: connection.prepare_cached(INSERT_OUTCOME)?,
            delete_due: connection.prepare_cached(DELETE_DUE)?,
        })
    }

    pub fn run(&mut self, finished: &Finished<'_>, journal: &mut Journal) -> rusqlite::Result<()> {
        self.insert_outcome.execute(params![
            finished.execute_at.minute(),
            finished.id,
            finished.execute_at.as_micros(),
            finished.status.as_str(),
            finished.attempt,
            finished.namespace,
            finished.last_error,
            finished.executed_at.map(Timestamp::as_micros),
            finished.finished_at.as_micros(),
            finished.created_at,
        ])?;
        self.delete_due.execute(params![finished.due_minute, finished.id])?;
        journal.finished(finished.id, finished.finished_at, finished.status);
        Ok(())
    }
}
