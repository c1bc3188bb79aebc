//! What happened to timers: read from their rows and from the journal, which triggers write (see the migration `events`).

use domain::{Attempt, TimerId, Timestamp};
use sqlx::{PgConnection, Row, postgres::PgRow, types::Uuid};
use store::{EventPage, Happened, Read, Unreadable, Watermark};
use store_sql::{Call, sql};

use crate::{
    attempts::attempt,
    connector::Connector,
    failure::{Failure, Step},
    rows,
};

pub(crate) const WATERMARK: &str = sql!("sql/watermark.sql");
pub(crate) const EVENTS: &str = sql!("sql/events.sql");
pub(crate) const ATTEMPTS_AT: &str = sql!("sql/attempts_at.sql");
pub(crate) const FORGET_EVENTS: &str = sql!("sql/forget_events.sql");

const SOURCES: usize = 3;

/// Which transactions are under way, those of other databases on the same server included.
pub struct ReadWatermark;

impl Call<Connector> for ReadWatermark {
    type Answer = Watermark;
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<Watermark, Failure> {
        let row = sqlx::query(WATERMARK).fetch_one(session).await.or_not_done()?;
        let number = |column| row.try_get::<i64, _>(column).map(i64::cast_unsigned).or_not_done();
        Ok(Watermark {
            at: Timestamp::from_micros(row.try_get("at").or_not_done()?),
            open: number("open")?,
            next: number("next")?,
        })
    }
}

pub struct Events {
    pub after: Timestamp,
    pub until: Timestamp,
    pub limit: usize,
}

impl Call<Connector> for Events {
    type Answer = EventPage;
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<EventPage, Failure> {
        let mut limit = self.limit.max(1);
        loop {
            let rows = sqlx::query(EVENTS)
                .bind(self.after.as_micros())
                .bind(self.until.as_micros())
                .bind(i64::try_from(limit).unwrap_or(i64::MAX))
                .fetch_all(&mut *session)
                .await
                .or_not_done()?;
            let mut sources: [Vec<Read>; SOURCES] = Default::default();
            for row in &rows {
                let source = usize::try_from(row.try_get::<i32, _>("source").or_not_done()?).unwrap_or_default();
                let position = Timestamp::from_micros(row.try_get("position").or_not_done()?);
                sources[source % SOURCES].push(Read::of(position, happened(row)));
            }
            match EventPage::merge(sources, self.until, limit) {
                Some(page) => return Ok(page),
                None => limit = limit.saturating_mul(2),
            }
        }
    }
}

fn happened(row: &PgRow) -> Result<(TimerId, Happened), Unreadable> {
    let unreadable = |error: sqlx::Error| Unreadable(error.to_string());
    let what = Happened::from_columns(
        row.try_get("kind").map_err(unreadable)?,
        row.try_get("moment").map_err(unreadable)?,
        row.try_get("seq").map_err(unreadable)?,
        row.try_get("status").map_err(unreadable)?,
    )?;
    Ok((rows::id(row).map_err(unreadable)?, what))
}

pub struct AttemptsAt {
    ids: Vec<Uuid>,
    seqs: Vec<i64>,
}

impl AttemptsAt {
    pub fn new(of: &[(TimerId, i64)]) -> Self {
        Self { ids: of.iter().map(|(id, _)| id.as_uuid()).collect(), seqs: of.iter().map(|(_, seq)| *seq).collect() }
    }
}

impl Call<Connector> for AttemptsAt {
    type Answer = Vec<Option<Attempt>>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<Self::Answer, Failure> {
        let rows = sqlx::query(ATTEMPTS_AT).bind(&self.ids).bind(&self.seqs).fetch_all(session).await.or_not_done()?;
        let mut attempts = vec![None; self.ids.len()];
        for row in &rows {
            let place: i64 = row.try_get("n").or_not_done()?;
            let place = usize::try_from(place - 1).unwrap_or(usize::MAX);
            if let Some(wanted) = attempts.get_mut(place) {
                *wanted = Some(attempt(row)?);
            }
        }
        Ok(attempts)
    }
}

pub struct Forget {
    pub before: Timestamp,
    pub limit: usize,
}

impl Call<Connector> for Forget {
    type Answer = usize;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<usize, Failure> {
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let query = sqlx::query_scalar(FORGET_EVENTS).bind(self.before.as_micros()).bind(limit);
        let gone: i64 = query.fetch_one(session).await.or_unknown()?;
        Ok(usize::try_from(gone).unwrap_or_default())
    }
}
