use std::collections::HashMap;

use domain::{Event, Status, Timer, TimerId, Timestamp};
use sqlx::{PgConnection, Row, postgres::PgRow};
use store::Changed;
use store_sql::{Call, ExistingTimer, sql};

use crate::{
    connector::Connector,
    failure::{Failure, Step},
    read::Read,
    rows::{self, shard_column},
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

    async fn cancel(&self, session: &mut PgConnection) -> Result<HashMap<TimerId, PgRow>, Failure> {
        let rows = sqlx::query(CANCEL_FREE)
            .bind(self.ids.iter().map(|id| id.as_uuid()).collect::<Vec<_>>())
            .bind(&self.shard_columns)
            .bind(self.nows.iter().map(|now| now.as_micros()).collect::<Vec<_>>())
            .fetch_all(session)
            .await
            .or_unknown()?;
        rows.into_iter().map(|row| Ok((rows::id(&row).or_unknown()?, row))).collect()
    }
}

impl Call<Connector> for CancelFree {
    type Answer = Vec<Option<Changed>>;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Self::Answer, Failure> {
        let canceled = self.cancel(session).await?;
        // Read afterwards: the statement may have met a timer whose new content it does not see.
        let existing = Read::new(self.ids.clone(), self.shards).run(session).await;
        let mut existing = existing.map_err(|failure| failure.after_a_commit_if(!canceled.is_empty()))?;
        let answer = |(id, now): (&TimerId, &Timestamp)| match (canceled.get(id), existing.remove(id)) {
            (Some(row), Some(Ok(existing))) => after_cancel(row, existing, *now).map(Some),
            (None, None) => Ok(Some(Changed::NotFound)),
            (None, Some(Ok(existing))) if existing.timer.status.after(Event::Cancel).is_none() => {
                Ok(Some(Changed::WrongStatus(existing.timer)))
            }
            // What cannot be read, or was canceled and removed at once, is for the caller to find out.
            _ => Ok(None),
        };
        let answers: Result<_, Failure> = self.ids.iter().zip(&self.nows).map(answer).collect();
        answers.map_err(|failure| failure.after_a_commit_if(!canceled.is_empty()))
    }
}

/// Whatever happened to it since, this is what the cancel made of it.
fn after_cancel(row: &PgRow, existing: ExistingTimer, now: Timestamp) -> Result<Changed, Failure> {
    Ok(Changed::Done(Timer {
        status: Status::Canceled,
        attempt: u32::try_from(row.try_get::<i32, _>("attempt").or_unknown()?).unwrap_or(0),
        last_error: row.try_get("last_error").or_unknown()?,
        executed_at: None,
        updated_at: now,
        pause: None,
        ..existing.timer
    }))
}
