//! How fast it is, on an idle machine:
//!
//! ```text
//! cargo test --release --package store-cassandra --test every_cassandra -- --ignored --nocapture rates
//! ```

use std::sync::Arc;

use async_trait::async_trait;
use domain::SystemClock;
use store::Store;
use store_cassandra::{Cassandra, CassandraOptions};
use store_conformance::Fixture;
use store_partitioned::PartitionedStore;

struct Whole(String);

#[async_trait]
impl Fixture for Whole {
    async fn open(&self) -> Arc<dyn Store> {
        let options = CassandraOptions::parse(&self.0).unwrap();
        let database = Arc::new(Cassandra::connect(&options).await.unwrap());
        Arc::new(PartitionedStore::open(database, Arc::new(SystemClock::default()), options.shards).await.unwrap())
    }
}

/// Twice, because the first time a Java machine is cold.
#[ignore = "measures"]
#[tokio::test(flavor = "multi_thread")]
async fn rates() {
    for name in ["Cassandra, cold", "Cassandra"] {
        println!("{}", store_conformance::measure(&Whole(crate::apart::server().new_keyspace()), name, 40_000).await);
    }
}
