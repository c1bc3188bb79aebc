//! What is found at the first look, and what people see of a database.

use std::sync::Arc;

use domain::{Clock, SystemClock};
use mongodb::bson::{Document, doc};
use store::{Sharded, TimerStore};
use store_conformance::{secs, timer};
use store_mongodb::{Address, MongodbDatabase, OpenError};
use store_partitioned::{Database, PartitionedStore};

use super::{connect, server};

async fn open(url: &str, shards: u16) -> PartitionedStore {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    PartitionedStore::open(connect(url).await, clock, shards).await.unwrap()
}

#[tokio::test]
async fn a_database_keeps_the_number_of_shards_it_began_with() {
    let url = server().create_database();
    assert_eq!(open(&url, 8).await.shards(), 8);
    assert_eq!(open(&url, 16).await.shards(), 8);
}

#[tokio::test]
async fn a_standalone_server_is_noticed() {
    assert_eq!(connect(&server().url("any")).await.durability().weak_settings, ["a standalone server"]);
}

#[tokio::test]
async fn people_find_a_timer_by_its_id() {
    let url = server().create_database();
    let draft = timer("http://a.example/").namespace("shop").due_in(secs(1));
    let id = draft.id();
    open(&url, 4).await.create(vec![draft.build()]).await.unwrap();
    let client = mongodb::Client::with_uri_str(&url).await.unwrap();
    let rows = client.default_database().unwrap().collection::<Document>("rows");
    let key = format!("timers-{}/{}", id.shard(4).0, id.as_uuid().simple());
    assert!(rows.find_one(doc! { "_id": key }).await.unwrap().is_some());
}

/// Each range is answered from an index: none looks at documents that are not in it.
#[tokio::test]
async fn every_index_is_used() {
    let url = server().create_database();
    connect(&url).await.set_up().await.unwrap();
    let client = mongodb::Client::with_uri_str(&url).await.unwrap();
    let database = client.default_database().unwrap();
    for field in ["_id", "i1", "i2", "i3", "i4"] {
        let find = doc! { "find": "rows", "filter": { field: { "$gte": "a/", "$lt": "a0" } }, "sort": { field: -1 }, "limit": 5 };
        let plan = database.run_command(doc! { "explain": find, "verbosity": "queryPlanner" }).await.unwrap().to_string();
        assert!(plan.contains("IXSCAN") && !plan.contains("COLLSCAN") && !plan.contains("\"SORT\""), "{field}: {plan}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let url = format!("mongodb://127.0.0.1:{}/timer?serverSelectionTimeoutMS=300", throwaway::free_port());
    let refused = MongodbDatabase::connect(&Address::parse(&url).unwrap()).await.err().unwrap();
    assert!(matches!(refused, OpenError::Unreachable(_)), "{refused}");
}
