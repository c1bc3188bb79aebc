//! The whole contract on a real MySQL and on a real TiDB: for `make soak`, because it takes minutes, and few machines have a TiDB.
//!
//! ```text
//! TIDB_SERVER_BIN=$(scripts/tidb.sh --build) cargo test --package store-mysql --test every_server
//! ```
#![expect(clippy::unwrap_used, reason = "these are tests: a panic is how they fail")]

#[path = "../mysql/database.rs"]
mod database;

mod mysql {
    use crate::database::Database;

    store_conformance::suite!(Database::on_mysql());
}

mod tidb {
    use crate::database::Database;

    store_conformance::suite!(Database::on(throwaway::tidb().unwrap()));
}
