//! The database in memory passes the suite of drivers.

use std::sync::Arc;

use store_partitioned::{Database, Memory};

store_partitioned::database_suite!(Arc::new(Memory::default()) as Arc<dyn Database>);
