//! The server dies under load: what was acknowledged is there, and the store finds it again.

use std::sync::Arc;

use domain::SystemClock;
use store_cassandra::{Cassandra, CassandraOptions};
use store_conformance::outages;
use store_partitioned::PartitionedStore;

/// A start of Cassandra takes many seconds.
const KILLS: usize = 2;

async fn open(server: &throwaway::Cassandra) -> PartitionedStore {
    let options = CassandraOptions::parse(&server.new_keyspace()).unwrap();
    let database = Arc::new(Cassandra::connect(&options).await.unwrap());
    PartitionedStore::open(database, Arc::new(SystemClock::default()), options.shards).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_kills_of_the_server() {
    let server = throwaway::Cassandra::start().unwrap();
    let store = Arc::new(open(&server).await);
    let acknowledged = outages::what_was_acknowledged_survives_kills(store, KILLS, || {
        server.kill(0);
        server.start_again(0);
    })
    .await;
    println!("{KILLS} kills: {acknowledged} timers were acknowledged, and all of them are there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_away_changes_nothing_and_is_found_again() {
    let server = throwaway::Cassandra::start().unwrap();
    let store = open(&server).await;
    let (stop, start) = (|| server.kill(0), || server.start_again(0));
    outages::a_server_that_is_away_changes_nothing_and_is_found_again(&store, stop, start).await;
}
