//! The contract of every store, on a database of its own for each behaviour.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{Clock, SystemClock, TimerId};
use mongodb::bson::{Binary, Document, doc, spec::BinarySubtype};
use store::Store;
use store_conformance::Fixture;
use store_partitioned::PartitionedStore;

use super::{connect, server};

const SHARDS: u16 = 4;

struct OneDatabase {
    url: String,
    clock: Arc<dyn Clock>,
}

impl OneDatabase {
    fn new() -> Self {
        Self { url: server().create_database(), clock: Arc::new(SystemClock::default()) }
    }
}

#[async_trait]
impl Fixture for OneDatabase {
    async fn open(&self) -> Arc<dyn Store> {
        let database = connect(&self.url).await;
        Arc::new(PartitionedStore::open(database, Arc::clone(&self.clock), SHARDS).await.unwrap())
    }

    async fn another_process(&self) -> Option<Arc<dyn Store>> {
        Some(self.open().await)
    }

    async fn spoil(&self, id: TimerId) -> bool {
        let client = mongodb::Client::with_uri_str(&self.url).await.unwrap();
        let rows = client.default_database().unwrap().collection::<Document>("rows");
        let key = format!("timers-{}/{}", id.shard(SHARDS).0, id.as_uuid().simple());
        let body = br#"{"asked":0,"callback":"{","delivery":"at_least_once"}"#;
        let body = Binary { subtype: BinarySubtype::Generic, bytes: body.to_vec() };
        rows.update_one(doc! { "_id": key }, doc! { "$set": { "body": body } }).await.unwrap().matched_count == 1
    }
}

store_conformance::suite!(OneDatabase::new());
