//! Changing and canceling what is still pending or paused, and trying again what has failed.

use domain::{Definition, Event, RequestedTime, Status, Timer, TimerId, Timestamp};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use store::Changed;
use store_sql::{column, sql};

use crate::{
    failure::Failure,
    read::read_back,
    rows::{Found, Id, TIMER_BY_ID, Texts, found, to_column},
    settle::{Finish, Finished},
    statements::{DELETE_OUTCOME, INSERT_DUE, REOPEN_DEFINITION, RESET_DUE, RESET_PAUSED},
    step,
    tally::{Tally, namespace_column},
    writer::Write,
};

pub const REPLACE_DEFINITION: &str = sql!("sql/replace_definition.sql");
pub const MOVE_DEFINITION: &str = sql!("sql/move_definition.sql");
pub const ADVANCE_DUE: &str = sql!("sql/advance_due.sql");
pub const READDRESS_DUE: &str = sql!("sql/readdress_due.sql");
pub const READDRESS_PAUSED: &str = sql!("sql/readdress_paused.sql");
pub const PENDING: &str = sql!("sql/pending.sql");

/// What replaces the content of a pending or paused timer.
pub struct Replacement<'a> {
    pub definition: &'a Definition,
    pub texts: &'a Texts,
    pub execute_at: Timestamp,
    pub now: Timestamp,
}

/// When a timer that was changed is tried next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextAttempt {
    /// Attempts start over.
    AtTheNewTime,
    /// The due time is the old one: whatever was planned stays, unless the timer expires before that.
    AsItWas,
}

/// New content and time for a timer that was found pending or paused in this transaction, and stays so.
pub fn replace(
    connection: &Connection,
    existing: &Found,
    new: &Replacement<'_>,
    next: NextAttempt,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let Replacement { definition, texts, execute_at, now } = *new;
    let id = Id::of(existing.timer.id);
    let minute = execute_at.minute();
    let due_minute = match next {
        NextAttempt::AtTheNewTime => minute,
        NextAttempt::AsItWas => {
            let expires_at = definition.options.expiry.map(|expiry| expiry.instant(execute_at));
            advanced(connection, existing, expires_at)?
        }
    };
    connection.prepare_cached(REPLACE_DEFINITION)?.execute(params![
        id,
        definition.namespace.as_str(),
        definition.key.as_ref().map(|key| key.as_str()),
        texts.request.asked,
        execute_at.as_micros(),
        minute,
        definition.callback.kind(),
        definition.delivery.as_str(),
        now.as_micros(),
        texts.fingerprint.0,
        definition.correlation_id.as_ref().map(|id| id.as_str()),
        texts.retry_policy,
        definition.metadata.as_ref().map(|metadata| metadata.as_str()),
        texts.callback_config,
        due_minute,
        texts.request.options,
        definition.group.as_ref().map(|group| group.as_str()),
    ])?;
    tally.journal.changed(id, existing.timer.revision + 1);
    let namespace = namespace_column(definition.namespace.as_str());
    tally.remove(namespace_column(&existing.timer.namespace), existing.timer.status);
    tally.add(namespace, existing.timer.status);
    let row_minute = standing_minute(existing);
    match next {
        NextAttempt::AtTheNewTime => {
            let row = params![row_minute, id, minute, execute_at.as_micros(), texts.destination, namespace];
            connection.prepare_cached(reset(existing))?.execute(row)?
        }
        NextAttempt::AsItWas => {
            let is_paused = existing.timer.status == Status::Paused;
            let (readdress, row_minute) = if is_paused { (READDRESS_PAUSED, row_minute) } else { (READDRESS_DUE, due_minute) };
            connection.prepare_cached(readdress)?.execute(params![row_minute, id, texts.destination, namespace])?
        }
    };
    Ok(())
}

