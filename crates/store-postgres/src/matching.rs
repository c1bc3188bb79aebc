//! Finding timers by what they are like, in the order of their ids.
//!
//! ```text
//!   walk: the next ids, as they come, each looked at ──▶ the page is full, or there are no more ──▶ answered
//!                                                    └─▶ else search: all that match, then the first of them
//! ```
//!
//! Where much of what follows matches, the walk reads a page and no more. Where little does, it ends after a few ids, and the
//! server finds what matches from whichever side has least: what is due, what has ended, or a namespace. Left to one statement,
//! it would have to guess how matching timers lie among the others, and a wrong guess reads the whole table for each page.

use domain::{JsonText, Status, TimerId};
use sqlx::{AssertSqlSafe, PgConnection, Row, postgres::PgRow, types::Uuid};
use store::Filter;
use store_sql::{Call, sql};

use crate::{
    failure::{Failure, Step},
    read::{definition_conditions, key_prefix_column, namespace_column, whereabouts},
    rows,
    sessions::Sessions,
};

/// For each timer that is wanted, so many are looked at on a walk.
const WALK_FACTOR: usize = 8;

/// Timers that match: those after an id, at most so many.
pub struct Matching {
    pub filter: Filter,
    pub after: Option<TimerId>,
    pub limit: usize,
    pub shards: u16,
}

impl Matching {
    /// Parameters: the filter's two, the id before, the limit, how many to look at.
    pub(crate) fn walk(&self) -> String {
        let (after, conditions) = (self.is_after(), definition_conditions(&self.filter));
        // Asked one by one: a join would be planned by how many are thought to match.
        let stands = match self.filter.status {
            None => "true".to_owned(),
            Some(Status::Pending) => self.is_due_and("d.claim IS NULL"),
            Some(Status::Executing) => self.is_due_and("d.claim IS NOT NULL"),
            Some(ended) => format!("(SELECT o.status = '{ended}' FROM outcome o WHERE o.id = s.id) IS TRUE"),
        };
        format!(
            "WITH stretch AS MATERIALIZED (
                SELECT f.id, coalesce(f.due_at, f.execute_at) AS due_at, (true{conditions}) AS fits FROM definition f WHERE {after} ORDER BY f.id LIMIT $5
            ), found AS MATERIALIZED (
                SELECT s.id FROM stretch s WHERE s.fits AND {stands} ORDER BY s.id LIMIT $4
            )
            SELECT f.id, w.walked
            FROM (SELECT count(*) AS walked FROM stretch) w LEFT JOIN found f ON true
            ORDER BY f.id"
        )
    }

    fn is_due_and(&self, condition: &str) -> String {
        format!(
            "(SELECT {condition} FROM due d
              WHERE d.shard = ((get_byte(uuid_send(s.id), 14) * 256 + get_byte(uuid_send(s.id), 15)) % {})::smallint
                AND d.at = s.due_at AND d.id = s.id) IS TRUE",
            self.shards
        )
    }

    /// Parameters: the filter's two, the id before, the limit. `OFFSET 0` keeps the order out of how they are found.
    pub(crate) fn search(&self) -> String {
        let (whereabouts, after) = (whereabouts(&self.filter, true), self.is_after());
        let conditions = definition_conditions(&self.filter);
        format!(
            "SELECT m.id
            FROM (SELECT f.id FROM {whereabouts} AND {after}{conditions} OFFSET 0) m
            ORDER BY m.id LIMIT $4"
        )
    }

    const fn is_after(&self) -> &'static str {
        if self.after.is_some() { "f.id > $3" } else { "$3::uuid IS NULL" }
    }
}

impl Call<Sessions> for Matching {
    type Answer = Vec<TimerId>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<Vec<TimerId>, Failure> {
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let looked_at = i64::try_from(self.limit.saturating_mul(WALK_FACTOR)).unwrap_or(i64::MAX);
        let walked = sqlx::query(AssertSqlSafe(self.walk()))
            .bind(namespace_column(&self.filter))
            .bind(key_prefix_column(&self.filter))
            .bind(self.after.map(TimerId::as_uuid))
            .bind(limit)
            .bind(looked_at)
            .fetch_all(&mut *session)
            .await
            .or_not_done()?;
        let (found, is_all) = walk_result(&walked, looked_at).or_not_done()?;
        if is_all || found.len() >= self.limit {
            return Ok(found);
        }
        let rows = sqlx::query(AssertSqlSafe(self.search()))
            .bind(namespace_column(&self.filter))
            .bind(key_prefix_column(&self.filter))
            .bind(self.after.map(TimerId::as_uuid))
            .bind(limit)
            .fetch_all(session)
            .await
            .or_not_done()?;
        rows.iter().map(rows::id).collect::<Result<_, _>>().or_not_done()
    }
}

/// What a walk found, and whether it came to the end. There is a row in any case: without an id when nothing was found.
fn walk_result(rows: &[PgRow], looked_at: i64) -> Result<(Vec<TimerId>, bool), sqlx::Error> {
    let mut found = Vec::with_capacity(rows.len());
    let mut is_all = false;
    for row in rows {
        is_all = row.try_get::<i64, _>("walked")? < looked_at;
        if row.try_get::<Option<Uuid>, _>("id")?.is_some() {
            found.push(rows::id(row)?);
        }
    }
    Ok((found, is_all))
}

pub(crate) const METADATA: &str = sql!("sql/metadata.sql");

/// The metadata of timers, as far as it takes no more than so many bytes.
pub struct Metadata {
    ids: Vec<Uuid>,
    bytes_max: i64,
}

impl Metadata {
    pub fn new(ids: &[TimerId], bytes_max: usize) -> Self {
        Self { ids: ids.iter().copied().map(TimerId::as_uuid).collect(), bytes_max: i64::try_from(bytes_max).unwrap_or(i64::MAX) }
    }
}

impl Call<Sessions> for Metadata {
    type Answer = Vec<Option<JsonText>>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<Self::Answer, Failure> {
        let query = sqlx::query_scalar(METADATA).bind(&self.ids).bind(self.bytes_max);
        let found: Vec<Option<String>> = query.fetch_all(session).await.or_not_done()?;
        Ok(found.into_iter().map(|metadata| metadata.map(JsonText::trusted)).collect())
    }
}
