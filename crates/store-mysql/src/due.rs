//! What is due, a page for each shard, in one statement.

use domain::{TimerId, Timestamp};
use sqlx::{AssertSqlSafe, Row, mysql::MySqlRow, types::Uuid};
use store::{DueEntry, ShardCursor};
use store_sql::{Call, sql};

use crate::{
    connector::Connector,
    failure::{Failure, Step},
    rows,
    session::Session,
};

pub(crate) const DUE_OF_SHARD: &str = sql!("sql/due_of_shard.sql");

/// Before every timer there can be.
pub const BEGINNING: Position = (i64::MIN, Uuid::nil());
/// No shard has this number: what fills a statement up finds nothing.
const NO_SHARD: i16 = -1;

/// When a row of `due` is due, and its id.
pub type Position = (i64, Uuid);

/// Asks each shard for what comes after a position, in one statement.
pub struct OfShards {
    /// The statement for one shard.
    pub part: &'static str,
    pub from: Vec<(i16, Position)>,
    pub until: i64,
    pub limit: i64,
    /// How often the statement asks for the limit.
    pub limits: usize,
}

impl OfShards {
    /// The rows of each shard in their order.
    pub async fn fetch(&self, session: &mut Session) -> Result<Vec<MySqlRow>, Failure> {
        // Filled up to a power of two, so that few different texts are prepared.
        let parts = self.from.len().next_power_of_two();
        let text = vec![self.part; parts].join(" UNION ALL ");
        let mut query = sqlx::query(AssertSqlSafe(text));
        let fill = std::iter::repeat((NO_SHARD, BEGINNING));
        for (shard, (at, id)) in self.from.iter().copied().chain(fill).take(parts) {
            query = query.bind(shard).bind(at).bind(id).bind(at).bind(self.until);
            for _ in 0..self.limits {
                query = query.bind(self.limit);
            }
        }
        query.fetch_all(session).await.or_not_done()
    }
}

pub struct Due(OfShards);

impl Due {
    pub fn new(from: &[ShardCursor], until: Timestamp, limit: usize) -> Self {
        let after = |(at, id): (Timestamp, TimerId)| (at.as_micros(), id.as_uuid());
        let position = |cursor: &ShardCursor| (cursor.shard.0.cast_signed(), cursor.after.map_or(BEGINNING, after));
        Self(OfShards {
            part: DUE_OF_SHARD,
            from: from.iter().map(position).collect(),
            until: until.as_micros(),
            limit: i64::try_from(limit).unwrap_or(i64::MAX),
            limits: 1,
        })
    }
}

impl Call<Connector> for Due {
    type Answer = Vec<DueEntry>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut Session) -> Result<Vec<DueEntry>, Failure> {
        if self.0.from.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.0.fetch(session).await?;
        let read = |row: &MySqlRow| Ok((row.try_get::<i16, _>("shard")?, entry(row)?));
        let mut rows = rows.iter().map(read).collect::<Result<Vec<_>, sqlx::Error>>().or_not_done()?;
        // The pages come in the order of the shards, only SQL does not promise it. Sorting what is sorted costs next to nothing.
        let place = |shard: i16| self.0.from.iter().position(|(wanted, _)| *wanted == shard);
        rows.sort_by_key(|(shard, entry)| (place(*shard), entry.at, entry.id));
        Ok(rows.into_iter().map(|(_, entry)| entry).collect())
    }
}

/// The entry in a row with `at`, `id` and `destination`.
pub fn entry(row: &MySqlRow) -> Result<DueEntry, sqlx::Error> {
    Ok(DueEntry {
        at: Timestamp::from_micros(row.try_get("at")?),
        id: rows::id(row)?,
        destination: rows::destination(row.try_get("destination")?),
    })
}
