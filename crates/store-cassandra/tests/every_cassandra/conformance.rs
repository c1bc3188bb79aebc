//! The contract of every store.

use std::sync::Arc;

use domain::{Clock, SystemClock, TimerId};
use store::Store;
use store_conformance::Fixture;
use store_partitioned::{
    Change, Columns, Condition, Consistency, Database, Outcome, Partition, PartitionedStore, Positions, Version, Write,
};
use uuid::Uuid;

use crate::apart::{Apart, connect};

const SHARDS: u16 = 4;

struct OnCassandra {
    prefix: String,
    clock: Arc<dyn Clock>,
}

impl OnCassandra {
    fn new() -> Self {
        let prefix = format!("t{}", Uuid::now_v7().simple());
        Self { prefix, clock: Arc::new(SystemClock::default()) }
    }

    /// A process of its own, as far as the database can tell.
    async fn database(&self) -> Arc<dyn Database> {
        Arc::new(Apart { database: connect().await, prefix: self.prefix.clone() })
    }
}

#[async_trait::async_trait]
impl Fixture for OnCassandra {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(PartitionedStore::open(self.database().await, Arc::clone(&self.clock), SHARDS).await.unwrap())
    }

    async fn another_process(&self) -> Option<Arc<dyn Store>> {
        Some(self.open().await)
    }

    /// Writes a body that cannot be read, and leaves everything else.
    async fn spoil(&self, id: TimerId) -> bool {
        let (database, partition) = (self.database().await, Partition::new(format!("timers-{}", id.shard(SHARDS).0)));
        let key = id.as_uuid().as_bytes().to_vec();
        let row = database.read(&partition, std::slice::from_ref(&key), Columns::HEAD, Consistency::Linearizable).await.unwrap();
        let Some(row) = row.into_iter().next().flatten() else { return false };
        let body = br#"{"asked":0,"callback":"{","delivery":"at_least_once"}"#.to_vec();
        let change = Change::Put {
            version: Version(Uuid::now_v7().as_u128()),
            head: row.head,
            body: Some(body),
            log: None,
            // None before and none after: the entries stay as they are.
            positions: Positions::default(),
        };
        let write = Write { key, condition: Condition::Is(row.version), change, before: Positions::default() };
        let outcomes = database.write(&partition, vec![write]).await.unwrap();
        matches!(outcomes[..], [Outcome::Applied])
    }
}

store_conformance::suite!(OnCassandra::new());
