//! Reading what happened to timers.

use domain::{Attempt, Timer, TimerId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};
use store::{EventPage, Happened, Read, Unreadable};
use store_sql::{are_first_columns_of, column, sql};

use crate::{
    attempts::{ATTEMPTS, attempt},
    failure::Failure,
    rows::{Id, TIMER_BY_ID, found, is_senseless},
    tally::Tally,
    writer::Write,
};

pub const EVENTS_CREATED: &str = sql!("sql/events_created.sql");
pub const EVENTS_FINISHED: &str = sql!("sql/events_finished.sql");
pub const EVENTS_JOURNAL: &str = sql!("sql/events_journal.sql");
pub const FORGET_EVENTS: &str = sql!("sql/forget_events.sql");
pub const ATTEMPT_AT: &str = sql!("sql/attempt_at.sql");

const SOURCES: [&str; 3] = [EVENTS_CREATED, EVENTS_FINISHED, EVENTS_JOURNAL];
const _: () = assert!(are_first_columns_of(ATTEMPTS, ATTEMPT_AT));

pub fn events(connection: &Connection, after: Timestamp, until: Timestamp, limit: usize) -> Result<EventPage, Failure> {
    let snapshot = connection.unchecked_transaction()?;
    let mut limit = limit.max(1);
    loop {
        let mut sources = Vec::with_capacity(SOURCES.len());
        for statement in SOURCES {
            sources.push(source(&snapshot, statement, after, until, limit)?);
        }
        match EventPage::merge(sources, until, limit) {
            Some(page) => return Ok(page),
            None => limit = limit.saturating_mul(2),
        }
    }
}

fn source(
    connection: &Connection,
    statement: &str,
    after: Timestamp,
    until: Timestamp,
    limit: usize,
) -> Result<Vec<Read>, Failure> {
    let mut statement = connection.prepare_cached(statement)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![after.as_micros(), until.as_micros(), limit])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let position = Timestamp::from_micros(row.get(column!(EVENTS_JOURNAL, "position"))?);
        let read = match happened(row) {
            Ok(read) => read,
            Err(error) if is_senseless(&error) => Err(Unreadable(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        events.push(Read::of(position, read));
    }
    Ok(events)
}

fn happened(row: &Row<'_>) -> rusqlite::Result<Result<(TimerId, Happened), Unreadable>> {
    let status: Option<String> = row.get(column!(EVENTS_JOURNAL, "status"))?;
    let what = Happened::from_columns(
        row.get(column!(EVENTS_JOURNAL, "kind"))?,
        row.get(column!(EVENTS_JOURNAL, "moment"))?,
        row.get(column!(EVENTS_JOURNAL, "seq"))?,
        status.as_deref(),
    );
    let id = row.get::<_, Id>(column!(EVENTS_JOURNAL, "id"))?.timer();
    Ok(what.map(|what| (id, what)))
}

pub fn timers(connection: &Connection, ids: &[TimerId]) -> Result<Vec<Timer>, Failure> {
    let snapshot = connection.unchecked_transaction()?;
    let mut statement = snapshot.prepare_cached(TIMER_BY_ID)?;
    let mut timers = Vec::with_capacity(ids.len());
    for id in ids {
        let timer = match statement.query_row([Id::of(*id)], found).optional() {
            Ok(None) => continue,
            Ok(Some(found)) => found.and_then(|found| found.timer.into_timer()),
            Err(error) if is_senseless(&error) => Err(Unreadable(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        match timer {
            Ok(timer) => timers.push(timer),
            Err(error) => tracing::warn!(timer.id = %id, %error, "a stored timer cannot be shown in an event"),
        }
    }
    Ok(timers)
}

pub fn attempts_at(connection: &Connection, of: &[(TimerId, i64)]) -> Result<Vec<Option<Attempt>>, Failure> {
    let snapshot = connection.unchecked_transaction()?;
    let mut statement = snapshot.prepare_cached(ATTEMPT_AT)?;
    let mut attempts = Vec::with_capacity(of.len());
    for (id, seq) in of {
        attempts.push(statement.query_row(params![Id::of(*id), seq], attempt).optional()?);
    }
    Ok(attempts)
}

pub struct Forget {
    pub before: Timestamp,
    pub limit: usize,
}

impl Write for Forget {
    type Answer = usize;
    const NAME: &'static str = "forget_events";

    fn rows(&self) -> usize {
        self.limit
    }

    fn run(&self, connection: &Connection, _: &mut Tally) -> Result<usize, Failure> {
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        Ok(connection.prepare_cached(FORGET_EVENTS)?.execute(params![self.before.as_micros(), limit])?)
    }
}
