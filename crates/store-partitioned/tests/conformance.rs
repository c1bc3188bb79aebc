//! The store on the database in memory passes the suite that every store must pass.

#![expect(clippy::unwrap_used, reason = "a fixture that cannot be made is a failed test")]

use std::sync::Arc;

use async_trait::async_trait;
use domain::{Clock, SystemClock, TimerId};
use store::Store;
use store_conformance::Fixture;
use store_partitioned::{Memory, Partition, PartitionedStore};

const SHARDS: u16 = 4;

struct InMemory {
    database: Memory,
    clock: Arc<dyn Clock>,
}

impl InMemory {
    fn new() -> Self {
        Self { database: Memory::default(), clock: Arc::new(SystemClock::default()) }
    }
}

#[async_trait]
impl Fixture for InMemory {
    async fn open(&self) -> Arc<dyn Store> {
        let database = Arc::new(self.database.clone());
        Arc::new(PartitionedStore::open(database, Arc::clone(&self.clock), SHARDS).await.unwrap())
    }

    async fn another_process(&self) -> Option<Arc<dyn Store>> {
        Some(self.open().await)
    }

    async fn spoil(&self, id: TimerId) -> bool {
        let partition = Partition::new(format!("timers-{}", id.shard(SHARDS).0));
        let body = br#"{"asked":0,"callback":"{","delivery":"at_least_once"}"#;
        self.database.spoil(&partition, id.as_uuid().as_bytes(), body)
    }
}

store_conformance::suite!(InMemory::new());
