//! How sessions with the server are opened, and the bulkheads that they are divided among.

use std::time::Duration;

use sqlx::{AssertSqlSafe, ConnectOptions, Row as _, mysql::MySqlConnectOptions};
use store_sql::{BulkheadLimits, Driver, NoSession};

use crate::{dialect::Dialect, failure, options::EVERY_SESSION, session::Session, tidb};

pub type Bulkhead = store_sql::Bulkhead<Connector>;

/// Opens sessions that are set up alike.
#[derive(Debug)]
pub struct Connector {
    options: MySqlConnectOptions,
    lock_timeout: Duration,
}

impl Driver for Connector {
    const SERVER: &'static str = "MySQL";
    const SESSIONS_DISCARDED: &'static str = "timer_mysql_sessions_discarded_total";
    const CONTENTION: &'static str = "timer_mysql_contention_total";

    type Session = Session;

    async fn open(&self) -> Result<Session, NoSession> {
        connect(&self.options, self.lock_timeout)
            .await
            .map_err(|error| NoSession { is_passing: is_passing(&error), cause: failure::cause(error) })
    }

    /// Rolls back what a call has left open, and so is more than a ping.
    async fn answers(session: &mut Session) -> bool {
        sqlx::raw_sql("ROLLBACK").execute(session).await.is_ok()
    }

    async fn close(session: Session) {
        session.close().await;
    }
}

/// A server of a Galera cluster first catches up with what the other servers have acknowledged, before it reads or writes: an answer that stayed
/// out is read back, and by then a proxy may lead to another server. Not every MariaDB knows the setting.
const CATCH_UP: &str = "SET SESSION wsrep_sync_wait = 7";
const IS_IN_A_CLUSTER: &str = "SHOW VARIABLES WHERE Variable_name = 'wsrep_on' AND Value = 'ON'";

/// A session as all of them are. Locks are waited for in whole seconds.
pub async fn connect(options: &MySqlConnectOptions, lock_timeout: Duration) -> Result<Session, sqlx::Error> {
    let mut connection = options.connect().await?;
    let seconds = lock_timeout.as_secs().max(1);
    let setting = format!("{EVERY_SESSION}; SET SESSION innodb_lock_wait_timeout = {seconds}; SELECT VERSION() AS version");
    let version: String = sqlx::raw_sql(AssertSqlSafe(setting)).fetch_one(&mut connection).await?.try_get("version")?;
    let dialect = Dialect::of(&version);
    if dialect == Dialect::Tidb {
        sqlx::raw_sql(tidb::SETTINGS).execute(&mut connection).await?;
    }
    if version.contains("MariaDB") && sqlx::raw_sql(IS_IN_A_CLUSTER).fetch_optional(&mut connection).await?.is_some() {
        sqlx::raw_sql(CATCH_UP).execute(&mut connection).await?;
    }
    Ok(Session::new(connection, dialect))
}

/// Whether the same may succeed a moment later: the server does not listen yet, or it has too many sessions.
fn is_passing(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => matches!(
            error.kind(),
            std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::ConnectionAborted | std::io::ErrorKind::ConnectionReset
        ),
        error => matches!(failure::number(error), Some(1040 | 1053 | 1203)),
    }
}

/// How much a bulkhead may take.
#[derive(Debug, Clone, Copy)]
pub struct BulkheadConfig {
    pub name: &'static str,
    pub sessions_max: usize,
    /// How long a row is waited for that another session holds.
    pub lock_timeout: Duration,
    pub deadline: Duration,
}

impl BulkheadConfig {
    /// Opens no session yet.
    pub fn bulkhead(self, options: &MySqlConnectOptions) -> Bulkhead {
        let Self { name, sessions_max, lock_timeout, deadline } = self;
        let connector = Connector { options: options.clone(), lock_timeout };
        Bulkhead::new(connector, BulkheadLimits { name, sessions_max, deadline })
    }
}
