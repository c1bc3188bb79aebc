//! Carrying out what was decided about a timer, inside the transaction in which it was looked at.

use domain::{Status, TimerId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};
use store::{BulkChange, BulkStep, DueEntry, Terms, Unreadable};
use store_sql::{column, sql};

use crate::{
    attempts::DELETE_ATTEMPTS,
    failure::Failure,
    rows::{DEFINITION_BY_ID, Id, definition, from_column, to_column},
    settle::{DELETE_DUE, INSERT_OUTCOME},
    statements::{DELETE_DEFINITION, DELETE_OUTCOME, INSERT_DUE, REOPEN_DEFINITION, RESET_DUE, RESET_PAUSED},
    tally::{Tally, namespace_column},
};

pub const STANDING_BY_ID: &str = sql!("sql/standing_by_id.sql");
pub const OPTIONS_BY_ID: &str = sql!("sql/options_by_id.sql");
pub const SHIFT_DEFINITION: &str = sql!("sql/shift_definition.sql");
pub const PAUSE_DUE: &str = sql!("sql/pause_due.sql");
pub const RESUME_DUE: &str = sql!("sql/resume_due.sql");
pub const LET_EXPIRE_DUE: &str = sql!("sql/let_expire_due.sql");
pub const DELETE_PAUSED: &str = sql!("sql/delete_paused.sql");
pub const TOUCH_DEFINITION: &str = sql!("sql/touch_definition.sql");

/// A timer, as far as a change of its standing asks.
pub struct Found {
    pub id: TimerId,
    pub standing: store::Standing,
    namespace: String,
    execute_at: i64,
    created_at: i64,
    due_minute: i64,
    attempt: i64,
    last_error: Option<String>,
    destination: i64,
    finished_at: Option<i64>,
}

/// Whether the timer was paused, and is canceled.
pub fn cancel_paused(connection: &Connection, id: TimerId, now: Timestamp, tally: &mut Tally) -> Result<bool, Failure> {
    let Some(found) = Found::by_id(connection, id)?.filter(Found::is_paused) else { return Ok(false) };
    let step = BulkStep::End { status: Status::Canceled, error: None };
    found.apply(connection, step, None, now, tally).map(BulkChange::is_change)
}

impl Found {
    pub fn by_id(connection: &Connection, id: TimerId) -> Result<Option<Self>, Failure> {
        let read = |row: &Row<'_>| Self::read(id, row);
        let found = connection.prepare_cached(STANDING_BY_ID)?.query_row([Id::of(id)], read).optional()?;
        Ok(found.transpose()?)
    }

