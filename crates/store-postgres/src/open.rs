//! The first look at a database: can it be reached, is it fit, and does it keep what it is given.

use sqlx::{ConnectOptions, Connection, PgConnection, Row, postgres::PgConnectOptions};
use store_sql::sql;
use tokio::time::timeout;

use crate::{failure::cause, migrate, open_error::OpenError};

const SERVER_SETTINGS: &str = sql!("sql/server_settings.sql");
const CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);
/// The first one that can sort within the order of an index.
const SERVER_VERSION_MIN: i32 = 130_000;

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

    fn of(settings: &[(&str, &str)]) -> Self {
        let is_weak = |(name, value): &&(&str, &str)| match *name {
            "synchronous_commit" => *value == "off",
            _ => *value != "on",
        };
        Self { weak_settings: settings.iter().filter(is_weak).map(|(name, value)| format!("{name}={value}")).collect() }
    }
}

/// What the first look found.
#[derive(Debug)]
pub struct Found {
    pub durability: Durability,
    pub setup: Option<migrate::Setup>,
}

pub async fn look(options: &PgConnectOptions) -> Result<Found, OpenError> {
    let unreachable = |error: sqlx::Error| OpenError::Unreachable(cause(error));
    let looked = timeout(CONNECT_TIMEOUT, async {
        let mut session = options.connect().await.map_err(unreachable)?;
        let durability = check(&mut session).await?;
        let setup = migrate::read(&mut session).await?;
        // The answers are in; the server notices a closed connection by itself.
        drop(session.close().await);
        Ok(Found { durability, setup })
    });
    looked.await.unwrap_or_else(|_| Err(OpenError::Unreachable("it does not answer".into())))
}

async fn check(session: &mut PgConnection) -> Result<Durability, OpenError> {
    let row = sqlx::query(SERVER_SETTINGS).fetch_one(session).await.map_err(|error| OpenError::Unreachable(cause(error)))?;
    let read = |column: &str| row.try_get::<String, _>(column).map_err(|error| OpenError::Unfit(cause(error)));
    let version: i32 = row.try_get("version").map_err(|error| OpenError::Unfit(cause(error)))?;
    if version < SERVER_VERSION_MIN {
        return Err(OpenError::Unfit(format!("it is version {}, and 13 is the oldest that will do", version / 10_000).into()));
    }
    let encoding = read("encoding")?;
    if encoding != "UTF8" {
        return Err(OpenError::Unfit(format!("its encoding is {encoding}; create it with ENCODING 'UTF8'").into()));
    }
    let (fsync, pages, commit) = (read("fsync")?, read("full_page_writes")?, read("synchronous_commit")?);
    let durability = Durability::of(&[("fsync", &fsync), ("full_page_writes", &pages), ("synchronous_commit", &commit)]);
    for setting in &durability.weak_settings {
        tracing::warn!(postgres.setting = setting, "acknowledged timers may be lost in a crash of the server: set it to on");
    }
    Ok(durability)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_forget_are_named() {
        let durability = |fsync, pages, commit| {
            Durability::of(&[("fsync", fsync), ("full_page_writes", pages), ("synchronous_commit", commit)]).weak_settings
        };
        assert!(durability("on", "on", "on").is_empty());
        assert!(durability("on", "on", "remote_apply").is_empty());
        assert!(durability("on", "on", "local").is_empty());
        assert_eq!(durability("off", "off", "off"), ["fsync=off", "full_page_writes=off", "synchronous_commit=off"]);
    }
}
