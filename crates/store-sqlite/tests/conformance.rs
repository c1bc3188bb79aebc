//! The promises of every store, kept by this one.

#![expect(clippy::unwrap_used, reason = "a fixture that cannot be made is a failed test")]

use std::{path::PathBuf, sync::Arc};

use domain::{ManualClock, Span, TimerId, Timestamp};
use store::{OperationId, Store};
use store_conformance::{Fixture, NOW};
use store_sqlite::SqliteStore;

struct Sqlite {
    directory: tempfile::TempDir,
    clock: Arc<ManualClock>,
}

impl Sqlite {
    fn new() -> Self {
        let a_day_later = NOW.saturating_add(Span::from_secs(86_400));
        Self { directory: tempfile::tempdir().unwrap(), clock: Arc::new(ManualClock::at(a_day_later)) }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("timers.db")
    }

    fn damage(&self, sql: &str, id: TimerId) -> bool {
        let connection = rusqlite::Connection::open(self.path()).unwrap();
        connection.execute(sql, [id.as_uuid().into_bytes()]).unwrap() == 1
    }
}

#[async_trait::async_trait]
impl Fixture for Sqlite {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(self.path(), Arc::clone(&self.clock) as _).unwrap())
    }

    /// One process, one handle: a second one is refused, which has tests of its own.
    fn reopens(&self) -> bool {
        false
    }

    fn clock(&self) -> Option<Arc<ManualClock>> {
        Some(Arc::clone(&self.clock))
    }

    async fn spoil(&self, id: TimerId) -> bool {
        self.damage("UPDATE definition SET callback_config = '{' WHERE id = ?1", id)
    }

    async fn spoil_summary(&self, id: TimerId) -> bool {
        self.damage("UPDATE definition SET correlation_id = '' WHERE id = ?1", id)
    }

    async fn spoil_options(&self, id: TimerId) -> bool {
        self.damage("UPDATE definition SET options = '{' WHERE id = ?1", id)
    }

    async fn spoil_operation(&self, id: OperationId) -> bool {
        self.damage("UPDATE operation SET filter = '{' WHERE id = ?1", id.0)
    }

    async fn plant_outcome(&self, id: TimerId, execute_at: Timestamp) -> bool {
        let connection = rusqlite::Connection::open(self.path()).unwrap();
        let sql =
            "INSERT INTO outcome (minute, id, execute_at, status, attempt, finished_at) VALUES (?1, ?2, ?3, 'failed', 9, 0)";
        let row = (execute_at.minute(), id.as_uuid().into_bytes(), execute_at.as_micros());
        connection.execute(sql, row).unwrap() == 1
    }

    async fn refuse_to_settle(&self, id: TimerId) -> bool {
        let connection = rusqlite::Connection::open(self.path()).unwrap();
        let id = id.as_uuid().simple();
        for (event, name) in [("DELETE", "removed"), ("UPDATE", "changed")] {
            let refuse = format!(
                "CREATE TRIGGER {name} BEFORE {event} ON due WHEN old.id = x'{id}' \
                 BEGIN SELECT RAISE(ABORT, 'this row is damaged'); END"
            );
            connection.execute_batch(&refuse).unwrap();
        }
        true
    }
}

store_conformance::suite!(Sqlite::new());
