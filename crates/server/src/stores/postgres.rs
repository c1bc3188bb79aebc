use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use domain::{Clock, Invalid};
use store::Store;
use store_postgres::{OpenError, PostgresOptions, PostgresStore};

use super::{Database, Named, StoreKind};
use crate::{
    cli::StoreOptions,
    exit::Failure,
    settings::{given, number, refuse_parts_without},
};

pub const KIND: StoreKind = StoreKind {
    schemes: &["postgres", "postgresql"],
    url_form: "postgres://USER:PASSWORD@HOST:PORT/NAME",
    from_url: |url| Ok(Arc::new(PostgresDatabase(PostgresOptions::Url(url.to_owned())))),
    from_parts,
    refuse_stray_parts,
    metrics: store_postgres::METRICS,
};

/// How long a server may take to come up.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
struct PostgresDatabase(PostgresOptions);

fn from_parts(options: &StoreOptions) -> Option<Named> {
    let host = given(&options.pg_host)?;
    let database = parse_parts(host, options).map(|options| Arc::new(PostgresDatabase(options)) as Arc<dyn Database>);
    Some(Named { setting: "PG_HOST", database })
}

fn parse_parts(host: &str, options: &StoreOptions) -> Result<PostgresOptions, Invalid> {
    let required = |variable: &str, value: &Option<String>| match given(value) {
        Some(value) => Ok(value.to_owned()),
        None => Err(Invalid::new(variable, "is required together with PG_HOST")),
    };
    Ok(PostgresOptions::Parts {
        host: host.to_owned(),
        port: number("PG_PORT", &options.pg_port, 1..=u16::MAX, 5432)?,
        user: required("PG_USER", &options.pg_user)?,
        password: given(&options.pg_password).map(str::to_owned),
        database: required("PG_DB_NAME", &options.pg_db_name)?,
    })
}

/// Without this check the timers would be kept in a file that the operator does not know of.
fn refuse_stray_parts(options: &StoreOptions) -> Result<(), Invalid> {
    let parts = [("PG_USER", &options.pg_user), ("PG_PASSWORD", &options.pg_password), ("PG_DB_NAME", &options.pg_db_name)];
    refuse_parts_without("PG_HOST", &parts)
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
        Err(Failure::Configuration("PostgreSQL has its own tool for this: pg_dump.".to_owned()))
    }

    fn restore(&self, _file: &Path, _replace: bool) -> Result<String, Failure> {
        Err(Failure::Configuration("PostgreSQL has its own tool for this: pg_restore.".to_owned()))
    }
}

async fn connect(options: &PostgresOptions, clock: &Arc<dyn Clock>) -> Result<PostgresStore, Failure> {
    const PAUSE: Duration = Duration::from_secs(1);
    let begun = clock.monotonic();
    loop {
        match PostgresStore::connect(options).await {
            Ok(store) => return Ok(store),
            Err(error @ OpenError::Unreachable(_)) if clock.monotonic() - begun < PATIENCE => {
                tracing::warn!("{error}; waiting for it");
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(not_opened(error)),
        }
    }
}

fn not_opened(error: OpenError) -> Failure {
    match error {
        OpenError::Address(rule) => Failure::Configuration(format!("DATABASE_URL is wrong: {rule}.")),
        error => Failure::Run(format!("{error}.")),
    }
}

/// Where the database is, without credentials.
fn location(options: &PostgresOptions) -> String {
    match options {
        PostgresOptions::Parts { host, port, database, .. } => format!("{host}:{port}/{database}"),
        PostgresOptions::Url(url) => {
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
            assert_eq!(location(&PostgresOptions::Url(url.to_owned())), shown);
        }
    }
}