    /// The same, with the terms of the timer.
    pub fn with_terms(mut self, connection: &Connection) -> Result<Self, Failure> {
        let read = |row: &Row<'_>| {
            let options = row.get_ref(column!(OPTIONS_BY_ID, "options"))?;
            Ok(options.as_str_or_null().ok().and_then(Terms::in_column))
        };
        self.standing.terms = connection.prepare_cached(OPTIONS_BY_ID)?.query_row([Id::of(self.id)], read)?;
        Ok(self)
    }

    fn read(id: TimerId, row: &Row<'_>) -> rusqlite::Result<Result<Self, Unreadable>> {
        let due_at: Option<i64> = row.get(column!(STANDING_BY_ID, "due_at"))?;
        let paused_until: Option<i64> = row.get(column!(STANDING_BY_ID, "paused_until"))?;
        let (status, attempt, last_error, destination) = if due_at.is_some() {
            let claimed: bool = row.get(column!(STANDING_BY_ID, "claimed"))?;
            (
                if claimed { Status::Executing } else { Status::Pending },
                row.get(column!(STANDING_BY_ID, "due_attempt"))?,
                row.get(column!(STANDING_BY_ID, "due_last_error"))?,
                row.get(column!(STANDING_BY_ID, "due_destination"))?,
            )
        } else if paused_until.is_some() {
            (
                Status::Paused,
                row.get(column!(STANDING_BY_ID, "paused_attempt"))?,
                row.get(column!(STANDING_BY_ID, "paused_last_error"))?,
                row.get(column!(STANDING_BY_ID, "paused_destination"))?,
            )
        } else {
            let status: Option<String> = row.get(column!(STANDING_BY_ID, "status"))?;
            match status.as_deref().and_then(Status::parse) {
                Some(status) => (status, 0, None, 0),
                None => return Ok(Err(Unreadable(format!("timer {id} is neither due nor paused nor finished")))),
            }
        };
        let execute_at = row.get(column!(STANDING_BY_ID, "execute_at"))?;
        Ok(Ok(Self {
            id,
            standing: store::Standing {
                status,
                revision: row.get(column!(STANDING_BY_ID, "revision"))?,
                at: due_at.or(paused_until).map(Timestamp::from_micros),
                execute_at: Timestamp::from_micros(execute_at),
                terms: None,
            },
            namespace: row.get(column!(STANDING_BY_ID, "namespace"))?,
            execute_at,
            created_at: row.get(column!(STANDING_BY_ID, "created_at"))?,
            due_minute: row.get(column!(STANDING_BY_ID, "due_minute"))?,
            attempt,
            last_error,
            destination,
            finished_at: row.get(column!(STANDING_BY_ID, "finished_at"))?,
        }))
    }

    const fn execute_minute(&self) -> i64 {
        Timestamp::from_micros(self.execute_at).minute()
    }

    const fn is_paused(&self) -> bool {
        matches!(self.standing.status, Status::Paused)
    }

    /// To be called for every step that raises the revision.
    fn record_change(&self, tally: &mut Tally) {
        tally.journal.changed(Id::of(self.id), i64::from(self.standing.revision) + 1);
    }

    const fn due(&self, at: Timestamp) -> BulkChange {
        BulkChange::Due(DueEntry { at, id: self.id, destination: from_column(self.destination) })
    }

    /// Does what was decided, and says what became of the timer.
    pub fn apply(
        &self,
        connection: &Connection,
        step: BulkStep,
        note: Option<&str>,
        now: Timestamp,
        tally: &mut Tally,
    ) -> Result<BulkChange, Failure> {
        match step {
            BulkStep::End { status, error } => self.end(connection, status, error, now, tally),
            BulkStep::LetExpire { at, error } => self.let_expire(connection, at, error, now, tally),
            BulkStep::Move { to } => self.move_to(connection, to, now, tally),
            BulkStep::Pause => self.pause(connection, note, now, tally),
            BulkStep::Resume { at } => self.resume(connection, at, now, tally),
            BulkStep::Reopen { at } => self.reopen(connection, at, now, tally),
            BulkStep::Remove => self.remove(connection, tally),
        }
    }

    fn end(
        &self,
        connection: &Connection,
        status: Status,
        error: Option<&str>,
        now: Timestamp,
        tally: &mut Tally,
    ) -> Result<BulkChange, Failure> {
        let (id, minute) = (Id::of(self.id), self.execute_minute());
        let namespace = namespace_column(&self.namespace);
        connection.prepare_cached(INSERT_OUTCOME)?.execute(params![
            minute,
            id,
            self.execute_at,
            status.as_str(),
            self.attempt,
            namespace,
            error.or(self.last_error.as_deref()),
            None::<i64>,
            now.as_micros(),
            self.created_at,
        ])?;
        if self.is_paused() {
            connection.prepare_cached(DELETE_PAUSED)?.execute(params![minute, id])?;
        } else {
            connection.prepare_cached(DELETE_DUE)?.execute(params![self.due_minute, id])?;
        }
        tally.turn(namespace, self.standing.status, status);
        tally.journal.finished(id, now, status);
        Ok(BulkChange::Changed)
    }

    fn move_to(&self, connection: &Connection, to: Timestamp, now: Timestamp, tally: &mut Tally) -> Result<BulkChange, Failure> {
        self.record_change(tally);
        let (id, minute) = (Id::of(self.id), to.minute());
        let definition = params![id, to.as_micros(), minute, now.as_micros()];
        connection.prepare_cached(SHIFT_DEFINITION)?.execute(definition)?;
        let (reset, was_in) = if self.is_paused() { (RESET_PAUSED, self.execute_minute()) } else { (RESET_DUE, self.due_minute) };
        let row = params![was_in, id, minute, to.as_micros(), None::<i64>, namespace_column(&self.namespace)];
        connection.prepare_cached(reset)?.execute(row)?;
        Ok(if self.is_paused() { BulkChange::Changed } else { self.due(to) })
    }

    fn pause(
        &self,
        connection: &Connection,
        note: Option<&str>,
        now: Timestamp,
        tally: &mut Tally,
    ) -> Result<BulkChange, Failure> {
        let id = Id::of(self.id);
        let row = params![self.due_minute, id, self.execute_minute(), now.as_micros(), note];
        connection.prepare_cached(PAUSE_DUE)?.execute(row)?;
        connection.prepare_cached(DELETE_DUE)?.execute(params![self.due_minute, id])?;
        connection.prepare_cached(TOUCH_DEFINITION)?.execute(params![id, now.as_micros()])?;
        tally.turn(namespace_column(&self.namespace), Status::Pending, Status::Paused);
        self.record_change(tally);
        Ok(BulkChange::Changed)
    }

    fn resume(&self, connection: &Connection, at: Timestamp, now: Timestamp, tally: &mut Tally) -> Result<BulkChange, Failure> {
        self.unpause(connection, at, tally)?;
        connection.prepare_cached(REOPEN_DEFINITION)?.execute(params![Id::of(self.id), at.minute(), now.as_micros()])?;
        self.record_change(tally);
        Ok(self.due(at))
    }

    /// Moves the row of a paused timer to what is due.
    fn unpause(&self, connection: &Connection, at: Timestamp, tally: &mut Tally) -> Result<(), Failure> {
        let (id, minute) = (Id::of(self.id), self.execute_minute());
        connection.prepare_cached(RESUME_DUE)?.execute(params![minute, id, at.minute(), at.as_micros()])?;
        connection.prepare_cached(DELETE_PAUSED)?.execute(params![minute, id])?;
        tally.turn(namespace_column(&self.namespace), Status::Paused, Status::Pending);
        Ok(())
    }

    fn let_expire(
        &self,
        connection: &Connection,
        at: Timestamp,
        error: &str,
        now: Timestamp,
        tally: &mut Tally,
    ) -> Result<BulkChange, Failure> {
        let id = Id::of(self.id);
        let mut stands_in = self.due_minute;
        if self.is_paused() {
            self.unpause(connection, at, tally)?;
            stands_in = at.minute();
        }
        let row = params![stands_in, id, at.minute(), at.as_micros(), error];
        connection.prepare_cached(LET_EXPIRE_DUE)?.execute(row)?;
        connection.prepare_cached(REOPEN_DEFINITION)?.execute(params![id, at.minute(), now.as_micros()])?;
        self.record_change(tally);
        Ok(self.due(at))
    }

    /// Where it goes is not known once it has ended: the definition says so.
    fn reopen(&self, connection: &Connection, at: Timestamp, now: Timestamp, tally: &mut Tally) -> Result<BulkChange, Failure> {
        let id = Id::of(self.id);
        let timer = connection.prepare_cached(DEFINITION_BY_ID)?.query_row([id], definition)?.into_timer()?;
        let destination = timer.definition.destination();
        let namespace = namespace_column(&self.namespace);
        let moved = (self.execute_at != at.as_micros()).then_some(self.execute_at);
        connection.prepare_cached(DELETE_OUTCOME)?.execute(params![self.execute_minute(), id])?;
        let due = params![at.minute(), id, at.as_micros(), to_column(destination), moved, namespace, self.created_at];
        connection.prepare_cached(INSERT_DUE)?.execute(due)?;
        connection.prepare_cached(REOPEN_DEFINITION)?.execute(params![id, at.minute(), now.as_micros()])?;
        tally.turn(namespace, self.standing.status, Status::Pending);
        if let Some(finished_at) = self.finished_at {
            tally.journal.ended(id, Timestamp::from_micros(finished_at), self.standing.status);
        }
        self.record_change(tally);
        Ok(BulkChange::Due(DueEntry { at, id: self.id, destination }))
    }

    fn remove(&self, connection: &Connection, tally: &mut Tally) -> Result<BulkChange, Failure> {
        let id = Id::of(self.id);
        connection.prepare_cached(DELETE_OUTCOME)?.execute(params![self.execute_minute(), id])?;
        connection.prepare_cached(DELETE_DEFINITION)?.execute([id])?;
        connection.prepare_cached(DELETE_ATTEMPTS)?.execute([id])?;
        tally.remove(namespace_column(&self.namespace), self.standing.status);
        Ok(BulkChange::Changed)
    }
}
