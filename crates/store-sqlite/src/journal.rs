//! Recording what happened to timers and is in no row of theirs.

use domain::{Status, Timestamp};
use rusqlite::{Connection, params};
use store::{Happened, is_prompt, is_resumable};
use store_sql::sql;

use crate::rows::Id;

pub const INSERT_EVENT: &str = sql!("sql/insert_event.sql");

/// What the transaction that is under way has to record, and the moment at which it began.
#[derive(Debug, Default)]
pub struct Journal {
    now: Timestamp,
    entries: Vec<(Id, Happened)>,
}

impl Journal {
    /// A transaction begins; what an earlier one left is forgotten.
    pub fn begin(&mut self, now: Timestamp) {
        self.now = now;
        self.entries.clear();
    }

    /// Where `created_at` is prompt, it is the record itself.
    pub fn created(&mut self, id: Id, at: Timestamp) {
        if !is_prompt(at, self.now) {
            self.entries.push((id, Happened::Created { at }));
        }
    }

    /// To be called for every write that raises a revision.
    pub fn changed(&mut self, id: Id, revision: i64) {
        self.entries.push((id, Happened::Changed { revision: u32::try_from(revision).unwrap_or(u32::MAX) }));
    }

    pub fn attempted(&mut self, id: Id, seq: i64) {
        self.entries.push((id, Happened::Attempted { seq }));
    }

    /// Where `finished_at` is prompt, it is the record itself.
    pub fn finished(&mut self, id: Id, at: Timestamp, status: Status) {
        if !is_prompt(at, self.now) {
            self.entries.push((id, Happened::Finished { at, status }));
        }
    }

    /// To be called for every outcome that makes way for a new life.
    pub fn ended(&mut self, id: Id, at: Timestamp, status: Status) {
        self.entries.push((id, Happened::Ended { at, status }));
    }

    /// To be called for every creation that makes way for a new life.
    pub fn began(&mut self, id: Id, at: Timestamp) {
        if is_resumable(at, self.now) {
            self.entries.push((id, Happened::Began { at }));
        }
    }

    /// As the last part of a transaction.
    pub fn write(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let mut insert = connection.prepare_cached(INSERT_EVENT)?;
        for (id, what) in self.entries.drain(..) {
            let (moment, seq, status) = what.columns();
            insert.execute(params![self.now.as_micros(), what.kind(), id, seq, moment, status])?;
        }
        Ok(())
    }
}
