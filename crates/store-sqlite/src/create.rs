//! Registering timers, and what becomes of a taken id.

use domain::{Content, Event, NewTimer, OnConflict, RequestedTime, Resolution, Status, Timer, Timestamp, resolve};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use store::{Changed, Created, StoreError};
use store_sql::sql;

use crate::{
    change::{self, NextAttempt, Replacement},
    failure::Failure,
    read::read_back,
    rows::{Found, Id, TIMER_BY_ID, Texts, found},
    statements::{DELETE_DEFINITION, DELETE_OUTCOME, INSERT_DUE},
    tally::{Tally, namespace_column},
    writer::Write,
};

pub const INSERT_DEFINITION: &str = sql!("sql/insert_definition.sql");

const FIRST_REVISION: i64 = 1;

pub struct Create {
    batch: Vec<(NewTimer, Texts)>,
}

/// What became of one timer. What is new stays with the caller, who brought it.
pub enum Done {
    Created,
    Revived {
        revision: i64,
    },
    /// Boxed, because it is rare and a batch of new ones should stay small.
    Resolved(Box<Created>),
}

impl Create {
    pub fn new(batch: Vec<NewTimer>) -> Self {
        let with_texts = |new: NewTimer| {
            let texts = Texts::of(&new.definition);
            (new, texts)
        };
        Self { batch: batch.into_iter().map(with_texts).collect() }
    }

    /// Turns what was done into what the caller wants to know.
    pub fn answer(self, done: Vec<Done>) -> Vec<Created> {
        let one = |((new, _), done): ((NewTimer, Texts), Done)| match done {
            Done::Created => Created::Created(newborn(new, FIRST_REVISION)),
            Done::Revived { revision } => Created::Replaced(newborn(new, revision)),
            Done::Resolved(created) => *created,
        };
        self.batch.into_iter().zip(done).map(one).collect()
    }
}

fn newborn(new: NewTimer, revision: i64) -> Timer {
    Timer {
        definition: new.definition,
        execute_at: new.execute_at,
        status: Status::Pending,
        attempt: 0,
        last_error: None,
        executed_at: None,
        created_at: new.created_at,
        updated_at: new.created_at,
        revision: u32::try_from(revision).unwrap_or(u32::MAX),
        pause: None,
    }
}

impl Write for Create {
    type Answer = Vec<Done>;
    const NAME: &'static str = "create";

    fn rows(&self) -> usize {
        self.batch.len()
    }

    fn bytes(&self) -> usize {
        self.batch.iter().map(|(new, texts)| texts.bytes(&new.definition)).sum()
    }

    fn run(&self, connection: &Connection, tally: &mut Tally) -> Result<Vec<Done>, Failure> {
        let mut insert = Insert::prepare(connection)?;
        let mut done = Vec::with_capacity(self.batch.len());
        for (new, texts) in &self.batch {
            done.push(if insert.run(new, texts, FIRST_REVISION, tally)? {
                Done::Created
            } else {
                settle_conflict(connection, &mut insert, new, texts, tally)?
            });
        }
        Ok(done)
    }
}

struct Insert<'connection> {
    definition: CachedStatement<'connection>,
    due: CachedStatement<'connection>,
}

impl<'connection> Insert<'connection> {
    fn prepare(connection: &'connection Connection) -> rusqlite::Result<Self> {
        Ok(Self { definition: connection.prepare_cached(INSERT_DEFINITION)?, due: connection.prepare_cached(INSERT_DUE)? })
    }

    /// Whether the id was free.
    fn run(&mut self, new: &NewTimer, texts: &Texts, revision: i64, tally: &mut Tally) -> rusqlite::Result<bool> {
        let definition = &new.definition;
        let id = Id::of(definition.id);
        let minute = new.execute_at.minute();
        let inserted = self.definition.execute(params![
            id,
            definition.namespace.as_str(),
            definition.key.as_ref().map(|key| key.as_str()),
            texts.request.asked,
            new.execute_at.as_micros(),
            minute,
            definition.callback.kind(),
            definition.delivery.as_str(),
            new.created_at.as_micros(),
            texts.fingerprint.0,
            definition.correlation_id.as_ref().map(|id| id.as_str()),
            texts.retry_policy,
            definition.metadata.as_ref().map(|metadata| metadata.as_str()),
            texts.callback_config,
            revision,
            texts.request.options,
            definition.group.as_ref().map(|group| group.as_str()),
        ])?;
        if inserted == 0 {
            return Ok(false);
        }
        let namespace = namespace_column(definition.namespace.as_str());
        self.due.execute(params![
            minute,
            id,
            new.execute_at.as_micros(),
            texts.destination,
            None::<i64>,
            namespace,
            new.created_at.as_micros(),
        ])?;
        tally.add(namespace, Status::Pending);
        tally.journal.created(id, new.created_at);
        Ok(true)
    }
}

