//! Removing what finished long ago.

use domain::{Status, Timestamp};
use rusqlite::{Connection, params};
use store_sql::{column, sql};

use crate::{
    attempts::DELETE_ATTEMPTS,
    failure::Failure,
    rows::Id,
    statements::{DELETE_DEFINITION, DELETE_OUTCOME},
    tally::Tally,
    writer::Write,
};

pub const FINISHED_BEFORE: &str = sql!("sql/finished_before.sql");

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

    fn run(&self, connection: &Connection, tally: &mut Tally) -> Result<usize, Failure> {
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let row = |row: &rusqlite::Row<'_>| {
            Ok((
                row.get(column!(FINISHED_BEFORE, "minute"))?,
                row.get(column!(FINISHED_BEFORE, "id"))?,
                row.get(column!(FINISHED_BEFORE, "namespace"))?,
                row.get(column!(FINISHED_BEFORE, "status"))?,
            ))
        };
        let finished: Vec<(i64, Id, Option<String>, String)> = connection
            .prepare_cached(FINISHED_BEFORE)?
            .query_map(params![self.before.as_micros(), limit], row)?
            .collect::<rusqlite::Result<_>>()?;
        let mut outcome = connection.prepare_cached(DELETE_OUTCOME)?;
        let mut definition = connection.prepare_cached(DELETE_DEFINITION)?;
        let mut attempts = connection.prepare_cached(DELETE_ATTEMPTS)?;
        for (minute, id, namespace, status) in &finished {
            attempts.execute([id])?;
            outcome.execute(params![minute, id])?;
            definition.execute([id])?;
            if let Some(status) = Status::parse(status) {
                tally.remove(namespace.as_deref(), status);
            }
        }
        Ok(finished.len())
    }
}
