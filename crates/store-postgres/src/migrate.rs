//! Setting the database up, and bringing an older one up to date.
//!
//! Safe to run twice and by several processes at once: each waits for the lock and then finds nothing left to do.
//!
//! A statement that changes a table waits for every reader of it, a backup for instance, and every later statement on that table
//! waits behind it. So a try gives up after a moment, which lets those pass, and is repeated. For the same reason a migration reads no
//! table that may be large: indexes of those are built afterwards, see `indexes.rs`.

use std::time::Duration;

use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, postgres::PgConnectOptions};

use crate::{
    failure::{cause, is_contention},
    indexes,
    open_error::OpenError,
};

/// In order; a migration that was ever released is never changed.
const MIGRATIONS: [(i32, &str); 13] = [
    (1, include_str!("../migrations/0001_timers.sql")),
    (2, include_str!("../migrations/0002_attempts_and_keys.sql")),
    (3, include_str!("../migrations/0003_nodes.sql")),
    (4, include_str!("../migrations/0004_by_time.sql")),
    (5, include_str!("../migrations/0005_options.sql")),
    (6, include_str!("../migrations/0006_expiry_and_groups.sql")),
    (7, include_str!("../migrations/0007_events.sql")),
    (8, include_str!("../migrations/0008_stats.sql")),
    (9, include_str!("../migrations/0009_paused.sql")),
    (10, include_str!("../migrations/0010_space.sql")),
    (11, include_str!("../migrations/0011_late_creations.sql")),
    (12, include_str!("../migrations/0012_recorded_changes.sql")),
    (13, include_str!("../migrations/0013_created_at.sql")),
];

/// Any number that no other program locks in this database.
const LOCK: i64 = 0x7469_6d65_7200;

/// How long one try waits for a table: less than the `lock_timeout` of other sessions, which wait behind it meanwhile.
const TABLE_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '1s'";
const PAUSE: Duration = Duration::from_secs(1);
/// How often a lock is tried for: with the pauses, about a minute.
const TRIES_MAX: u32 = 30;
const TABLES_IN_USE: &str = "another session, such as a backup or a long query, has kept one of its tables locked for a minute: \
                             start again when it has ended";

const BOOKKEEPING: &str = "
    CREATE TABLE IF NOT EXISTS timer_migration (
        version    integer     PRIMARY KEY,
        applied_at timestamptz NOT NULL DEFAULT now()
    )";

/// How the database was set up: the version of its tables and the number of shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    pub version: i32,
    pub shards: u16,
}

/// Brings the database up to date, over a session of its own: waiting for the migration of another process may take long.
///
/// Writes nothing when there is nothing to do: a user who may not create tables can then start all the same.
pub async fn migrate(options: &PgConnectOptions) -> Result<Setup, OpenError> {
    let unlimited = options.clone().options([("lock_timeout", "0"), ("idle_in_transaction_session_timeout", "0")]);
    let mut session = unlimited.connect().await.map_err(|error| OpenError::Unreachable(cause(error)))?;
    let setup = migrate_over(&mut session).await;
    // What counts is committed or not by now; the server notices a closed connection by itself.
    drop(session.close().await);
    if setup.is_ok() {
        indexes::build(unlimited).await;
    }
    setup
}

async fn migrate_over(session: &mut PgConnection) -> Result<Setup, OpenError> {
    match read(session).await? {
        Some(setup) if setup.version == newest() => return Ok(setup),
        _ => apply(session, TRIES_MAX).await?,
    }
    let setup = read(session).await?;
    setup.ok_or_else(|| OpenError::Migration("the tables are missing right after they were made".into()))
}

fn newest() -> i32 {
    MIGRATIONS.iter().map(|(version, _)| *version).max().unwrap_or(0)
}

async fn apply(session: &mut PgConnection, tries_max: u32) -> Result<(), OpenError> {
    for tried in 1..=tries_max {
        match try_to_apply(session).await {
            Ok(()) => return Ok(()),
            Err(error) if !is_contention(&error) => return Err(OpenError::Migration(cause(error))),
            Err(_) if tried == tries_max => break,
            Err(_) => {
                tracing::warn!(migration.tried = tried, "the migration waits for a session that has locked a table");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    Err(OpenError::Migration(TABLES_IN_USE.into()))
}

/// All that is missing or, after an error, nothing.
async fn try_to_apply(session: &mut PgConnection) -> Result<(), sqlx::Error> {
    let mut transaction = session.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LOCK).execute(&mut *transaction).await?;
    sqlx::query(TABLE_LOCK_TIMEOUT).execute(&mut *transaction).await?;
    sqlx::query(BOOKKEEPING).execute(&mut *transaction).await?;
    let done: Option<i32> = sqlx::query_scalar("SELECT max(version) FROM timer_migration").fetch_one(&mut *transaction).await?;
    for (version, statements) in MIGRATIONS.into_iter().filter(|(version, _)| *version > done.unwrap_or(0)) {
        sqlx::raw_sql(AssertSqlSafe(statements)).execute(&mut *transaction).await?;
        sqlx::query("INSERT INTO timer_migration (version) VALUES ($1)").bind(version).execute(&mut *transaction).await?;
        tracing::info!(migration.version = version, "database migrated");
    }
    transaction.commit().await
}

/// `None` when nothing was set up yet. Refuses what a newer program made: this one does not know what it would break.
pub async fn read(session: &mut PgConnection) -> Result<Option<Setup>, OpenError> {
    let unreadable = |error: sqlx::Error| OpenError::Unreachable(cause(error));
    let is_set_up: bool =
        sqlx::query_scalar("SELECT to_regclass('timer_setup') IS NOT NULL").fetch_one(&mut *session).await.map_err(unreadable)?;
    if !is_set_up {
        return Ok(None);
    }
    let (version, shards): (i32, i16) =
        sqlx::query_as("SELECT (SELECT max(version) FROM timer_migration), shards FROM timer_setup")
            .fetch_one(session)
            .await
            .map_err(unreadable)?;
    if version > newest() {
        let complaint =
            format!("its tables have version {version}, and this program knows only up to {}: use a newer one", newest());
        return Err(OpenError::Unfit(complaint.into()));
    }
    Ok(Some(Setup { version, shards: shards.cast_unsigned() }))
}

#[cfg(test)]
mod tests {
    use sqlx::Executor;

    use super::*;

    #[tokio::test]
    async fn a_table_that_stays_locked_ends_the_migration_in_one_sentence() {
        let url = throwaway::postgres().create_database();
        let mut reader = PgConnection::connect(&url).await.unwrap();
        reader.execute("CREATE TABLE timer_migration (version integer, applied_at timestamptz)").await.unwrap();
        reader.execute("BEGIN; LOCK TABLE timer_migration IN ACCESS EXCLUSIVE MODE").await.unwrap();
        let mut session = PgConnection::connect(&url).await.unwrap();

        let refused = apply(&mut session, 1).await.unwrap_err();

        assert_eq!(refused.to_string(), format!("the PostgreSQL database could not be set up: {TABLES_IN_USE}"));
        reader.execute("ROLLBACK; DROP TABLE timer_migration").await.unwrap();
        apply(&mut session, 1).await.unwrap();
    }
}
