//! The databases that timers can be kept in: one file and one entry of [`STORES`] each. Nothing else in this crate names a
//! database.

mod cassandra;
mod dynamodb;
mod mongodb;
mod mysql;
mod open_deadline;
mod postgres;
mod sqlite;

use std::{fmt, path::Path, sync::Arc};

use async_trait::async_trait;
use clap::Args;
use domain::{Clock, Invalid, Metric};
use store::Store;

use self::{postgres::PostgresOptions, sqlite::SqliteOptions};
use crate::{
    exit::Failure,
    values::{Setting, alternatives, refuse_two},
};

/// Every kind of store, in the order in which help and error messages name them.
pub const STORES: &[StoreKind] = &[sqlite::KIND, postgres::KIND, mysql::KIND, mongodb::KIND, cassandra::KIND, dynamodb::KIND];

/// How databases of one kind are named in the settings.
pub struct StoreKind {
    /// The schemes of its URLs. Messages name the first.
    schemes: &'static [&'static str],
    /// What its URLs look like, for help.
    url_form: &'static str,
    /// Reads a URL that has one of the schemes.
    from_url: fn(&str) -> Result<Arc<dyn Database>, Invalid>,
    /// The database that settings of its own name instead of a URL, where they do.
    from_parts: fn(&StoreOptions) -> Option<Named>,
    /// Refuses settings of a database that no setting names: they would be passed over.
    refuse_stray_parts: fn(&StoreOptions) -> Result<(), Invalid>,
    /// Reasons why it cannot be written that clients may read. Others may name files and hosts, which are for the log.
    pub public_causes: &'static [&'static str],
    /// What its store measures.
    pub metrics: &'static [Metric],
}

/// A database that a setting names.
struct Named {
    setting: &'static str,
    database: Result<Arc<dyn Database>, Invalid>,
}

/// A database that is named but not opened. What it prints for debugging holds no credentials.
#[async_trait]
pub trait Database: fmt::Debug + Send + Sync {
    /// What to call it in messages: its kind and where it is, without credentials.
    fn describe(&self) -> String;

    /// Opens the database and brings it up to date. A server may take a while to come up: it is often started together with
    /// this service.
    async fn open(&self, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Store>, Failure>;

    /// Whether its time is that of the clock it is opened with, and not that of a server.
    fn has_given_clock(&self) -> bool {
        false
    }

    /// Copies the database into a new file, also while a service uses it. Returns a sentence that says what was done.
    fn backup(&self, file: &Path) -> Result<String, Failure>;

    /// Puts a backup in the place of the database, while no service uses it. A database that is there is lost with
    /// `replace` and otherwise refused. Returns a sentence that says what was done.
    fn restore(&self, file: &Path, replace: bool) -> Result<String, Failure>;
}

/// Which database to use. A kind of store may have settings of its own beside the URL.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Where timers are kept")]
pub struct StoreOptions {
    #[arg(long, env = DATABASE_URL, hide_env_values = true, value_name = "URL", value_parser = database_url(), help = url_help())]
    database_url: Option<Arc<dyn Database>>,
    #[command(flatten)]
    sqlite: SqliteOptions,
    #[command(flatten)]
    postgres: PostgresOptions,
}

const DATABASE_URL: &str = "DATABASE_URL";

/// Finds the database that the settings name, or the default where they name none. It is not opened.
pub fn resolve(options: &StoreOptions) -> Result<Arc<dyn Database>, Invalid> {
    let by_url = options.database_url.clone().map(|database| Named { setting: DATABASE_URL, database: Ok(database) });
    let by_parts = STORES.iter().filter_map(|kind| (kind.from_parts)(options));
    let mut named: Vec<_> = by_url.into_iter().chain(by_parts).collect();
    refuse_two(named.iter().map(|named| (named.setting, true)))?;
    match named.pop() {
        Some(named) => named.database,
        None => {
            STORES.iter().try_for_each(|kind| (kind.refuse_stray_parts)(options))?;
            Ok(sqlite::default_database())
        }
    }
}

fn database_url() -> Setting<Arc<dyn Database>> {
    Setting::new(|_, url| {
        let scheme = url.split_once("://").map(|(scheme, _)| scheme);
        match STORES.iter().find(|kind| scheme.is_some_and(|scheme| kind.schemes.contains(&scheme))) {
            Some(kind) => (kind.from_url)(url),
            None => Err(no_such_scheme()),
        }
    })
}

fn no_such_scheme() -> Invalid {
    let schemes: Vec<_> = STORES.iter().filter_map(|kind| kind.schemes.first()).map(|scheme| format!("{scheme}://")).collect();
    Invalid::new(DATABASE_URL, format!("must begin with {}", alternatives(&schemes)))
}

fn url_help() -> String {
    let forms: Vec<_> = STORES.iter().map(|kind| kind.url_form).collect();
    format!("{}; unset means sqlite://{}", alternatives(&forms), sqlite::DEFAULT_FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_leads_to_one_store() {
        let mut schemes: Vec<_> = STORES.iter().flat_map(|kind| kind.schemes).collect();
        let count = schemes.len();
        schemes.sort_unstable();
        schemes.dedup();
        assert_eq!(schemes.len(), count);
    }
}
