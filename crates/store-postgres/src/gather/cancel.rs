use std::collections::HashMap;

use domain::{Event, Status, Timer, TimerId, Timestamp};
use sqlx::{PgConnection, postgres::PgRow};
use store::Changed;
use store_sql::{Call, Row, Standing, sql};

use crate::{
    connector::Connector,
    failure::{Failure, Step},
    read::Read,
    rows::{self, Fields, shard_column},
};

pub(crate) const CANCEL_FREE: &str = sql!("../sql/cancel_free.sql");

/// Cancels timers that are pending and free. Each id comes once. `None` for one that it passed over.
pub struct CancelFree {
    ids: Vec<TimerId>,
    shard_columns: Vec<i16>,
    nows: Vec<Timestamp>,
    shards: u16,
}

impl CancelFree {
    pub fn new(wanted: impl Iterator<Item = (TimerId, Timestamp)>, shards: u16) -> Self {
        let (ids, nows): (Vec<_>, Vec<_>) = wanted.unzip();
        Self { shard_columns: ids.iter().map(|id| shard_column(*id, shards)).collect(), ids, nows, shards }
    }

    /// The rows of the timers that are canceled now.
    async fn cancel(&self, session: &mut PgConnection) -> Result<HashMap<TimerId, CanceledRow>, Failure> {
        let rows = sqlx::query(CANCEL_FREE)
            .bind(self.ids.iter().map(|id| id.as_uuid()).collect::<Vec<_>>())
            .bind(&self.shard_columns)
            .bind(self.nows.iter().map(|now| now.as_micros()).collect::<Vec<_>>())
            .fetch_all(session)
            .await
            .or_unknown()?;
        let canceled = |row| Ok((rows::id(&row).or_unknown()?, CanceledRow::of(row).map_err(Failure::after_a_commit)?));
        rows.into_iter().map(canceled).collect()
    }
}

impl Call<Connector> for CancelFree {
    type Answer = Vec<Option<Changed>>;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Self::Answer, Failure> {
        let canceled = self.cancel(session).await?;
        let is_read = |id: &TimerId| canceled.get(id).is_some_and(|canceled| canceled.is_small);
        let unread = self.ids.iter().copied().filter(|id| !is_read(id)).collect();
        let existing = Read::new(unread, self.shards).run(session).await;
        let mut existing = existing.map_err(|failure| failure.after_a_commit_if(!canceled.is_empty()))?;
        let answer = |id| match (canceled.get(id), existing.remove(id)) {
            (Some(canceled), None) if canceled.is_small => canceled.timer().ok().map(Changed::Done),
            (Some(canceled), Some(Ok(existing))) => Some(Changed::Done(canceled.change(existing.timer))),
            (None, None) => Some(Changed::NotFound),
            (None, Some(Ok(existing))) if existing.timer.status.after(Event::Cancel).is_none() => {
                Some(Changed::WrongStatus(existing.timer))
            }
            // What cannot be read, was canceled and removed at once, or can still be canceled is for the caller to find out.
            _ => None,
        };
        Ok(self.ids.iter().map(answer).collect())
    }
}

/// What the statement says of a timer that it has canceled.
struct CanceledRow {
    row: PgRow,
    /// Whether it was read along.
    is_small: bool,
    attempt: u32,
    last_error: Option<String>,
    now: Timestamp,
}

impl CanceledRow {
    fn of(row: PgRow) -> Result<Self, Failure> {
        let fields = Fields(&row);
        Ok(Self {
            is_small: fields.is("is_small")?,
            attempt: u32::try_from(fields.number("attempt")?).unwrap_or(0),
            last_error: fields.optional_text("last_error")?.map(str::to_owned),
            now: fields.time("now")?,
            row,
        })
    }

    /// The timer that was read along.
    fn timer(&self) -> Result<Timer, Failure> {
        let fields = Fields(&self.row);
        let standing = Standing {
            status: Status::Canceled,
            attempt: i64::from(self.attempt),
            last_error: self.last_error.clone(),
            executed_at: None,
            finished_at: Some(self.now.as_micros()),
            pause: None,
        };
        store_sql::timer(fields.id()?, &fields, standing)
    }

    /// Whatever happened to it since, this is what the cancel made of it.
    fn change(&self, existing: Timer) -> Timer {
        Timer {
            status: Status::Canceled,
            attempt: self.attempt,
            last_error: self.last_error.clone(),
            executed_at: None,
            updated_at: self.now,
            pause: None,
            ..existing
        }
    }
}
