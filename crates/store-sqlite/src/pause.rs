//! Taking a timer out of what is due, and putting it back.

use domain::{Event, Missed, TimerId, Timestamp};
use rusqlite::Connection;
use store::{BulkStep, Changed};

use crate::{failure::Failure, read::read_back, rows::Id, step::Found, tally::Tally, writer::Write};

pub struct Pause {
    pub id: TimerId,
    pub expected: Option<u32>,
    pub note: Option<String>,
    pub now: Timestamp,
}

impl Write for Pause {
    type Answer = Changed;
    const NAME: &'static str = "pause";

    fn rows(&self) -> usize {
        1
    }

    fn run(&self, connection: &Connection, tally: &mut Tally) -> Result<Changed, Failure> {
        let found = match allowed(connection, self.id, Event::Pause, self.expected)? {
            Ok(found) => found,
            Err(refusal) => return Ok(refusal),
        };
        found.apply(connection, BulkStep::Pause, self.note.as_deref(), self.now, tally)?;
        read_back(connection, Id::of(self.id)).map(Changed::Done)
    }
}

pub struct Resume {
    pub id: TimerId,
    pub expected: Option<u32>,
    pub missed: Missed,
    pub now: Timestamp,
}

impl Write for Resume {
    type Answer = Changed;
    const NAME: &'static str = "resume";

    fn rows(&self) -> usize {
        1
    }

    fn run(&self, connection: &Connection, tally: &mut Tally) -> Result<Changed, Failure> {
        let found = match allowed(connection, self.id, Event::Resume, self.expected)? {
            Ok(found) => found.with_terms(connection)?,
            Err(refusal) => return Ok(refusal),
        };
        let at = found.standing.at.unwrap_or(self.now);
        let step = store::resume(at, self.missed, found.standing.terms, self.now);
        found.apply(connection, step, None, self.now, tally)?;
        read_back(connection, Id::of(self.id)).map(Changed::Done)
    }
}

/// The timer, if its status allows the event and it has the expected revision; otherwise why not.
fn allowed(connection: &Connection, id: TimerId, event: Event, expected: Option<u32>) -> Result<Result<Found, Changed>, Failure> {
    let Some(found) = Found::by_id(connection, id)? else { return Ok(Err(Changed::NotFound)) };
    if found.standing.status.after(event).is_none() {
        return read_back(connection, Id::of(id)).map(Changed::WrongStatus).map(Err);
    }
    if expected.is_some_and(|expected| expected != found.standing.revision) {
        return read_back(connection, Id::of(id)).map(Changed::StaleRevision).map(Err);
    }
    Ok(Ok(found))
}
