//! The databases that timers can be kept in: one file and one entry of [`STORES`] each. Nothing else in this crate names a
//! database.

mod postgres;
mod sqlite;

use std::{fmt, path::Path, sync::Arc};

use async_trait::async_trait;
use domain::{Clock, Invalid, Metric};
use store::Store;

use crate::{cli::StoreOptions, exit::Failure, settings::given};

/// Every kind of store, in the order in which help and error messages name them.
pub const STORES: &[StoreKind] = &[sqlite::KIND, postgres::KIND];

/// How databases of one kind are named in the settings.
pub struct StoreKind {
    /// The schemes of its URLs. Messages name the first.
    schemes: &'static [&'static str],
    /// What its URLs look like, for help.
    url_form: &'static str,
    /// Reads a URL that has one of the schemes.
    from_url: fn(&str) -> Result<Arc<dyn Database>, Invalid>,
    /// The database that settings other than `DATABASE_URL` name, where they do.
    from_parts: fn(&StoreOptions) -> Option<Named>,
    /// Refuses settings of a database that no setting names: they would be passed over.
    refuse_stray_parts: fn(&StoreOptions) -> Result<(), Invalid>,
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

    /// Copies the database into a new file, also while a service uses it. Returns a sentence that says what was done.
    fn backup(&self, file: &Path) -> Result<String, Failure>;

    /// Puts a backup in the place of the database, while no service uses it. A database that is there is lost with
    /// `replace` and otherwise refused. Returns a sentence that says what was done.
    fn restore(&self, file: &Path, replace: bool) -> Result<String, Failure>;
}

const DATABASE_URL: &str = "DATABASE_URL";

/// Finds the database that the settings name, or the default where they name none.
pub fn parse_database(options: &StoreOptions) -> Result<Arc<dyn Database>, Invalid> {
    let by_url = given(&options.database_url).map(|url| Named { setting: DATABASE_URL, database: parse_url(url) });
    let by_parts = STORES.iter().filter_map(|kind| (kind.from_parts)(options));
    let mut named = by_url.into_iter().chain(by_parts);
    match (named.next(), named.next()) {
        (Some(first), Some(second)) => {
            let rule = format!("and {} are both set: give only one of them", second.setting);
            Err(Invalid::new(first.setting, rule))
        }
        (Some(named), None) => named.database,
        (None, _) => {
            STORES.iter().try_for_each(|kind| (kind.refuse_stray_parts)(options))?;
            Ok(sqlite::default_database())
        }
    }
}

fn parse_url(url: &str) -> Result<Arc<dyn Database>, Invalid> {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    match STORES.iter().find(|kind| scheme.is_some_and(|scheme| kind.schemes.contains(&scheme))) {
        Some(kind) => (kind.from_url)(url),
        None => Err(no_such_scheme()),
    }
}

fn no_such_scheme() -> Invalid {
    let schemes = STORES.iter().filter_map(|kind| kind.schemes.first()).map(|scheme| format!("{scheme}://"));
    Invalid::new(DATABASE_URL, format!("must begin with {}", alternatives(schemes)))
}

/// What `DATABASE_URL` may be, for help.
pub fn url_forms() -> String {
    alternatives(STORES.iter().map(|kind| kind.url_form.to_owned()))
}

/// Joins as an enumeration: `a, b or c`.
fn alternatives(items: impl Iterator<Item = String>) -> String {
    let items: Vec<_> = items.collect();
    match items.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => items.concat(),
    }
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

    #[test]
    fn alternatives_read_as_an_enumeration() {
        for (items, text) in [(vec!["a"], "a"), (vec!["a", "b"], "a or b"), (vec!["a", "b", "c"], "a, b or c")] {
            assert_eq!(alternatives(items.into_iter().map(str::to_owned)), text);
        }
    }
}