fn settle_conflict(
    connection: &Connection,
    insert: &mut Insert<'_>,
    new: &NewTimer,
    texts: &Texts,
    tally: &mut Tally,
) -> Result<Done, Failure> {
    let id = Id::of(new.definition.id);
    let existing = connection.prepare_cached(TIMER_BY_ID)?.query_row([id], found).optional()?;
    let Some(existing) = existing.transpose()? else {
        return Err(StoreError::Corrupt(format!("timer {} is there and not there", id.timer()).into()).into());
    };
    let wanted = new.definition.content_with(texts.fingerprint);
    // Through its stored form and back, so that like is compared with like.
    let asked = wanted.asked.and_then(|asked| RequestedTime::from_stored(&asked.to_stored()).ok());
    let wanted = Content { asked, ..wanted };
    let (met, times) = (existing.timer.content(existing.fingerprint), existing.timer.times(new));
    let met = match resolve(new.on_conflict, existing.timer.status, met, wanted, times) {
        Resolution::Existing => Created::Existing(existing.timer.into_timer()?),
        Resolution::Conflict => Created::Conflict(existing.timer.into_timer()?),
        Resolution::PastExpiry => Created::PastExpiry(existing.timer.into_timer()?),
        Resolution::Overwrite => {
            let replacement = Replacement { definition: &new.definition, texts, execute_at: new.execute_at, now: new.created_at };
            change::replace(connection, &existing, &replacement, NextAttempt::AtTheNewTime, tally)?;
            Created::Replaced(read_back(connection, id)?)
        }
        Resolution::Move(at) => {
            change::move_to(connection, &existing, &new.definition.asked, at, new.created_at, tally)?;
            Created::Replaced(read_back(connection, id)?)
        }
        Resolution::Revive => {
            let revision = revive(connection, insert, &existing, new, texts, tally)?;
            return Ok(Done::Revived { revision });
        }
    };
    Ok(Done::Resolved(Box::new(met)))
}

/// A new life for a timer that was found finished in this transaction: its revision.
fn revive(
    connection: &Connection,
    insert: &mut Insert<'_>,
    existing: &Found,
    new: &NewTimer,
    texts: &Texts,
    tally: &mut Tally,
) -> Result<i64, Failure> {
    let id = Id::of(new.definition.id);
    connection.prepare_cached(DELETE_OUTCOME)?.execute(params![existing.execute_minute(), id])?;
    connection.prepare_cached(DELETE_DEFINITION)?.execute([id])?;
    // Above the one of its former life, so that no client takes the two for the same.
    let revision = existing.timer.revision.saturating_add(1);
    tally.remove(namespace_column(&existing.timer.namespace), existing.timer.status);
    tally.journal.ended(id, Timestamp::from_micros(existing.timer.updated_at), existing.timer.status);
    tally.journal.began(id, Timestamp::from_micros(existing.timer.created_at));
    tally.journal.changed(id, revision);
    insert.run(new, texts, revision, tally)?;
    Ok(revision)
}

/// A new life for a timer that has ended, if it is still the one that its client has read.
pub struct Revive {
    new: NewTimer,
    texts: Texts,
    revision: u32,
}

impl Revive {
    pub fn new(changed: &Timer, now: Timestamp) -> Self {
        let definition = changed.definition.clone();
        let (texts, execute_at) = (Texts::of(&definition), changed.execute_at);
        let new = NewTimer { definition, execute_at, on_conflict: OnConflict::Replace, created_at: now };
        Self { new, texts, revision: changed.revision }
    }
}

impl Write for Revive {
    type Answer = Changed;
    const NAME: &'static str = "revive";

    fn rows(&self) -> usize {
        1
    }

    fn bytes(&self) -> usize {
        self.texts.bytes(&self.new.definition)
    }

    fn run(&self, connection: &Connection, tally: &mut Tally) -> Result<Changed, Failure> {
        let id = Id::of(self.new.definition.id);
        let Some(existing) = connection.prepare_cached(TIMER_BY_ID)?.query_row([id], found).optional()?.transpose()? else {
            return Ok(Changed::NotFound);
        };
        if existing.timer.status.after(Event::Revive).is_none() {
            return Ok(Changed::WrongStatus(existing.timer.into_timer()?));
        }
        if existing.timer.revision != i64::from(self.revision) {
            return Ok(Changed::StaleRevision(existing.timer.into_timer()?));
        }
        let mut insert = Insert::prepare(connection)?;
        revive(connection, &mut insert, &existing, &self.new, &self.texts, tally)?;
        read_back(connection, id).map(Changed::Done)
    }
}
