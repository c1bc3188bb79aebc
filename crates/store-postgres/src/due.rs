//! What is due, a page for each shard, in one statement.

use domain::{TimerId, Timestamp};
use sqlx::{PgConnection, Row, postgres::PgRow, types::Uuid};
use store::{DueEntry, ShardCursor};
use store_sql::{Call, sql};

use crate::{
    connector::Connector,
    failure::{Failure, Step},
    rows,
};

pub(crate) const DUE: &str = sql!("sql/due.sql");

/// Before every timer there can be.
pub const BEGINNING: (i64, Uuid) = (i64::MIN, Uuid::nil());

pub struct Due {
    shards: Vec<i16>,
    ats: Vec<i64>,
    ids: Vec<Uuid>,
    until: Timestamp,
    limit: i64,
}

impl Due {
    pub fn new(from: &[ShardCursor], until: Timestamp, limit: usize) -> Self {
        let mut due = Self {
            shards: Vec::with_capacity(from.len()),
            ats: Vec::with_capacity(from.len()),
            ids: Vec::with_capacity(from.len()),
            until,
            limit: i64::try_from(limit).unwrap_or(i64::MAX),
        };
        for cursor in from {
            let after = |(at, id): (Timestamp, TimerId)| (at.as_micros(), id.as_uuid());
            let (at, id) = cursor.after.map_or(BEGINNING, after);
            due.shards.push(cursor.shard.0.cast_signed());
            due.ats.push(at);
            due.ids.push(id);
        }
        due
    }
}

impl Call<Connector> for Due {
    type Answer = Vec<DueEntry>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<Vec<DueEntry>, Failure> {
        let mut rows = sqlx::query(DUE)
            .bind(&self.shards)
            .bind(&self.ats)
            .bind(&self.ids)
            .bind(self.until.as_micros())
            .bind(self.limit)
            .fetch_all(session)
            .await
            .or_not_done()?
            .iter()
            .map(|row| Ok((row.try_get::<i16, _>("shard")?, entry(row)?)))
            .collect::<Result<Vec<_>, sqlx::Error>>()
            .or_not_done()?;
        // The pages come in the order of the shards, only SQL does not promise it. Sorting what is sorted costs next to nothing.
        rows.sort_by_key(|(shard, _)| self.shards.iter().position(|wanted| wanted == shard));
        Ok(rows.into_iter().map(|(_, entry)| entry).collect())
    }
}

/// The entry in a row with `at`, `id` and `destination`.
pub fn entry(row: &PgRow) -> Result<DueEntry, sqlx::Error> {
    Ok(DueEntry {
        at: Timestamp::from_micros(row.try_get("at")?),
        id: rows::id(row)?,
        destination: rows::destination(row.try_get("destination")?),
    })
}
