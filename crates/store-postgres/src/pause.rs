//! Taking a timer out of what is due, and putting it back.

use domain::{Event, Missed, Pause as Paused, Status, Timer, TimerId, Timestamp};
use sqlx::{Connection, PgConnection};
use store::{BulkStep, Changed, Terms};
use store_sql::Call;

use crate::{
    change_all::{Rows, apply},
    conflict::{Held, hold},
    connector::Connector,
    failure::{Failure, Step},
    rows::text_column,
};

pub struct Pause {
    pub id: TimerId,
    pub expected: Option<u32>,
    pub note: Option<String>,
    pub now: Timestamp,
    pub shards: u16,
}

impl Call<Connector> for Pause {
    type Answer = Changed;
    const WRITES: bool = true;
    const LEAVES_A_TRANSACTION: bool = true;

    /// Holds the row in `due` first: a claim passes it over, or has it already.
    async fn run(&self, session: &mut PgConnection) -> Result<Changed, Failure> {
        let mut transaction = session.begin().await.or_not_done()?;
        let held = match hold_for(&mut transaction, self.id, Event::Pause, self.expected, self.shards).await? {
            Ok(held) => held,
            Err(refusal) => return Ok(refusal),
        };
        let note = self.note.as_deref().map(text_column);
        let rows = Rows::of(self.id, held.at, self.shards);
        apply(&mut transaction, BulkStep::Pause, &rows, note.as_deref(), self.now).await?;
        transaction.commit().await.or_unknown()?;
        let pause = Some(Paused { at: self.now, note });
        let revision = held.timer.revision.saturating_add(1);
        Ok(Changed::Done(Timer { status: Status::Paused, updated_at: self.now, revision, pause, ..held.timer }))
    }
}

pub struct Resume {
    pub id: TimerId,
    pub expected: Option<u32>,
    pub missed: Missed,
    pub now: Timestamp,
    pub shards: u16,
}

impl Call<Connector> for Resume {
    type Answer = Changed;
    const WRITES: bool = true;
    const LEAVES_A_TRANSACTION: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Changed, Failure> {
        let mut transaction = session.begin().await.or_not_done()?;
        let held = match hold_for(&mut transaction, self.id, Event::Resume, self.expected, self.shards).await? {
            Ok(held) => held,
            Err(refusal) => return Ok(refusal),
        };
        let at = held.at.map_or(self.now, Timestamp::from_micros);
        let terms = Some(Terms::of(&held.timer.definition.options));
        let step = store::resume(at, self.missed, terms, self.now);
        apply(&mut transaction, step, &Rows::of(self.id, held.at, self.shards), None, self.now).await?;
        transaction.commit().await.or_unknown()?;
        let timer = Timer { pause: None, updated_at: self.now, ..held.timer };
        Ok(Changed::Done(match step {
            BulkStep::End { status, error } => {
                Timer { status, last_error: error.map(str::to_owned).or(timer.last_error), ..timer }
            }
            step => {
                let let_expire = if let BulkStep::LetExpire { error, .. } = step { Some(error.to_owned()) } else { None };
                let (revision, last_error) = (timer.revision.saturating_add(1), let_expire.or(timer.last_error));
                Timer { status: Status::Pending, revision, last_error, ..timer }
            }
        }))
    }
}

/// Locks the timer, if its status allows the event and it has the expected revision; otherwise says why not.
async fn hold_for(
    session: &mut PgConnection,
    id: TimerId,
    event: Event,
    expected: Option<u32>,
    shards: u16,
) -> Result<Result<Held, Changed>, Failure> {
    let Some(held) = hold(session, id, shards).await? else { return Ok(Err(Changed::NotFound)) };
    if held.timer.status.after(event).is_none() {
        return Ok(Err(Changed::WrongStatus(held.timer)));
    }
    if expected.is_some_and(|expected| expected != held.timer.revision) {
        return Ok(Err(Changed::StaleRevision(held.timer)));
    }
    Ok(Ok(held))
}
