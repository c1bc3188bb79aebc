//! How fast it is, on an idle machine:
//!
//! ```text
//! cargo test --release --package store-mongodb --test every_mongodb -- --ignored --nocapture rates
//! ```

use std::sync::Arc;

use async_trait::async_trait;
use domain::SystemClock;
use store::Store;
use store_conformance::Fixture;
use store_mongodb::Address;
use store_partitioned::PartitionedStore;

use super::{connect, server};

struct Whole(String);

#[async_trait]
impl Fixture for Whole {
    async fn open(&self) -> Arc<dyn Store> {
        let (database, shards) = (connect(&self.0).await, Address::parse(&self.0).unwrap().shards());
        Arc::new(PartitionedStore::open(database, Arc::new(SystemClock::default()), shards).await.unwrap())
    }
}

#[ignore = "measures"]
#[tokio::test(flavor = "multi_thread")]
async fn rates() {
    println!("{}", store_conformance::measure(&Whole(server().create_database()), "MongoDB", 40_000).await);
}
