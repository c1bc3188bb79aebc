//! Removing what finished long ago.

use domain::Timestamp;
use rusqlite::{Connection, params};

use crate::{
    attempts::DELETE_ATTEMPTS,
    create::{DELETE_DEFINITION, DELETE_OUTCOME},
    failure::Failure,
    rows::Id,
    writer::Write,
};

pub const FINISHED_BEFORE: &str = "SELECT id FROM outcome WHERE finished_at < ?1 ORDER BY finished_at LIMIT ?2";

pub struct Purge {
    pub before: Timestamp,
    pub limit: usize,
}

impl Write for Purge {
    type Answer = usize;
    const NAME: &'static str = "purge";

    fn rows(&self) -> usize {
        self.limit
    }

    fn run(&self, connection: &Connection) -> Result<usize, Failure> {
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let ids: Vec<Id> = connection
            .prepare_cached(FINISHED_BEFORE)?
            .query_map(params![self.before.as_micros(), limit], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let mut outcome = connection.prepare_cached(DELETE_OUTCOME)?;
        let mut definition = connection.prepare_cached(DELETE_DEFINITION)?;
        let mut attempts = connection.prepare_cached(DELETE_ATTEMPTS)?;
        for id in &ids {
            attempts.execute([id])?;
            outcome.execute([id])?;
            definition.execute([id])?;
        }
        Ok(ids.len())
    }
}
