//! The contract of drivers, all behaviours in one table: each has a partition of its own.

use std::sync::Arc;

use store_partitioned::Database;

use super::{connect, server};

async fn open() -> Arc<dyn Database> {
    let database = connect(&server().url("driver")).await;
    database.set_up().await.unwrap();
    database
}

store_partitioned::database_suite!(open().await);
