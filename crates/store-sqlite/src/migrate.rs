//! The schema and its versions.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use domain::Timestamp;

use crate::stamp;

/// Marks the file as ours in its header ("tmr1"): a file without it belongs to another program.
pub const APPLICATION_ID: i32 = 0x746d_7231;

/// One file, one writer: there is nothing to divide.
pub const SHARDS: u16 = 1;

/// Every version of the schema, in order; the first is version 1. What has been released never changes.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_timers.sql"),
    include_str!("../migrations/0002_attempts_and_keys.sql"),
    include_str!("../migrations/0003_nodes.sql"),
    include_str!("../migrations/0004_by_time.sql"),
    include_str!("../migrations/0005_options.sql"),
    include_str!("../migrations/0006_expiry_and_groups.sql"),
    include_str!("../migrations/0007_events.sql"),
    include_str!("../migrations/0008_stats.sql"),
    include_str!("../migrations/0009_paused.sql"),
    include_str!("../migrations/0010_space.sql"),
    include_str!("../migrations/0011_late_creations.sql"),
    include_str!("../migrations/0012_recorded_changes.sql"),
    include_str!("../migrations/0013_created_at.sql"),
];

const KNOWN: i64 = MIGRATIONS.len() as i64;

/// How a database stands to this program.
#[derive(Debug, PartialEq, Eq)]
pub enum Schema {
    /// Every migration is there, or can be made.
    Current,
    /// A later program wrote it; this one must not touch it.
    Newer { version: i64 },
    /// It was set up for another number of shards than this store works with.
    OtherShards { shards: i64 },
}

/// Brings the schema up to date, in one transaction. Running it again, or twice at once, does nothing more.
pub fn migrate(connection: &mut Connection, now: Timestamp) -> rusqlite::Result<Schema> {
    // Its log has to begin with a commit that shows that this was a copy: see `stamp.rs`.
    if stamp::is_copy(connection)? && version(connection).is_ok_and(|version| version < KNOWN) {
        stamp::write(connection, stamp::next(stamp::read(connection)?))?;
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(
        "CREATE TABLE IF NOT EXISTS schema_version (
             version INTEGER NOT NULL PRIMARY KEY,
             applied_at INTEGER NOT NULL
         ) STRICT;
         CREATE TABLE IF NOT EXISTS setup (
             only INTEGER NOT NULL PRIMARY KEY CHECK (only = 1),
             shards INTEGER NOT NULL
         ) STRICT;",
    )?;
    let version = version(&transaction)?;
    if version > KNOWN {
        return Ok(Schema::Newer { version });
    }
    for (number, sql) in (1_i64..).zip(MIGRATIONS).filter(|(number, _)| *number > version) {
        transaction.execute_batch(sql)?;
        transaction
            .execute("INSERT INTO schema_version (version, applied_at) VALUES (?1, ?2)", params![number, now.as_micros()])?;
    }
    transaction.execute("INSERT INTO setup (only, shards) VALUES (1, ?1) ON CONFLICT DO NOTHING", [SHARDS])?;
    let shards: Option<i64> = transaction.query_row("SELECT shards FROM setup", [], |row| row.get(0)).optional()?;
    if let Some(shards) = shards.filter(|shards| *shards != i64::from(SHARDS)) {
        return Ok(Schema::OtherShards { shards });
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    stamp::write(&transaction, stamp::next(stamp::read(&transaction)?))?;
    transaction.commit()?;
    Ok(Schema::Current)
}

/// Whether this program can open the database. Changes nothing.
pub fn look(connection: &Connection) -> rusqlite::Result<Schema> {
    let version = version(connection)?;
    Ok(if version > KNOWN { Schema::Newer { version } } else { Schema::Current })
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT coalesce(max(version), 0) FROM schema_version", [], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_750_000_000_000_000);

    #[test]
    fn migrating_twice_is_migrating_once() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert_eq!(migrate(&mut connection, NOW).unwrap(), Schema::Current);
        assert_eq!(migrate(&mut connection, NOW).unwrap(), Schema::Current);
        let versions: i64 = connection.query_row("SELECT count(*) FROM schema_version", [], |row| row.get(0)).unwrap();
        assert_eq!(versions, MIGRATIONS.len() as i64);
    }

    #[test]
    fn a_schema_from_the_future_is_left_alone() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, NOW).unwrap();
        connection.execute("INSERT INTO schema_version VALUES (99, 0)", []).unwrap();
        assert_eq!(migrate(&mut connection, NOW).unwrap(), Schema::Newer { version: 99 });
    }

    #[test]
    fn the_number_of_shards_is_fixed_at_set_up() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, NOW).unwrap();
        connection.execute("UPDATE setup SET shards = 8", []).unwrap();
        assert_eq!(migrate(&mut connection, NOW).unwrap(), Schema::OtherShards { shards: 8 });
    }
}
