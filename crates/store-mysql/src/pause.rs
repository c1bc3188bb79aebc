//! Taking a timer out of what is due, and putting it back.

use domain::{Event, Missed, Pause as Paused, Status, Timer, TimerId, Timestamp};
use store::{BulkStep, Changed, Terms};
use store_sql::Call;

use crate::{
    change::hold_for,
    change_all::{Rows, apply},
    connector::Connector,
    failure::Failure,
    session::Session,
    transaction::Transaction,
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

    /// Holds the row in `due` first: a claim passes it over, or has it already.
    async fn run(&self, session: &mut Session) -> Result<Changed, Failure> {
        let mut transaction = Transaction::recording(session).await?;
        let held = match hold_for(&mut transaction, self.id, Event::Pause, self.expected, self.shards).await? {
            Ok(held) => held,
            Err(refusal) => return transaction.rollback().await.map(|()| refusal),
        };
        let rows = Rows::of(&held, 0, self.shards);
        apply(&mut transaction, BulkStep::Pause, &rows, self.note.as_deref(), self.now)?;
        transaction.commit().await?;
        let pause = Some(Paused { at: self.now, note: self.note.clone() });
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

    async fn run(&self, session: &mut Session) -> Result<Changed, Failure> {
        let mut transaction = Transaction::recording(session).await?;
        let held = match hold_for(&mut transaction, self.id, Event::Resume, self.expected, self.shards).await? {
            Ok(held) => held,
            Err(refusal) => return transaction.rollback().await.map(|()| refusal),
        };
        let at = held.at.map_or(self.now, Timestamp::from_micros);
        let terms = Some(Terms::of(&held.timer.definition.options));
        let step = store::resume(at, self.missed, terms, self.now);
        let next = if let BulkStep::Resume { at } | BulkStep::LetExpire { at, .. } = step { at.as_micros() } else { 0 };
        apply(&mut transaction, step, &Rows::of(&held, next, self.shards), None, self.now)?;
        transaction.commit().await?;
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
