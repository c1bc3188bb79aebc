//! What is remembered of deliveries.

use domain::{Attempt, Span, TimerId, Timestamp, limits};
use rusqlite::{CachedStatement, Connection, Row, params};
use store_sql::{column, sql};

use crate::{failure::Failure, rows::Id};

pub const LAST_SEQ: &str = sql!("sql/last_seq.sql");
pub const INSERT_ATTEMPT: &str = sql!("sql/insert_attempt.sql");
pub const FORGET_EARLIER: &str = sql!("sql/forget_earlier.sql");
pub const DELETE_ATTEMPTS: &str = sql!("sql/delete_attempts.sql");
pub const ATTEMPTS: &str = sql!("sql/attempts.sql");

const KEPT: i64 = limits::ATTEMPTS_KEPT as i64;

/// The statements that keep the last attempts of a timer, and no more.
pub struct Memory<'connection> {
    last_seq: CachedStatement<'connection>,
    insert: CachedStatement<'connection>,
    forget_earlier: CachedStatement<'connection>,
}

impl<'connection> Memory<'connection> {
    pub fn prepare(connection: &'connection Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            last_seq: connection.prepare_cached(LAST_SEQ)?,
            insert: connection.prepare_cached(INSERT_ATTEMPT)?,
            forget_earlier: connection.prepare_cached(FORGET_EARLIER)?,
        })
    }

    /// The number that the attempt was recorded under.
    pub fn keep(&mut self, id: Id, attempt: &Attempt) -> rusqlite::Result<i64> {
        let last: i64 = self.last_seq.query_row([id], |row| row.get(column!(LAST_SEQ, "seq")))?;
        let seq = last + 1;
        self.insert.execute(params![
            id,
            seq,
            attempt.number,
            attempt.started_at.as_micros(),
            attempt.took.as_micros(),
            attempt.outcome,
            attempt.status,
            attempt.detail,
            attempt.kept_text()
        ])?;
        // Numbers have no gaps, so the number alone says that there are more than are kept.
        if seq > KEPT {
            self.forget_earlier.execute(params![id, seq - KEPT])?;
        }
        Ok(seq)
    }
}

pub fn attempts(connection: &Connection, id: TimerId) -> Result<Vec<Attempt>, Failure> {
    let mut statement = connection.prepare_cached(ATTEMPTS)?;
    let attempts = statement.query_map([Id::of(id)], attempt)?.collect::<rusqlite::Result<_>>()?;
    Ok(attempts)
}

pub fn attempt(row: &Row<'_>) -> rusqlite::Result<Attempt> {
    let kept: Option<String> = row.get(column!(ATTEMPTS, "answer"))?;
    let attempt = Attempt {
        number: row.get(column!(ATTEMPTS, "number"))?,
        started_at: Timestamp::from_micros(row.get(column!(ATTEMPTS, "started_at"))?),
        took: Span::from_micros_clamped(row.get(column!(ATTEMPTS, "took"))?),
        outcome: row.get(column!(ATTEMPTS, "outcome"))?,
        status: row.get(column!(ATTEMPTS, "status"))?,
        detail: row.get(column!(ATTEMPTS, "detail"))?,
        node: None,
        answer: None,
    };
    Ok(attempt.with_kept(kept.as_deref()))
}
