//! The first look at a database: can it be reached, is it fit, and does it keep what it is given.

use std::time::Duration;

use sqlx::{Row, mysql::MySqlConnectOptions};
use store_sql::sql;
use tokio::time::timeout;

use crate::{
    LOCK_TIMEOUT, connector::connect, dialect::Dialect, failure::cause, migrate, open_error::OpenError, session::Session,
};

const SERVER_SETTINGS: &str = sql!("sql/server_settings.sql");
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The first ones that can pass over locked rows and take a JSON text for a table.
const MYSQL_VERSION_MIN: (u32, u32) = (8, 0);
const MARIADB_VERSION_MIN: (u32, u32) = (10, 6);
/// The one that the contract is tried on.
const TIDB_VERSION_MIN: (u32, u32) = (8, 4);
/// What TiDB says before its own version. The one before that is of the MySQL that it takes after.
const TIDB_VERSION: &str = "TiDB-v";

/// What stands between an acknowledged timer and a power failure.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Durability {
    /// Settings of the server that let it forget what it has acknowledged, as `name=value`.
    pub weak_settings: Vec<String>,
}

impl Durability {
    pub const fn is_full(&self) -> bool {
        self.weak_settings.is_empty()
    }

    /// Without a binary log nothing depends on when it is written.
    fn of(flush_at_commit: i64, sync_binlog: i64, has_binlog: bool) -> Self {
        let settings = [("innodb_flush_log_at_trx_commit", flush_at_commit, true), ("sync_binlog", sync_binlog, has_binlog)];
        let weak = settings.into_iter().filter(|(_, value, counts)| *counts && *value != 1);
        Self { weak_settings: weak.map(|(name, value, _)| format!("{name}={value}")).collect() }
    }
}

/// What the first look found.
#[derive(Debug)]
pub struct Found {
    pub dialect: Dialect,
    pub durability: Durability,
    pub setup: Option<migrate::Setup>,
}

pub async fn look(options: &MySqlConnectOptions) -> Result<Found, OpenError> {
    let looked = timeout(CONNECT_TIMEOUT, async {
        let mut session = connect(options, LOCK_TIMEOUT).await.map_err(unreachable)?;
        let durability = check(&mut session).await?;
        let setup = migrate::read(&mut session).await?;
        let dialect = session.dialect();
        session.close().await;
        Ok(Found { dialect, durability, setup })
    });
    looked.await.unwrap_or_else(|_| Err(OpenError::Unreachable("it does not answer".into())))
}

fn unreachable(error: sqlx::Error) -> OpenError {
    OpenError::Unreachable(cause(error))
}

async fn check(session: &mut Session) -> Result<Durability, OpenError> {
    let unfit = |error: sqlx::Error| OpenError::Unfit(cause(error));
    let version: String = sqlx::query_scalar("SELECT VERSION()").fetch_one(&mut *session).await.map_err(unreachable)?;
    check_version(&version)?;
    if session.dialect() == Dialect::Tidb {
        // A commit is on the disks of most of its replicas. The settings of MySQL are there, and mean nothing.
        return Ok(Durability::default());
    }
    let row = sqlx::query(SERVER_SETTINGS).fetch_one(session).await.map_err(unreachable)?;
    let read = |column: &str| row.try_get::<i64, _>(column).map_err(unfit);
    let durability = Durability::of(read("flush_at_commit")?, read("sync_binlog")?, read("log_bin")? != 0);
    for setting in &durability.weak_settings {
        tracing::warn!(mysql.setting = setting, "acknowledged timers may be lost in a crash of the server: set it to 1");
    }
    Ok(durability)
}

fn check_version(version: &str) -> Result<(), OpenError> {
    let unfit = |why: String| Err(OpenError::Unfit(why.into()));
    let (name, oldest, numbers) = match Dialect::of(version) {
        Dialect::Tidb => ("TiDB", TIDB_VERSION_MIN, version.split_once(TIDB_VERSION).map_or("", |(_, own)| own)),
        // Behind some proxies MariaDB says 5.5.5- first.
        Dialect::Mysql if version.contains("MariaDB") => {
            ("MariaDB", MARIADB_VERSION_MIN, version.strip_prefix("5.5.5-").unwrap_or(version))
        }
        Dialect::Mysql => ("MySQL", MYSQL_VERSION_MIN, version),
    };
    let mut numbers = numbers.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let found = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    if found < oldest {
        return unfit(format!("it is {name} {}.{}, and {}.{} is the oldest that will do", found.0, found.1, oldest.0, oldest.1));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_forget_are_named() {
        let durability = |flush, sync, has_binlog| Durability::of(flush, sync, has_binlog).weak_settings;
        assert!(durability(1, 1, true).is_empty());
        assert!(durability(1, 0, false).is_empty());
        assert_eq!(durability(2, 0, true), ["innodb_flush_log_at_trx_commit=2", "sync_binlog=0"]);
    }

    #[test]
    fn servers_that_lack_something_are_refused() {
        let mysql = ["8.0.15", "8.4.3", "9.7.4"];
        let mariadb = ["10.11.19-MariaDB-0+deb12u1", "5.5.5-10.6.1-MariaDB", "11.4.5-MariaDB-log"];
        let tidb = ["8.0.11-TiDB-v8.4.0-this-is-a-placeholder", "8.0.11-TiDB-v8.5.0", "5.7.25-TiDB-v9.0.0-beta.1"];
        for version in mysql.into_iter().chain(mariadb).chain(tidb) {
            assert!(check_version(version).is_ok(), "{version}");
        }
        for (version, why) in [
            ("5.7.44-log", "it is MySQL 5.7, and 8.0 is the oldest that will do"),
            ("10.5.23-MariaDB", "it is MariaDB 10.5, and 10.6 is the oldest that will do"),
            ("8.0.11-TiDB-v8.1.2", "it is TiDB 8.1, and 8.4 is the oldest that will do"),
            ("8.0.11-TiDB", "it is TiDB 0.0"),
            ("", "it is MySQL 0.0"),
        ] {
            let refused = check_version(version).unwrap_err().to_string();
            assert!(refused.contains(why), "{version}: {refused}");
        }
    }
}
