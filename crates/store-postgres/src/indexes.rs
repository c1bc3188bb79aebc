//! Indexes of tables that may be large: they are built beside the work of all nodes, and not in the transaction of a migration, which
//! would hold up every write for as long as the table is read.
//!
//! A start waits for them for a minute and no longer. They make queries faster and no query wrong, so that a service may run without them while
//! a backup, whose snapshot a build has to wait for, goes on for hours.

use std::time::Duration;

use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, postgres::PgConnectOptions};
use store_sql::sql;
use tokio::time::{sleep, timeout};

use crate::failure::{cause, is_contention};

const HAS_OTHER_NAMESPACES: &str = sql!("sql/has_other_namespaces.sql");
const IS_INDEX_VALID: &str = sql!("sql/is_index_valid.sql");

/// The name of each, and what it is on.
const INDEXES: [(&str, &str); 2] = [
    // Expired timers are rare among millions of completed ones, and found at once, as failed and canceled ones are.
    ("outcome_expired", "outcome (id) WHERE status = 'expired'"),
    // Most timers belong to no group, and are not in the index.
    ("definition_group", "definition (namespace, group_name, id) WHERE group_name IS NOT NULL"),
];

// These are built only where several namespaces are in use: see [`crate::namespace_indexes`].

/// For lists of the default namespace.
pub const OF_DEFAULT: (&str, &str) = ("definition_default", "definition (created_at, id) WHERE namespace = 'default'");
/// For lists of any namespace by due time. By the minute, as `definition_execute` is. The collation orders as that of the column does, and
/// is another one so that no other index can serve a search that names it, whatever the planner believes: see [`crate::search`].
pub const BY_DUE_TIME: (&str, &str) =
    ("definition_namespace_execute", "definition (namespace COLLATE \"POSIX\", (execute_at / 60000000))");

/// Any number that no other program locks in this database.
const LOCK: i64 = 0x7469_6d65_7201;

/// How long a start waits: as long as a migration waits for a table.
const TIMEOUT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(200);
const TRIES_MAX: u32 = 5;

/// Builds what is missing, over a session of its own. Goes on in the background when that takes long; what has failed is logged, and
/// tried again at the next start.
pub async fn build(options: PgConnectOptions) {
    let building = tokio::spawn(async move {
        if let Err(error) = build_over(&options).await {
            tracing::warn!(error = %cause(error), "an index could not be built: some lists are slow until a later start builds it");
        }
    });
    if timeout(TIMEOUT, building).await.is_err() {
        tracing::info!("indexes are being built in the background");
    }
}

async fn build_over(options: &PgConnectOptions) -> Result<(), sqlx::Error> {
    let mut session = options.connect().await?;
    let has_others: bool = sqlx::query_scalar(HAS_OTHER_NAMESPACES).fetch_one(&mut session).await?;
    let indexes: Vec<_> =
        INDEXES.into_iter().chain(has_others.then_some([OF_DEFAULT, BY_DUE_TIME]).into_iter().flatten()).collect();
    build_missing(&mut session, &indexes).await?;
    session.close().await
}

/// Builds more of them, while the service runs.
pub async fn build_later(options: &PgConnectOptions, indexes: &[(&str, &str)]) -> Result<(), sqlx::Error> {
    let mut session =
        options.clone().options([("lock_timeout", "0"), ("idle_in_transaction_session_timeout", "0")]).connect().await?;
    build_missing(&mut session, indexes).await?;
    session.close().await
}

/// Under a lock, because the index that another process is building looks like one whose build has failed. The lock is tried for and
/// not waited for: a statement that waits has a snapshot, and the build of the other process would wait for that.
async fn build_missing(session: &mut PgConnection, indexes: &[(&str, &str)]) -> Result<(), sqlx::Error> {
    let mut is_missing = false;
    for (name, _) in indexes {
        is_missing |= !is_valid(session, name).await?;
    }
    if !is_missing {
        return Ok(());
    }
    while !sqlx::query_scalar::<_, bool>("SELECT pg_try_advisory_lock($1)").bind(LOCK).fetch_one(&mut *session).await? {
        sleep(PAUSE).await;
    }
    for (name, on) in indexes {
        let mut tried = 1;
        while let Err(error) = build_index(session, name, on).await {
            if tried == TRIES_MAX || !is_contention(&error) {
                return Err(error);
            }
            tried += 1;
            sleep(PAUSE).await;
        }
    }
    // Ends with the session, too.
    sqlx::query("SELECT pg_advisory_unlock($1)").bind(LOCK).execute(session).await.map(drop)
}

async fn build_index(session: &mut PgConnection, name: &str, on: &str) -> Result<(), sqlx::Error> {
    if is_valid(session, name).await? {
        return Ok(());
    }
    // What a build leaves that was interrupted: it is kept up to date by every write, and serves no query.
    for statement in
        [format!("DROP INDEX CONCURRENTLY IF EXISTS {name}"), format!("CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {on}")]
    {
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut *session).await?;
    }
    tracing::info!(index = name, "index built");
    Ok(())
}

pub async fn is_valid(session: &mut PgConnection, name: &str) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(IS_INDEX_VALID).bind(name).fetch_one(session).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &str = "
        CREATE TABLE outcome (id uuid PRIMARY KEY, status text);
        CREATE TABLE definition (id uuid PRIMARY KEY, namespace text, group_name text, created_at bigint)";
    const VALID: &str = "SELECT string_agg(indexrelid::regclass::text, ' ' ORDER BY indexrelid::regclass::text)
                         FROM pg_index WHERE indisvalid AND NOT indisprimary AND indrelid IN ('outcome'::regclass, 'definition'::regclass)";

    fn database() -> (String, PgConnectOptions) {
        let url = throwaway::postgres().create_database();
        throwaway::postgres().query(&url, TABLES);
        let options = url.parse().unwrap();
        (url, options)
    }

    #[tokio::test]
    async fn processes_that_build_at_once_build_each_index_once() {
        let (url, options) = database();
        let built = futures_util::future::join_all((0..8).map(|_| build_over(&options))).await;
        assert!(built.iter().all(Result::is_ok), "{built:?}");
        assert_eq!(throwaway::postgres().query(&url, VALID), "definition_group outcome_expired");
    }

    #[tokio::test]
    async fn what_an_interrupted_build_has_left_is_built_anew() {
        let (url, options) = database();
        // An index of the same name that fails half-way: the first build is done, and finds two rows that are the same.
        throwaway::postgres().query(&url, "INSERT INTO outcome SELECT gen_random_uuid(), 'expired' FROM generate_series(1, 2)");
        let mut session = options.connect().await.unwrap();
        let failing = "CREATE UNIQUE INDEX CONCURRENTLY outcome_expired ON outcome (status)";
        assert!(sqlx::raw_sql(failing).execute(&mut session).await.is_err());
        assert!(!is_valid(&mut session, "outcome_expired").await.unwrap());

        build_over(&options).await.unwrap();

        assert!(is_valid(&mut session, "outcome_expired").await.unwrap());
        assert_eq!(throwaway::postgres().query(&url, VALID), "definition_group outcome_expired");
    }
}
