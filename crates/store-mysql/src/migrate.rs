//! Setting the database up, and bringing an older one up to date.
//!
//! Safe to run twice and by several processes at once: each waits for the lock and then finds nothing left to do. The server commits
//! each statement that makes a table by itself, so every statement of a migration may be made again, and a migration counts as made
//! once all of it is.

use std::time::Duration;

use domain::Backoff;
use sqlx::{AssertSqlSafe, mysql::MySqlConnectOptions};
use store_sql::sql;
use tokio::time::{Instant, sleep};

use crate::{
    connector::connect,
    dialect::Dialect,
    failure::{cause, is_contention},
    open_error::OpenError,
    session::Session,
    tidb,
};

/// In order; a migration that was ever released is never changed.
const MIGRATIONS: [(i32, &str); 13] = [
    (1, sql!("../migrations/0001_timers.sql")),
    (2, sql!("../migrations/0002_attempts_and_keys.sql")),
    (3, sql!("../migrations/0003_nodes.sql")),
    (4, sql!("../migrations/0004_by_time.sql")),
    (5, sql!("../migrations/0005_options.sql")),
    (6, sql!("../migrations/0006_expiry_and_groups.sql")),
    (7, sql!("../migrations/0007_events.sql")),
    (8, sql!("../migrations/0008_stats.sql")),
    (9, sql!("../migrations/0009_paused.sql")),
    (10, sql!("../migrations/0010_space.sql")),
    (11, sql!("../migrations/0011_late_creations.sql")),
    (12, sql!("../migrations/0012_recorded_changes.sql")),
    (13, sql!("../migrations/0013_created_at.sql")),
];

/// Held for this database alone; a name has at most 64 characters.
const LOCK: &str = "SELECT GET_LOCK(LEFT(CONCAT('timer_migration.', DATABASE()), 64), 60)";
const UNLOCK: &str = "DO RELEASE_LOCK(LEFT(CONCAT('timer_migration.', DATABASE()), 64))";
/// How long a change of a table waits for sessions that use it.
const TABLE_LOCK_TIMEOUT: &str = "SET SESSION lock_wait_timeout = 60";
const LOCK_WAIT: Duration = Duration::from_secs(60);
const CONTENTION_BACKOFF: Backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(1));

const BOOKKEEPING: &str = "
    CREATE TABLE IF NOT EXISTS timer_migration (
        version    INT      NOT NULL PRIMARY KEY,
        applied_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP
    ) ENGINE = InnoDB";

/// How the database was set up: the version of its tables and the number of shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    pub version: i32,
    pub shards: u16,
}

/// Brings the database up to date, over a session of its own: waiting for the migration of another process may take long.
///
/// Writes nothing when there is nothing to do: a user who may not create tables can then start all the same.
pub async fn migrate(options: &MySqlConnectOptions) -> Result<Setup, OpenError> {
    let mut session = connect(options, LOCK_WAIT).await.map_err(|error| OpenError::Unreachable(cause(error)))?;
    let setup = migrate_over(&mut session).await;
    // What counts is committed or not by now; the server frees the lock.
    session.close().await;
    setup
}

async fn migrate_over(session: &mut Session) -> Result<Setup, OpenError> {
    match read(session).await? {
        Some(setup) if setup.version == newest() => return Ok(setup),
        _ => apply(session).await?,
    }
    let setup = read(session).await?;
    setup.ok_or_else(|| OpenError::Migration("the tables are missing right after they were made".into()))
}

fn newest() -> i32 {
    MIGRATIONS.iter().map(|(version, _)| *version).max().unwrap_or(0)
}

async fn apply(session: &mut Session) -> Result<(), OpenError> {
    let failed = |error: sqlx::Error| OpenError::Migration(cause(error));
    let is_locked: Option<i64> = sqlx::query_scalar(LOCK).fetch_one(&mut *session).await.map_err(failed)?;
    if is_locked != Some(1) {
        return Err(OpenError::Migration("another process has been migrating it for a minute".into()));
    }
    let applied = apply_with_retries(session).await;
    sqlx::raw_sql(UNLOCK).execute(session).await.map_err(failed)?;
    applied.map_err(failed)
}

/// TiDB refuses to change its tables while its servers do not know the latest ones all: what is missing is then made a moment later.
async fn apply_with_retries(session: &mut Session) -> Result<(), sqlx::Error> {
    let (mut backoff, give_up) = (CONTENTION_BACKOFF, Instant::now() + LOCK_WAIT);
    loop {
        match apply_missing(session).await {
            Err(error) if is_contention(&error) && Instant::now() < give_up => sleep(backoff.failed()).await,
            applied => return applied,
        }
    }
}

async fn apply_missing(session: &mut Session) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(TABLE_LOCK_TIMEOUT).execute(&mut *session).await?;
    sqlx::raw_sql(BOOKKEEPING).execute(&mut *session).await?;
    let done: Option<i32> = sqlx::query_scalar("SELECT MAX(version) FROM timer_migration").fetch_one(&mut *session).await?;
    for (version, statements) in MIGRATIONS.into_iter().filter(|(version, _)| *version > done.unwrap_or(0)) {
        // A server refuses a text without a statement.
        if !statements.is_empty() {
            let statements = match session.dialect() {
                Dialect::Mysql => statements.to_owned(),
                Dialect::Tidb => tidb::spread(statements),
            };
            sqlx::raw_sql(AssertSqlSafe(statements)).execute(&mut *session).await?;
        }
        if session.dialect() == Dialect::Tidb && version == tidb::TABLES_VERSION {
            sqlx::raw_sql(tidb::TABLES).execute(&mut *session).await?;
        }
        // Servers that replicate to each other do not share the lock, so that a process on another one may have made the same.
        sqlx::query("INSERT IGNORE INTO timer_migration (version) VALUES (?)").bind(version).execute(&mut *session).await?;
        tracing::info!(migration.version = version, "database migrated");
    }
    Ok(())
}

/// `None` when not all was set up yet. Refuses what a newer program made: this one does not know what it would break.
pub async fn read(session: &mut Session) -> Result<Option<Setup>, OpenError> {
    let unreadable = |error: sqlx::Error| OpenError::Unreachable(cause(error));
    let tables: i64 = sqlx::query_scalar(
        "SELECT COUNT(*) FROM information_schema.tables
         WHERE table_schema = DATABASE() AND table_name IN ('timer_setup', 'timer_migration')",
    )
    .fetch_one(&mut *session)
    .await
    .map_err(unreadable)?;
    if tables < 2 {
        return Ok(None);
    }
    let found: Option<(Option<i32>, i16)> =
        sqlx::query_as("SELECT (SELECT MAX(version) FROM timer_migration) AS version, shards FROM timer_setup")
            .fetch_optional(session)
            .await
            .map_err(unreadable)?;
    let Some((Some(version), shards)) = found else { return Ok(None) };
    if version > newest() {
        let complaint =
            format!("its tables have version {version}, and this program knows only up to {}: use a newer one", newest());
        return Err(OpenError::Unfit(complaint.into()));
    }
    Ok(Some(Setup { version, shards: shards.cast_unsigned() }))
}
