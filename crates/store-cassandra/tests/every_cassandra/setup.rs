//! Setting a keyspace up, and what people are told of it.

use std::sync::Arc;

use domain::SystemClock;
use futures_util::future::join_all;
use store::{HealthStore, Sharded};
use store_cassandra::{Cassandra, CassandraOptions, OpenError};
use store_partitioned::PartitionedStore;

#[tokio::test(flavor = "multi_thread")]
async fn many_processes_set_up_a_new_keyspace_at_once() {
    let server = crate::apart::server();
    let options = CassandraOptions::parse(&format!("{}&shards=5", server.new_keyspace())).unwrap();
    let opened = join_all((0..4).map(|_| async {
        let database = Arc::new(Cassandra::connect(&options).await.unwrap());
        let store = PartitionedStore::open(database, Arc::new(SystemClock::default()), options.shards).await.unwrap();
        store.probe().await.unwrap();
        store.shards()
    }));
    assert_eq!(opened.await, [5; 4]);
}

#[tokio::test]
async fn one_copy_is_noticed() {
    let server = crate::apart::server();
    let options = CassandraOptions::parse(&server.url("shared")).unwrap();
    let database = Cassandra::connect(&options).await.unwrap();
    assert_eq!(database.durability().weak_settings, ["replication_factor=1"], "its log is written before it answers");
}

#[tokio::test]
async fn a_server_that_is_not_there_cannot_be_reached() {
    let options = CassandraOptions::parse("cassandra://127.0.0.1:9/timer").unwrap();
    let refused = Cassandra::connect(&options).await.err().unwrap();
    assert!(matches!(refused, OpenError::Unreachable(_)), "{refused}");
}
