use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use clap::Args;
use domain::{Clock, Invalid};
use store::Store;
use store_sqlite::{BackupError, OpenError, RestoreError, SqliteStore};

use super::{DATABASE_URL, Database, Named, StoreKind, StoreOptions, no_such_scheme};
use crate::exit::Failure;

pub const KIND: StoreKind = StoreKind {
    schemes: &["sqlite"],
    url_form: "sqlite://FILE",
    from_url,
    from_parts,
    refuse_stray_parts: |_| Ok(()),
    public_causes: &[store_sqlite::NOT_IN_PLACE],
    metrics: store_sqlite::METRICS,
};

#[derive(Debug, Clone, Args)]
pub struct SqliteOptions {
    /// The SQLite file, as a plain path instead of a URL
    #[arg(long, env = "TIMER_DB_PATH", value_name = "FILE")]
    db_path: Option<PathBuf>,
}

pub const DEFAULT_FILE: &str = "timer.db";

/// The database where no setting names one.
pub fn default_database() -> Arc<dyn Database> {
    Arc::new(SqliteFile(PathBuf::from(DEFAULT_FILE)))
}

#[derive(Debug)]
struct SqliteFile(PathBuf);

fn from_url(url: &str) -> Result<Arc<dyn Database>, Invalid> {
    match url.split_once("://") {
        Some((_, path)) if path.contains('?') => {
            Err(Invalid::new(DATABASE_URL, "must be sqlite:// and a path: there are no parameters"))
        }
        Some((_, path)) if !path.is_empty() => Ok(Arc::new(SqliteFile(PathBuf::from(path)))),
        _ => Err(no_such_scheme()),
    }
}

fn from_parts(options: &StoreOptions) -> Option<Named> {
    let path = options.sqlite.db_path.clone()?;
    Some(Named { setting: "TIMER_DB_PATH", database: Ok(Arc::new(SqliteFile(path))) })
}

#[async_trait]
impl Database for SqliteFile {
    fn describe(&self) -> String {
        format!("SQLite file {}", self.0.display())
    }

    async fn open(&self, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Store>, Failure> {
        let store = SqliteStore::open(&self.0, Arc::clone(clock)).map_err(not_opened)?;
        Ok(Arc::new(store))
    }

    fn has_given_clock(&self) -> bool {
        true
    }

    fn backup(&self, file: &Path) -> Result<String, Failure> {
        store_sqlite::backup(&self.0, file).map_err(|error| match error {
            BackupError::Database(error) => not_opened(error),
            error => Failure::run(format!("{error}."), error),
        })?;
        Ok(format!("{} is a whole, checked copy of {}.", file.display(), self.0.display()))
    }

    fn restore(&self, file: &Path, replace: bool) -> Result<String, Failure> {
        store_sqlite::restore(&self.0, file, replace).map_err(|error| match error {
            RestoreError::Database(error) => not_opened(error),
            error => Failure::run(format!("{error}."), error),
        })?;
        Ok(format!("{} is now what {} holds.", self.0.display(), file.display()))
    }
}

/// A path that cannot be right is a matter of configuration; a file that is in use or damaged is not.
fn not_opened(error: OpenError) -> Failure {
    match error {
        OpenError::NoDirectory { .. } | OpenError::NotAllowed { .. } | OpenError::Foreign { .. } => {
            Failure::configuration(format!("The database {error} (DATABASE_URL or TIMER_DB_PATH names it)."), error)
        }
        error => Failure::run(format!("{error}."), error),
    }
}