/// Lets a retry that would come after the expiry of its timer be due at that: see [`Timer::next_look`]. In which minute it is due then.
fn advanced(connection: &Connection, existing: &Found, expires_at: Option<Timestamp>) -> rusqlite::Result<i64> {
    let Some(expires_at) = expires_at else { return Ok(existing.due_minute) };
    let row = params![existing.due_minute, Id::of(existing.timer.id), expires_at.minute(), expires_at.as_micros()];
    let is_advanced = connection.prepare_cached(ADVANCE_DUE)?.execute(row)? > 0;
    Ok(if is_advanced { expires_at.minute() } else { existing.due_minute })
}

/// Under which minute a pending or paused timer stands.
fn standing_minute(existing: &Found) -> i64 {
    if existing.timer.status == Status::Paused { existing.execute_minute() } else { existing.due_minute }
}

/// What gives a pending or paused timer a new time.
fn reset(existing: &Found) -> &'static str {
    if existing.timer.status == Status::Paused { RESET_PAUSED } else { RESET_DUE }
}

/// A new time only, for a timer that was found pending or paused in this transaction, and stays so.
pub fn move_to(
    connection: &Connection,
    existing: &Found,
    asked: &RequestedTime,
    execute_at: Timestamp,
    now: Timestamp,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let id = Id::of(existing.timer.id);
    let minute = execute_at.minute();
    let request = existing.timer.moved_to(asked)?;
    tally.journal.changed(id, existing.timer.revision + 1);
    connection.prepare_cached(MOVE_DEFINITION)?.execute(params![
        id,
        request.asked,
        execute_at.as_micros(),
        minute,
        now.as_micros(),
        request.options
    ])?;
    connection.prepare_cached(reset(existing))?.execute(params![
        standing_minute(existing),
        id,
        minute,
        execute_at.as_micros(),
        None::<i64>,
        namespace_column(&existing.timer.namespace)
    ])?;
    Ok(())
}

pub struct Update {
    changed: Timer,
    texts: Texts,
    now: Timestamp,
}

impl Update {
    pub fn new(changed: &Timer, now: Timestamp) -> Self {
        Self { changed: changed.clone(), texts: Texts::of(&changed.definition), now }
    }
}

impl Write for Update {
    type Answer = Changed;
    const NAME: &'static str = "update";

    fn rows(&self) -> usize {
        1
    }

    fn bytes(&self) -> usize {
        self.texts.bytes(&self.changed.definition)
    }

    fn run(&self, connection: &Connection, tally: &mut Tally) -> Result<Changed, Failure> {
        let id = Id::of(self.changed.id());
        let Some(existing) = connection.prepare_cached(TIMER_BY_ID)?.query_row([id], found).optional()?.transpose()? else {
            return Ok(Changed::NotFound);
        };
        if existing.timer.status.after(Event::Update).is_none() {
            return Ok(Changed::WrongStatus(existing.timer.into_timer()?));
        }
        if existing.timer.revision != i64::from(self.changed.revision) {
            return Ok(Changed::StaleRevision(existing.timer.into_timer()?));
        }
        let replacement = Replacement {
            definition: &self.changed.definition,
            texts: &self.texts,
            execute_at: self.changed.execute_at,
            now: self.now,
        };
        let is_moved = existing.timer.execute_at != self.changed.execute_at.as_micros();
        let next = if is_moved { NextAttempt::AtTheNewTime } else { NextAttempt::AsItWas };
        replace(connection, &existing, &replacement, next, tally)?;
        read_back(connection, id).map(Changed::Done)
    }
}

pub struct Cancel {
    pub id: TimerId,
    pub expected: Option<u32>,
    pub now: Timestamp,
}

impl Write for Cancel {
    type Answer = Changed;
    const NAME: &'static str = "cancel";

    fn rows(&self) -> usize {
        1
    }

    fn run(&self, connection: &Connection, tally: &mut Tally) -> Result<Changed, Failure> {
        let id = Id::of(self.id);
        let Some(existing) = connection.prepare_cached(TIMER_BY_ID)?.query_row([id], found).optional()?.transpose()? else {
            return Ok(Changed::NotFound);
        };
        let is_changeable = existing.timer.status.after(Event::Cancel).is_some();
        if is_changeable && is_stale(existing.timer.revision, self.expected) {
            return Ok(Changed::StaleRevision(existing.timer.into_timer()?));
        }
        if existing.timer.status == Status::Paused {
            step::cancel_paused(connection, self.id, self.now, tally)?;
        } else if !Canceling::prepare(connection)?.run(existing.due_minute, id, self.now, tally)? {
            return Ok(Changed::WrongStatus(existing.timer.into_timer()?));
        }
        read_back(connection, id).map(Changed::Done)
    }
}

