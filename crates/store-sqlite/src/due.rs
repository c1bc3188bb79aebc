//! What is due, as light entries for the scheduler.

use domain::{TimerId, Timestamp};
use rusqlite::{Connection, Row, params};
use store::{DueEntry, ShardCursor};
use store_sql::{column, sql};

use crate::{
    failure::Failure,
    rows::{Id, from_column},
};

pub const DUE: &str = sql!("sql/due.sql");

pub fn due(connection: &Connection, from: &[ShardCursor], until: Timestamp, limit: usize) -> Result<Vec<DueEntry>, Failure> {
    let mut statement = connection.prepare_cached(DUE)?;
    let mut entries = Vec::new();
    for ShardCursor { shard, after } in from {
        let first_minute = after.map_or(i64::MIN, |(at, _)| at.minute());
        let mut rows = statement.query(params![shard.0, first_minute, until.minute(), until.as_micros()])?;
        let mut page = Earliest { entries: Vec::new(), sorted: 0, limit };
        let mut minute = i64::MIN;
        while let Some(row) = rows.next()? {
            let of: i64 = row.get(column!(DUE, "minute"))?;
            if of != minute {
                minute = of;
                // Whatever follows is later than all there is.
                if page.close_minute() {
                    break;
                }
            }
            page.offer(entry(row)?, *after);
        }
        page.close_minute();
        entries.append(&mut page.entries);
    }
    Ok(entries)
}

fn entry(row: &Row<'_>) -> rusqlite::Result<DueEntry> {
    Ok(DueEntry {
        at: Timestamp::from_micros(row.get(column!(DUE, "at"))?),
        id: row.get::<_, Id>(column!(DUE, "id"))?.timer(),
        destination: from_column(row.get(column!(DUE, "destination"))?),
    })
}

/// The earliest entries of those that are offered minute by minute. However crowded a minute is, never more than about twice
/// the limit is kept.
struct Earliest {
    entries: Vec<DueEntry>,
    /// So many are of earlier minutes, and in order.
    sorted: usize,
    limit: usize,
}

impl Earliest {
    fn offer(&mut self, entry: DueEntry, after: Option<(Timestamp, TimerId)>) {
        if after.is_some_and(|after| (entry.at, entry.id) <= after) {
            return;
        }
        self.entries.push(entry);
        let wanted = self.limit.saturating_sub(self.sorted);
        if self.entries.len() - self.sorted > wanted.saturating_mul(2).max(wanted) {
            self.shorten(wanted);
        }
    }

    fn shorten(&mut self, wanted: usize) {
        let of_minute = &mut self.entries[self.sorted..];
        if of_minute.len() > wanted {
            of_minute.select_nth_unstable(wanted);
            self.entries.truncate(self.sorted + wanted);
        }
    }

    /// Whether there are enough.
    fn close_minute(&mut self) -> bool {
        self.shorten(self.limit.saturating_sub(self.sorted));
        self.entries[self.sorted..].sort_unstable();
        self.sorted = self.entries.len();
        self.sorted >= self.limit
    }
}
