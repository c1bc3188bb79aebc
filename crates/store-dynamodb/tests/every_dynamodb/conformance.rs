//! The contract of every store, on a table of its own for each behaviour.

use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_dynamodb::{primitives::Blob, types::AttributeValue};
use domain::{Clock, SystemClock, TimerId};
use store::Store;
use store_conformance::Fixture;
use store_partitioned::PartitionedStore;

use super::{client, connect, key, server, table};

const SHARDS: u16 = 4;

pub struct OneTable {
    url: String,
    clock: Arc<dyn Clock>,
}

impl OneTable {
    fn new() -> Self {
        Self::at(server().new_table())
    }

    pub fn at(url: String) -> Self {
        Self { url, clock: Arc::new(SystemClock::default()) }
    }
}

#[async_trait]
impl Fixture for OneTable {
    async fn open(&self) -> Arc<dyn Store> {
        let database = connect(&self.url).await;
        Arc::new(PartitionedStore::open(database, Arc::clone(&self.clock), SHARDS).await.unwrap())
    }

    async fn another_process(&self) -> Option<Arc<dyn Store>> {
        Some(self.open().await)
    }

    async fn spoil(&self, id: TimerId) -> bool {
        let partition = format!("timers-{}", id.shard(SHARDS).0);
        // The first byte says that what follows is not compressed.
        let body = [&[0], &br#"{"asked":0,"callback":"{","delivery":"at_least_once"}"#[..]].concat();
        let spoiled = client(server().port())
            .update_item()
            .table_name(table(&self.url))
            .set_key(Some(key(&partition, id.as_uuid().as_bytes())))
            .update_expression("SET b = :b")
            .condition_expression("attribute_exists(p)")
            .expression_attribute_values(":b", AttributeValue::B(Blob::new(body)));
        spoiled.send().await.is_ok()
    }
}

store_conformance::suite!(OneTable::new());
