//! How each connection is set up. Together they bound the memory that SQLite takes.

use std::{path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags, ffi};

const PAGE_BYTES: i64 = 4096;
/// Four times as much made nothing faster with half a million timers: what is read again is in the system's cache.
const WRITER_CACHE_KIB: i64 = 16 * 1024;
const READER_CACHE_KIB: i64 = 4 * 1024;
/// Above this the log's file is cut back once it starts over.
const LOG_BYTES_KEPT: i64 = 64 * 1024 * 1024;
/// More than there are statements in this crate.
const STATEMENTS_CACHED: usize = 64;
/// Only a checkpoint that starts the log over makes a reader or the writer wait.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Makes a new database that is not in its place yet, so it needs no log.
    SetUp,
    Writer,
    Reader,
    Checkpointer,
}

pub fn open(path: &Path, role: Role) -> rusqlite::Result<Connection> {
    let access = match role {
        Role::Reader => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Role::SetUp | Role::Writer | Role::Checkpointer => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "trusted_schema", false)?;
    // A failing disk would kill the process through mapped memory; the system's page cache serves nearly as fast.
    connection.pragma_update(None, "mmap_size", 0)?;
    let cache_kib = if role == Role::Writer { WRITER_CACHE_KIB } else { READER_CACHE_KIB };
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    match role {
        Role::SetUp => {
            connection.pragma_update(None, "page_size", PAGE_BYTES)?;
            connection.pragma_update(None, "synchronous", "FULL")?;
        }
        Role::Writer | Role::Checkpointer => {
            let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
            if mode != "wal" {
                let reason = format!("its file system allows no write-ahead log (mode {mode})");
                return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CANTOPEN), Some(reason)));
            }
            connection.pragma_update(None, "synchronous", "FULL")?;
            // The checkpoint thread does it.
            connection.pragma_update(None, "wal_autocheckpoint", 0)?;
            connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT)?;
        }
        Role::Reader => {}
    }
    Ok(connection)
}
