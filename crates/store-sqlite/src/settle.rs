//! Recording what became of claimed timers.

use domain::{Next, Status};
use rusqlite::{Connection, OptionalExtension, params};
use store::{Settlement, Tenure};

use crate::{change::INSERT_OUTCOME, failure::Failure, migrate::SHARDS, ownership::is_current, rows::Id, writer::Write};

pub const TAKE_CLAIMED: &str =
    "DELETE FROM due WHERE shard = 0 AND minute = ?1 AND id = ?2 AND at = ?3 AND claim = ?4 RETURNING attempt";
pub const RELEASE: &str =
    "UPDATE due SET minute = ?5, at = ?6, attempt = ?7, last_error = ?8, claim = NULL, epoch = NULL, lease_until = NULL \
     WHERE shard = 0 AND minute = ?1 AND id = ?2 AND at = ?3 AND claim = ?4";
pub const FOLLOW_DUE: &str = "UPDATE definition SET due_minute = ?2 WHERE id = ?1";
pub const FOLLOW_AGAIN: &str =
    "UPDATE definition SET due_minute = ?2, execute_minute = ?2, execute_at = ?3 WHERE id = ?1";

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
            counted.push(current && tenure.shard == settlement.entry.id.shard(SHARDS) && settle(connection, settlement)?);
        }
        Ok(counted)
    }
}

fn settle(connection: &Connection, settlement: &Settlement) -> Result<bool, Failure> {
    match &settlement.next {
        Next::Completed { at } => finish(connection, settlement, Status::Completed, None, at.as_micros()),
        Next::Failed { at, error } => finish(connection, settlement, Status::Failed, Some(error), at.as_micros()),
        Next::Pending { at, attempt, error } => {
            let id = Id::of(settlement.entry.id);
            let (from, to) = (settlement.entry.at.minute(), at.minute());
            let released = connection.prepare_cached(RELEASE)?.execute(params![
                from,
                id,
                settlement.entry.at.as_micros(),
                settlement.token.0,
                to,
                at.as_micros(),
                attempt,
                error
            ])?;
            if released == 1 && from != to {
                connection.prepare_cached(FOLLOW_DUE)?.execute(params![id, to])?;
            }
            Ok(released == 1)
        }
        Next::Again { at } => {
            let id = Id::of(settlement.entry.id);
            let released = connection.prepare_cached(RELEASE)?.execute(params![
                settlement.entry.at.minute(),
                id,
                settlement.entry.at.as_micros(),
                settlement.token.0,
                at.minute(),
                at.as_micros(),
                0,
                None::<String>
            ])?;
            if released == 1 {
                connection.prepare_cached(FOLLOW_AGAIN)?.execute(params![id, at.minute(), at.as_micros()])?;
            }
            Ok(released == 1)
        }
    }
}

fn finish(
    connection: &Connection,
    settlement: &Settlement,
    status: Status,
    error: Option<&String>,
    at: i64,
) -> Result<bool, Failure> {
    let id = Id::of(settlement.entry.id);
    let minute = settlement.entry.at.minute();
    let attempt: Option<i64> = connection
        .prepare_cached(TAKE_CLAIMED)?
        .query_row(params![minute, id, settlement.entry.at.as_micros(), settlement.token.0], |row| row.get(0))
        .optional()?;
    let Some(attempt) = attempt else { return Ok(false) };
    connection.prepare_cached(INSERT_OUTCOME)?.execute(params![id, status.as_str(), attempt, error, at, at])?;
    Ok(true)
}
