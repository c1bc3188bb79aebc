//! Recording what became of claimed timers.

use domain::{Next, Status, Timestamp};
use rusqlite::{CachedStatement, Connection, params};
use store::{DueEntry, Settlement, Tenure};

use crate::{attempts::Memory, failure::Failure, migrate::SHARDS, ownership::is_current, rows::Id, writer::Write};

pub const FINISH: &str = "INSERT INTO outcome (id, status, attempt, last_error, executed_at, finished_at) \
     SELECT id, ?5, attempt, ?6, ?7, ?7 FROM due WHERE shard = 0 AND minute = ?1 AND id = ?2 AND at = ?3 AND claim = ?4 AND (?8 OR epoch = ?9)";
pub const DELETE_DUE: &str = "DELETE FROM due WHERE shard = 0 AND minute = ?1 AND id = ?2";
pub const RELEASE: &str = "UPDATE due SET minute = ?5, at = ?6, attempt = ?7, last_error = ?8, claim = NULL, epoch = NULL, lease_until = NULL \
     WHERE shard = 0 AND minute = ?1 AND id = ?2 AND at = ?3 AND claim = ?4 AND (?9 OR epoch = ?10)";
pub const FOLLOW_DUE: &str = "UPDATE definition SET due_minute = ?2 WHERE id = ?1";
pub const FOLLOW_AGAIN: &str =
    "UPDATE definition SET due_minute = ?2, execute_minute = ?2, execute_at = ?3, revision = revision + 1 WHERE id = ?1";

pub struct Settle {
    pub batch: Vec<Settlement>,
}

impl Write for Settle {
    type Answer = Vec<bool>;
    const NAME: &'static str = "settle";

    fn rows(&self) -> usize {
        self.batch.len()
    }

    fn run(&self, connection: &Connection) -> Result<Vec<bool>, Failure> {
        let mut statements = Statements::prepare(connection)?;
        let mut memory = None;
        let mut known: Vec<(Tenure, bool)> = Vec::new();
        let mut counted = Vec::with_capacity(self.batch.len());
        for settlement in &self.batch {
            let tenure = settlement.tenure;
            let current = match known.iter().find(|(seen, _)| *seen == tenure) {
                Some((_, current)) => *current,
                None => {
                    let current = is_current(connection, tenure)?;
                    known.push((tenure, current));
                    current
                }
            };
            let is_its_shard = tenure.shard == settlement.entry.id.shard(SHARDS);
            let is_settled = is_its_shard && statements.settle(settlement, current)?;
            if let Some(attempt) = settlement.attempt.as_ref().filter(|_| is_settled) {
                let memory = match &mut memory {
                    Some(memory) => memory,
                    none => none.insert(Memory::prepare(connection)?),
                };
                memory.keep(Id::of(settlement.entry.id), attempt)?;
            }
            counted.push(is_settled);
        }
        Ok(counted)
    }
}

struct Statements<'connection> {
    finish: CachedStatement<'connection>,
    delete_due: CachedStatement<'connection>,
    release: CachedStatement<'connection>,
    follow_due: CachedStatement<'connection>,
    follow_again: CachedStatement<'connection>,
}

impl<'connection> Statements<'connection> {
    fn prepare(connection: &'connection Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            finish: connection.prepare_cached(FINISH)?,
            delete_due: connection.prepare_cached(DELETE_DUE)?,
            release: connection.prepare_cached(RELEASE)?,
            follow_due: connection.prepare_cached(FOLLOW_DUE)?,
            follow_again: connection.prepare_cached(FOLLOW_AGAIN)?,
        })
    }

    /// Whether the claim still stood. It must have been made under the tenure of the settlement, unless that is the current one.
    fn settle(&mut self, settlement: &Settlement, is_current: bool) -> rusqlite::Result<bool> {
        let id = Id::of(settlement.entry.id);
        match &settlement.next {
            Next::Completed { at } => self.finish(settlement, is_current, Status::Completed, None, *at),
            Next::Failed { at, error } => self.finish(settlement, is_current, Status::Failed, Some(error), *at),
            Next::Pending { at, attempt, error } => {
                let released = self.release(settlement, is_current, *at, *attempt, error.as_deref())?;
                if released && at.minute() != settlement.entry.at.minute() {
                    self.follow_due.execute(params![id, at.minute()])?;
                }
                Ok(released)
            }
            Next::Again { at } => {
                let released = self.release(settlement, is_current, *at, 0, None)?;
                if released {
                    self.follow_again.execute(params![id, at.minute(), at.as_micros()])?;
                }
                Ok(released)
            }
        }
    }

    fn finish(
        &mut self,
        settlement: &Settlement,
        is_current: bool,
        status: Status,
        error: Option<&str>,
        at: Timestamp,
    ) -> rusqlite::Result<bool> {
        let DueEntry { at: was_due_at, id, .. } = settlement.entry;
        let (minute, id) = (was_due_at.minute(), Id::of(id));
        let token = settlement.token.0;
        let finished = self.finish.execute(params![
            minute,
            id,
            was_due_at.as_micros(),
            token,
            status.as_str(),
            error,
            at.as_micros(),
            is_current,
            settlement.tenure.epoch.0
        ])?;
        if finished == 1 {
            self.delete_due.execute(params![minute, id])?;
        }
        Ok(finished == 1)
    }

    fn release(
        &mut self,
        settlement: &Settlement,
        is_current: bool,
        to: Timestamp,
        attempt: u32,
        error: Option<&str>,
    ) -> rusqlite::Result<bool> {
        let DueEntry { at, id, .. } = settlement.entry;
        let released = self.release.execute(params![
            at.minute(),
            Id::of(id),
            at.as_micros(),
            settlement.token.0,
            to.minute(),
            to.as_micros(),
            attempt,
            error,
            is_current,
            settlement.tenure.epoch.0
        ])?;
        Ok(released == 1)
    }
}
