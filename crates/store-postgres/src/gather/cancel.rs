use std::collections::HashMap;

use domain::{Event, Status, Timer, TimerId, Timestamp};
use sqlx::{PgConnection, postgres::PgRow};
use store::{Changed, Unreadable};
use store_sql::{Call, ExistingTimer, Row, Standing, sql};

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

    /// The timers that are canceled now. `None` for one that cannot be read.
    async fn cancel(&self, session: &mut PgConnection) -> Result<HashMap<TimerId, Option<Timer>>, Failure> {
        let rows = sqlx::query(CANCEL_FREE)
            .bind(self.ids.iter().map(|id| id.as_uuid()).collect::<Vec<_>>())
            .bind(&self.shard_columns)
            .bind(self.nows.iter().map(|now| now.as_micros()).collect::<Vec<_>>())
            .fetch_all(session)
            .await
            .or_unknown()?;
        rows.iter().map(|row| Ok((rows::id(row).or_unknown()?, canceled(row).ok()))).collect()
    }

    /// The timers that the statement passed over, or that are not there.
    async fn read_rest(
        &self,
        session: &mut PgConnection,
        canceled: &HashMap<TimerId, Option<Timer>>,
    ) -> Result<HashMap<TimerId, Result<ExistingTimer, Unreadable>>, Failure> {
        let rest: Vec<_> = self.ids.iter().copied().filter(|id| !canceled.contains_key(id)).collect();
        let existing = Read::new(rest, self.shards).run(session).await;
        existing.map_err(|failure| failure.after_a_commit_if(!canceled.is_empty()))
    }
}

impl Call<Connector> for CancelFree {
    type Answer = Vec<Option<Changed>>;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Self::Answer, Failure> {
        let mut canceled = self.cancel(session).await?;
        let mut rest = self.read_rest(session, &canceled).await?;
        let answer = |id| match (canceled.remove(id), rest.remove(id)) {
            (Some(timer), _) => timer.map(Changed::Done),
            (None, None) => Some(Changed::NotFound),
            (None, Some(Ok(existing))) if existing.timer.status.after(Event::Cancel).is_none() => {
                Some(Changed::WrongStatus(existing.timer))
            }
            // What cannot be read, or can still be canceled, is for the caller to find out.
            (None, Some(_)) => None,
        };
        Ok(self.ids.iter().map(answer).collect())
    }
}

fn canceled(row: &PgRow) -> Result<Timer, Failure> {
    let fields = Fields(row);
    let standing = Standing {
        status: Status::Canceled,
        attempt: fields.optional_number("attempt")?.unwrap_or_default(),
        last_error: fields.optional_text("last_error")?.map(str::to_owned),
        executed_at: None,
        finished_at: fields.optional_number("now")?,
        pause: None,
    };
    store_sql::timer(fields.id()?, &fields, standing)
}