/// Whether a timer has another revision than the one that is expected.
fn is_stale(revision: i64, expected: Option<u32>) -> bool {
    expected.is_some_and(|expected| revision != i64::from(expected))
}

/// The statements that cancel.
pub struct Canceling<'connection> {
    pending: CachedStatement<'connection>,
    finish: Finish<'connection>,
}

impl<'connection> Canceling<'connection> {
    pub fn prepare(connection: &'connection Connection) -> rusqlite::Result<Self> {
        Ok(Self { pending: connection.prepare_cached(PENDING)?, finish: Finish::prepare(connection)? })
    }

    /// Whether the timer was pending.
    pub fn run(&mut self, due_minute: i64, id: Id, now: Timestamp, tally: &mut Tally) -> rusqlite::Result<bool> {
        let row = |row: &rusqlite::Row<'_>| {
            Ok((
                row.get(column!(PENDING, "attempt"))?,
                row.get(column!(PENDING, "execute_at"))?,
                row.get(column!(PENDING, "namespace"))?,
                row.get(column!(PENDING, "last_error"))?,
                row.get(column!(PENDING, "created_at"))?,
            ))
        };
        let found = self.pending.query_row(params![due_minute, id], row).optional()?;
        let Some((attempt, execute_at, namespace, last_error, created_at)) = found else { return Ok(false) };
        let (namespace, last_error): (Option<String>, Option<String>) = (namespace, last_error);
        let finished = Finished {
            due_minute,
            id,
            execute_at: Timestamp::from_micros(execute_at),
            status: Status::Canceled,
            attempt,
            namespace: namespace.as_deref(),
            last_error: last_error.as_deref(),
            executed_at: None,
            finished_at: now,
            created_at,
        };
        self.finish.run(&finished, &mut tally.journal)?;
        tally.turn(namespace.as_deref(), Status::Pending, Status::Canceled);
        Ok(true)
    }
}

pub struct Reopen {
    pub id: TimerId,
    pub expected: Option<u32>,
    pub now: Timestamp,
}

impl Write for Reopen {
    type Answer = Changed;
    const NAME: &'static str = "reopen";

    fn rows(&self) -> usize {
        1
    }

    fn run(&self, connection: &Connection, tally: &mut Tally) -> Result<Changed, Failure> {
        let (id, now) = (Id::of(self.id), self.now);
        let Some(existing) = connection.prepare_cached(TIMER_BY_ID)?.query_row([id], found).optional()?.transpose()? else {
            return Ok(Changed::NotFound);
        };
        let execute_minute = existing.execute_minute();
        let timer = existing.timer.into_timer()?;
        if timer.status.after(Event::Reopen).is_none() {
            return Ok(Changed::WrongStatus(timer));
        }
        if is_stale(timer.revision.into(), self.expected) {
            return Ok(Changed::StaleRevision(timer));
        }
        let destination = to_column(timer.definition.destination());
        let namespace = namespace_column(timer.definition.namespace.as_str());
        let moved = (timer.execute_at != now).then_some(timer.execute_at.as_micros());
        connection.prepare_cached(DELETE_OUTCOME)?.execute(params![execute_minute, id])?;
        let due = params![now.minute(), id, now.as_micros(), destination, moved, namespace, timer.created_at.as_micros()];
        connection.prepare_cached(INSERT_DUE)?.execute(due)?;
        tally.turn(namespace, timer.status, Status::Pending);
        tally.journal.ended(id, timer.updated_at, timer.status);
        tally.journal.changed(id, i64::from(timer.revision) + 1);
        connection.prepare_cached(REOPEN_DEFINITION)?.execute(params![id, now.minute(), now.as_micros()])?;
        read_back(connection, id).map(Changed::Done)
    }
}
