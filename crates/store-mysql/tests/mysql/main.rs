//! What holds for this store on a real MariaDB and a real MySQL: the contract, and what is these databases' own.
#![expect(clippy::unwrap_used, reason = "these are tests: a panic is how they fail")]

mod conformance;

use store_mysql::{MysqlOptions, MysqlStore};

/// A store on the database at `url`, set up.
async fn open(url: &str) -> MysqlStore {
    let store = MysqlStore::connect(&MysqlOptions(url.to_owned())).await.unwrap();
    store.migrate().await.unwrap();
    store
}
