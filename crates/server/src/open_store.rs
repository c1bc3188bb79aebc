use std::{sync::Arc, time::Duration};

use domain::Clock;
use store::Store;
use store_postgres::{OpenError, PostgresOptions, PostgresStore};
use store_sqlite::SqliteStore;

use crate::{exit::Failure, settings::Database};

/// A store that is ready for work, and what to call it.
pub struct Opened {
    pub store: Arc<dyn Store>,
    pub name: String,
}

/// How long a database server may take to come up: it is often started together with this service.
const PATIENCE: Duration = Duration::from_secs(30);

/// Opens the database and brings it up to date.
pub async fn open(database: &Database, clock: &Arc<dyn Clock>) -> Result<Opened, Failure> {
    match database {
        Database::Sqlite(path) => {
            let store = SqliteStore::open(path, Arc::clone(clock)).map_err(not_opened)?;
            Ok(Opened { store: Arc::new(store), name: format!("SQLite file {}", path.display()) })
        }
        Database::Postgres(options) => {
            let store = connect(options, clock).await?;
            store.migrate().await.map_err(refused)?;
            Ok(Opened { store: Arc::new(store), name: format!("PostgreSQL at {}", place(options)) })
        }
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
            Err(error) => return Err(refused(error)),
        }
    }
}

/// A path that cannot be right is a matter of configuration; a file that is in use or damaged is not.
pub fn not_opened(error: store_sqlite::OpenError) -> Failure {
    use store_sqlite::OpenError::{Foreign, NoDirectory, NotAllowed};
    match error {
        NoDirectory { .. } | NotAllowed { .. } | Foreign { .. } => {
            Failure::Configuration(format!("The database {error} (DATABASE_URL or TIMER_DB_PATH names it)."))
        }
        error => Failure::Run(format!("{error}.")),
    }
}

fn refused(error: OpenError) -> Failure {
    match error {
        OpenError::Address(rule) => Failure::Configuration(format!("DATABASE_URL is wrong: {rule}.")),
        error => Failure::Run(format!("{error}.")),
    }
}

/// Where the database is, without what is needed to get in.
fn place(options: &PostgresOptions) -> String {
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
            assert_eq!(place(&PostgresOptions::Url(url.to_owned())), shown);
        }
    }
}
