//! What is due, as light entries for the scheduler.

use domain::Timestamp;
use rusqlite::{Connection, params};
use store::{DueEntry, ShardCursor};

use crate::{
    failure::Failure,
    rows::{Id, from_column},
};

/// The minute orders coarsely and comes from the key; only inside a minute something is left to sort.
pub const DUE_FROM_START: &str = "SELECT at, id, destination FROM due WHERE shard = ?1 AND minute <= ?2 AND claim IS NULL AND at <= ?3 \
     ORDER BY minute, at, id LIMIT ?4";
pub const DUE_AFTER: &str = "SELECT at, id, destination FROM due WHERE shard = ?1 AND minute <= ?2 AND claim IS NULL AND at <= ?3 \
     AND minute >= ?5 AND (at, id) > (?6, ?7) ORDER BY minute, at, id LIMIT ?4";

pub fn due(connection: &Connection, from: &[ShardCursor], until: Timestamp, limit: usize) -> Result<Vec<DueEntry>, Failure> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut entries = Vec::new();
    for ShardCursor { shard, after } in from {
        let (minute, until) = (until.minute(), until.as_micros());
        let entry = |row: &rusqlite::Row<'_>| {
            Ok(DueEntry {
                at: Timestamp::from_micros(row.get(0)?),
                id: row.get::<_, Id>(1)?.timer(),
                destination: from_column(row.get(2)?),
            })
        };
        let mut statement = connection.prepare_cached(if after.is_some() { DUE_AFTER } else { DUE_FROM_START })?;
        let rows = match after {
            None => statement.query_map(params![shard.0, minute, until, limit], entry)?,
            Some((at, id)) => {
                statement.query_map(params![shard.0, minute, until, limit, at.minute(), at.as_micros(), Id::of(*id)], entry)?
            }
        };
        for row in rows {
            entries.push(row?);
        }
    }
    Ok(entries)
}
