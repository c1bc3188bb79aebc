//! The store on the database in memory passes the suite that every store must pass.

#![expect(clippy::unwrap_used, reason = "a fixture that cannot be made is a failed test")]

use std::sync::Arc;

use async_trait::async_trait;
use domain::{Clock, SystemClock, TimerId};
use store::{OperationId, Store};
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
        let body = br#"{"asked":0,"callback":"{","delivery":"at_least_once"}"#;
        self.database.spoil(&timers(id), id.as_uuid().as_bytes(), body)
    }

    async fn spoil_summary(&self, id: TimerId) -> bool {
        self.database.spoil_head(&timers(id), id.as_uuid().as_bytes(), b"{")
    }

    async fn spoil_options(&self, id: TimerId) -> bool {
        let body = br#"{"asked":0,"callback":"{}","delivery":"at_least_once","options":"{"}"#;
        self.database.spoil(&timers(id), id.as_uuid().as_bytes(), body)
    }

    async fn spoil_operation(&self, id: OperationId) -> bool {
        // Operations come before what guards their number.
        let key = [&[1][..], id.0.as_uuid().as_bytes()].concat();
        self.database.spoil_head(&Partition::new("operations"), &key, b"{")
    }
}

fn timers(id: TimerId) -> Partition {
    Partition::new(format!("timers-{}", id.shard(SHARDS).0))
}

store_conformance::suite!(InMemory::new());
