//! The whole contract on a real MySQL, for `make soak`, because it takes minutes; and on a real TiDB, for the work on its dialect: as long as
//! the store refuses TiDB at the start (`open.rs`), all of that half fails.
//!
//! ```text
//! cargo test --package store-mysql --test every_server mysql
//! TIDB_SERVER_BIN=$(scripts/tidb.sh --build) cargo test --package store-mysql --test every_server tidb
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
