//! What is due, as light entries for the scheduler.
//!
//! The key orders by minute and id, and a page by time and id. So a minute is read to its end and sorted, unless its first moment alone
//! fills the page: what is due at one moment comes in the order of the key. Then a page reads what it shows, however crowded the moment
//! is, and the next one goes on behind its cursor.

use domain::{Shard, TimerId, Timestamp};
use rusqlite::{Connection, params};
use store::{DueEntry, ShardCursor};
use store_sql::{column, sql};

use crate::{
    failure::Failure,
    rows::{Id, from_column},
};

pub const DUE: &str = sql!("sql/due.sql");
pub const DUE_IN_MINUTE: &str = sql!("sql/due_in_minute.sql");

const MINUTE_MICROS: i64 = 60_000_000;

pub fn due(connection: &Connection, from: &[ShardCursor], until: Timestamp, limit: usize) -> Result<Vec<DueEntry>, Failure> {
    // All statements of one look must see the same state, or a timer that is moved could be met twice.
    let snapshot = connection.unchecked_transaction()?;
    let mut entries = Vec::new();
    for ShardCursor { shard, after } in from {
        let mut page = Page::new(limit);
        let first_minute = match *after {
            Some((at, id)) => {
                read_on(&snapshot, *shard, (at, id), until, &mut page)?;
                at.minute() + 1
            }
            None => i64::MIN,
        };
        if !page.close_minute() {
            read_minutes(&snapshot, *shard, first_minute, until, &mut page)?;
        }
        entries.append(&mut page.entries);
    }
    Ok(entries)
}

/// Reads what is left of the minute of a cursor.
fn read_on(
    connection: &Connection,
    shard: Shard,
    (at, id): (Timestamp, TimerId),
    until: Timestamp,
    page: &mut Page,
) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached(DUE_IN_MINUTE)?;
    let (id, last) = (Id::of(id).bytes(), Id::of(TimerId::LAST).bytes());
    // First what may be due at the moment of the cursor. Up to its id, everything that is left is later.
    for (after, last, from) in [(&id[..], &last[..], at.as_micros()), (&[], &id[..], at.as_micros() + 1)] {
        let mut rows = statement.query(params![shard.0, at.minute(), after, last, from, until.as_micros()])?;
        while let Some(row) = rows.next()? {
            let entry = DueEntry {
                at: Timestamp::from_micros(row.get(column!(DUE_IN_MINUTE, "at"))?),
                id: row.get::<_, Id>(column!(DUE_IN_MINUTE, "id"))?.timer(),
                destination: from_column(row.get(column!(DUE_IN_MINUTE, "destination"))?),
            };
            if page.offer(entry, at) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Reads whole minutes from this one on.
fn read_minutes(connection: &Connection, shard: Shard, first: i64, until: Timestamp, page: &mut Page) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached(DUE)?;
    let mut rows = statement.query(params![shard.0, first, until.minute(), until.as_micros()])?;
    let mut minute = i64::MIN;
    while let Some(row) = rows.next()? {
        let of: i64 = row.get(column!(DUE, "minute"))?;
        if of != minute {
            minute = of;
            // Whatever follows is later than all there is.
            if page.close_minute() {
                return Ok(());
            }
        }
        let entry = DueEntry {
            at: Timestamp::from_micros(row.get(column!(DUE, "at"))?),
            id: row.get::<_, Id>(column!(DUE, "id"))?.timer(),
            destination: from_column(row.get(column!(DUE, "destination"))?),
        };
        if page.offer(entry, Timestamp::from_micros(minute.saturating_mul(MINUTE_MICROS))) {
            break;
        }
    }
    page.close_minute();
    Ok(())
}

/// The earliest entries of those that are offered minute by minute. However crowded a minute is, never more than about twice
/// the limit is kept.
struct Page {
    entries: Vec<DueEntry>,
    /// The number of entries of earlier minutes, which come first and are in order.
    sorted: usize,
    /// The number of entries that were offered for the first moment of the minute that is being read.
    at_first: usize,
    limit: usize,
}

impl Page {
    const fn new(limit: usize) -> Self {
        Self { entries: Vec::new(), sorted: 0, at_first: 0, limit }
    }

    /// Takes an entry of a minute of which nothing is due before `first`; those that are due at that moment come in the order of
    /// their ids. Whether there are enough of those: nothing that follows is earlier.
    fn offer(&mut self, entry: DueEntry, first: Timestamp) -> bool {
        self.at_first += usize::from(entry.at == first);
        self.entries.push(entry);
        let wanted = self.limit.saturating_sub(self.sorted);
        if self.entries.len() - self.sorted > wanted.saturating_mul(2) {
            self.shorten(wanted);
        }
        self.at_first >= wanted
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
        (self.sorted, self.at_first) = (self.entries.len(), 0);
        self.sorted >= self.limit
    }
}
