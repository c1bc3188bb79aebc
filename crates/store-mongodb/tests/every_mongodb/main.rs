//! What holds on a real MongoDB: the contract of drivers, the contract of stores, and what is this database's own.
//!
//! ```text
//! scripts/mongodb.sh --fetch && cargo test --package store-mongodb --test every_mongodb
//! ```
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "these are tests: a panic is how they fail")]

mod conformance;
mod driver;
mod outages;
mod rates;
mod setup;

use std::sync::Arc;

use store_mongodb::{Address, MongodbDatabase};
use throwaway::Mongodb;

/// The server that all tests share.
fn server() -> &'static Mongodb {
    throwaway::mongodb().expect("there is no MongoDB here: run scripts/mongodb.sh --fetch")
}

/// The database at `url`, not set up.
async fn connect(url: &str) -> Arc<MongodbDatabase> {
    Arc::new(MongodbDatabase::connect(&Address::parse(url).unwrap()).await.unwrap())
}
