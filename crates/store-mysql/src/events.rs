//! What happened to timers: read from their rows and from the journal.
//!
//! ```text
//!   generation   1   2   3   4         a transaction that records events locks the latest row, shared, until its end
//!                ▲           ▲
//!                open        next      a watermark adds a row: all that began before holds an earlier one
//! ```

use domain::{Attempt, TimerId, Timestamp};
use serde::Serialize;
use sqlx::{AssertSqlSafe, Row as _, mysql::MySqlRow};
use store::{EventPage, Happened, Read, Unreadable, Watermark};
use store_sql::{Call, sql};

use crate::{
    attempts::attempt,
    connector::Connector,
    dialect::Dialect,
    failure::{Failure, Step},
    rows::{self, Hex},
    session::Session,
    tidb,
    transaction::{Holds, NOW, Transaction},
};

pub(crate) const NEW_GENERATION: &str = sql!("sql/new_generation.sql");
pub(crate) const PAST_GENERATIONS: &str = sql!("sql/past_generations.sql");
pub(crate) const END_GENERATIONS: &str = sql!("sql/end_generations.sql");
pub(crate) const EVENTS: &str = sql!("sql/events.sql");
pub(crate) const ATTEMPTS_AT: &str = sql!("sql/attempts_at.sql");
pub(crate) const FORGET_EVENTS: &str = sql!("sql/forget_events.sql");

const SOURCES: usize = 3;

/// Which transactions that record events are under way.
pub struct ReadWatermark;

impl Call<Connector> for ReadWatermark {
    type Answer = Watermark;
    const WRITES: bool = false;

    /// The time first, then the new generation: a transaction that began before that time holds an earlier one. The earlier ones are
    /// looked at only when the new one is committed, so that there is always one that can be locked.
    async fn run(&self, session: &mut Session) -> Result<Watermark, Failure> {
        if session.dialect() == Dialect::Tidb {
            return tidb_watermark(session).await;
        }
        let mut transaction = Transaction::begin(session, Holds::default()).await?;
        let at = transaction.now;
        let begun = sqlx::query(NEW_GENERATION).execute(transaction.session()).await.or_not_done()?;
        transaction.commit().await?;
        let next = begun.last_insert_id();

        let mut transaction = Transaction::begin(session, Holds::default()).await?;
        let over =
            sqlx::query_scalar::<_, i64>(PAST_GENERATIONS).bind(next).fetch_all(transaction.session()).await.or_not_done()?;
        if !over.is_empty() {
            sqlx::query(END_GENERATIONS)
                .bind(transaction.session().given(&over).await?)
                .execute(transaction.session())
                .await
                .or_not_done()?;
        }
        let open: Option<i64> =
            sqlx::query_scalar("SELECT MIN(n) FROM generation").fetch_one(transaction.session()).await.or_not_done()?;
        transaction.commit().await?;
        Ok(Watermark { at: Timestamp::from_micros(at), open: open.map_or(next, i64::cast_unsigned).min(next), next })
    }
}

/// The time first: whatever began before it has ended once each stripe was locked.
async fn tidb_watermark(session: &mut Session) -> Result<Watermark, Failure> {
    let at: i64 = sqlx::raw_sql(NOW).fetch_one(&mut *session).await.or_not_done()?.try_get("now").or_not_done()?;
    sqlx::raw_sql(AssertSqlSafe(tidb::lock_each())).execute(session).await.or_not_done()?;
    let next = at.unsigned_abs();
    Ok(Watermark { at: Timestamp::from_micros(at), open: next, next })
}

pub struct Events {
    pub after: Timestamp,
    pub until: Timestamp,
    pub limit: usize,
}

impl Call<Connector> for Events {
    type Answer = EventPage;
    const WRITES: bool = false;

    async fn run(&self, session: &mut Session) -> Result<EventPage, Failure> {
        let mut limit = self.limit.max(1);
        loop {
            let mut query = sqlx::query(EVENTS);
            for _ in 0..SOURCES {
                query = query.bind(self.after.as_micros()).bind(self.until.as_micros());
                query = query.bind(i64::try_from(limit).unwrap_or(i64::MAX));
            }
            let rows = query.fetch_all(&mut *session).await.or_not_done()?;
            let mut sources: [Vec<Read>; SOURCES] = Default::default();
            for row in &rows {
                let source = usize::try_from(row.try_get::<i64, _>("source").or_not_done()?).unwrap_or_default();
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

fn happened(row: &MySqlRow) -> Result<(TimerId, Happened), Unreadable> {
    let unreadable = |error: sqlx::Error| Unreadable(error.to_string());
    let what = Happened::from_columns(
        row.try_get("kind").map_err(unreadable)?,
        row.try_get("moment").map_err(unreadable)?,
        row.try_get("seq").map_err(unreadable)?,
        row.try_get("status").map_err(unreadable)?,
    )?;
    Ok((rows::id(row).map_err(unreadable)?, what))
}

/// Some of the attempts that are remembered, each by its timer and number.
pub struct AttemptsAt(pub Vec<(TimerId, i64)>);

#[derive(Serialize)]
struct Wanted {
    place: usize,
    id: Hex,
    seq: i64,
}

impl Call<Connector> for AttemptsAt {
    type Answer = Vec<Option<Attempt>>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut Session) -> Result<Self::Answer, Failure> {
        let wanted = |(place, (id, seq)): (usize, &(TimerId, i64))| Wanted { place, id: Hex::from(*id), seq: *seq };
        let wanted: Vec<Wanted> = self.0.iter().enumerate().map(wanted).collect();
        let rows = sqlx::query(ATTEMPTS_AT).bind(session.given(&wanted).await?).fetch_all(session).await.or_not_done()?;
        let mut attempts = vec![None; self.0.len()];
        for row in &rows {
            let place: i64 = row.try_get("place").or_not_done()?;
            if let Some(wanted) = usize::try_from(place).ok().and_then(|place| attempts.get_mut(place)) {
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

    async fn run(&self, session: &mut Session) -> Result<usize, Failure> {
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let query = sqlx::query(FORGET_EVENTS).bind(self.before.as_micros()).bind(limit);
        let gone = query.execute(session).await.or_unknown()?.rows_affected();
        Ok(usize::try_from(gone).unwrap_or_default())
    }
}
