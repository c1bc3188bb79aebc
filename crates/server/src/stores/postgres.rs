use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use clap::Args;
use domain::{Clock, Invalid};
use store::Store;
use store_postgres::{OpenError, PostgresOptions as Address, PostgresStore};

use super::{Database, Named, StoreKind, StoreOptions};
use crate::{
    exit::Failure,
    values::{Deferred, Secret, number, refuse_parts_without, secret},
};

pub const KIND: StoreKind = StoreKind {
    schemes: &["postgres", "postgresql"],
    url_form: "postgres://USER:PASSWORD@HOST:PORT/NAME",
    from_url: |url| Ok(Arc::new(PostgresDatabase(Address::Url(url.to_owned())))),
    from_parts,
    refuse_stray_parts,
    public_causes: &[],
    metrics: store_postgres::METRICS,
};

#[derive(Debug, Clone, Args)]
pub struct PostgresOptions {
    /// Host of a PostgreSQL server, instead of a URL
    #[arg(long, env = "PG_HOST", value_name = "HOST")]
    pg_host: Option<String>,
    /// Port of the PostgreSQL server, 1 to 65535
    #[arg(long, env = "PG_PORT", value_name = "PORT", value_parser = number(1..=u16::MAX).deferred(), default_value = "5432")]
    pg_port: Deferred<u16>,
    /// The name to log in to PostgreSQL with
    #[arg(long, env = "PG_USER", value_name = "USER")]
    pg_user: Option<String>,
    /// The password to log in to PostgreSQL with; any character may be in it
    #[arg(long, env = "PG_PASSWORD", hide_env_values = true, value_name = "PASSWORD", value_parser = secret())]
    pg_password: Option<Secret>,
    /// The name of the PostgreSQL database
    #[arg(long, env = "PG_DB_NAME", value_name = "NAME")]
    pg_db_name: Option<String>,
}

/// How long a server may take to come up.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
struct PostgresDatabase(Address);

fn from_parts(options: &StoreOptions) -> Option<Named> {
    let host = options.postgres.pg_host.clone()?;
    let address = options.postgres.address(host);
    let database = address.map(|address| Arc::new(PostgresDatabase(address)) as Arc<dyn Database>);
    Some(Named { setting: "PG_HOST", database })
}

impl PostgresOptions {
    fn address(&self, host: String) -> Result<Address, Invalid> {
        let required = |setting: &str, value: &Option<String>| {
            value.clone().ok_or_else(|| Invalid::new(setting, "is required together with PG_HOST"))
        };
        Ok(Address::Parts {
            host,
            port: self.pg_port.get()?,
            user: required("PG_USER", &self.pg_user)?,
            password: self.pg_password.as_ref().map(|password| password.expose().to_owned()),
            database: required("PG_DB_NAME", &self.pg_db_name)?,
        })
    }
}

/// Without this check the timers would be kept in a file that the operator does not know of.
fn refuse_stray_parts(options: &StoreOptions) -> Result<(), Invalid> {
    let PostgresOptions { pg_user, pg_password, pg_db_name, .. } = &options.postgres;
    let parts = [("PG_USER", pg_user.is_some()), ("PG_PASSWORD", pg_password.is_some()), ("PG_DB_NAME", pg_db_name.is_some())];
    refuse_parts_without("PG_HOST", parts)
}

#[async_trait]
impl Database for PostgresDatabase {
    fn describe(&self) -> String {
        format!("PostgreSQL at {}", location(&self.0))
    }

    async fn open(&self, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Store>, Failure> {
        let store = connect(&self.0, clock).await?;
        store.migrate().await.map_err(not_opened)?;
        Ok(Arc::new(store))
    }

    fn backup(&self, _file: &Path) -> Result<String, Failure> {
        Err(Failure::Configuration("PostgreSQL has its own tool for this: pg_dump.".into()))
    }

    fn restore(&self, _file: &Path, _replace: bool) -> Result<String, Failure> {
        Err(Failure::Configuration("PostgreSQL has its own tool for this: pg_restore.".into()))
    }
}

async fn connect(options: &Address, clock: &Arc<dyn Clock>) -> Result<PostgresStore, Failure> {
    const PAUSE: Duration = Duration::from_secs(1);
    let begun = clock.monotonic();
    loop {
        match PostgresStore::connect(options).await {
            Ok(store) => return Ok(store),
            Err(error @ OpenError::Unreachable(_)) if clock.monotonic() - begun < OPEN_TIMEOUT => {
                tracing::warn!("{error}; waiting for it");
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(not_opened(error)),
        }
    }
}

fn not_opened(error: OpenError) -> Failure {
    match error {
        OpenError::Address(rule) => Failure::Configuration(format!("DATABASE_URL is wrong: {rule}.").into()),
        error => Failure::run(format!("{error}."), error),
    }
}

/// Where the database is, without credentials.
fn location(options: &Address) -> String {
    match options {
        Address::Parts { host, port, database, .. } => format!("{host}:{port}/{database}"),
        Address::Url(url) => {
            let after_scheme = url.split_once("://").map_or("", |(_, rest)| rest);
            let address = after_scheme.rsplit_once('@').map_or(after_scheme, |(_, address)| address);
            address.split('?').next().unwrap_or_default().to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_database_shows_no_credentials() {
        for (url, shown) in [
            ("postgres://u:secret@db:5432/timer?sslmode=require", "db:5432/timer"),
            ("postgres://u:p@ss@db/timer", "db/timer"),
            ("postgres://db/timer?password=secret", "db/timer"),
        ] {
            assert_eq!(location(&Address::Url(url.to_owned())), shown);
        }
    }
}
