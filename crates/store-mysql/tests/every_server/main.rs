//! The whole contract on a real MySQL and a real TiDB, for `make soak`, because it takes minutes.
//!
//! ```text
//! cargo test --package store-mysql --test every_server mysql
//! MYSQL_SERVER_ROOT=$(scripts/mysql.sh --fetch) cargo test --package store-mysql --test every_server mysql
//! TIDB_SERVER_BIN=$(scripts/tidb.sh --build) cargo test --package store-mysql --test every_server tidb -- --test-threads=1
//! ```
#![expect(clippy::unwrap_used, reason = "these are tests: a panic is how they fail")]

#[path = "../mysql/database.rs"]
mod database;

mod mysql {
    use crate::database::Database;

    store_conformance::suite!(Database::on(throwaway::mysql().unwrap()));
}

mod tidb {
    use crate::database::Database;

    store_conformance::suite!(Database::on(throwaway::tidb().unwrap()));
}
