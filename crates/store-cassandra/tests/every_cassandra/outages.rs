//! The server dies under load, or its answers get lost: what was acknowledged is there, and what was written is recognized.

use std::sync::Arc;

use domain::SystemClock;
use store::StoreError;
use store_cassandra::{Cassandra, CassandraOptions};
use store_conformance::outages;
use store_partitioned::{
    Change, Columns, Condition, Consistency, Database, Outcome, Partition, PartitionedStore, Positions, Version, Write,
};

use crate::proxy::{Cut, Proxy};

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

// ── Lost answers ───────────────────────────────────────────────────────────────────────────────────────────────────

/// A database behind a proxy.
async fn connect(proxy: &Proxy) -> Cassandra {
    Cassandra::connect(&proxy.options).await.unwrap()
}

fn put(key: &[u8], condition: Condition, version: u128) -> Write {
    let change =
        Change::Put { version: Version(version), head: b"head".to_vec(), body: None, log: None, positions: Positions::default() };
    Write { key: key.to_vec(), condition, change, before: Positions::default() }
}

/// The versions of the rows `a` and `b`.
async fn versions(database: &Cassandra, partition: &Partition) -> [Option<u128>; 2] {
    let keys = [b"a".to_vec(), b"b".to_vec()];
    let rows = database.read(partition, &keys, Columns::HEAD, Consistency::Linearizable).await.unwrap();
    [0_usize, 1].map(|place| rows[place].as_ref().map(|row| row.version.0))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_answer_is_lost_is_read_back() {
    let proxy = Proxy::start().await;
    let (database, partition) = (connect(&proxy).await, Partition::new("answer-lost"));
    assert_eq!(versions(&database, &partition).await, [None, None]);

    proxy.cut(Cut::AfterTheWrite);
    let created =
        database.write(&partition, vec![put(b"a", Condition::Absent, 1), put(b"b", Condition::Absent, 2)]).await.unwrap();
    assert!(!proxy.is_armed());
    assert!(matches!(created.as_slice(), [Outcome::Applied, Outcome::Applied]), "{created:?}");

    proxy.cut(Cut::AfterTheWrite);
    let changed = vec![put(b"a", Condition::Is(Version(1)), 3), put(b"b", Condition::Is(Version(9)), 4)];
    let changed = database.write(&partition, changed).await.unwrap();
    assert!(!proxy.is_armed());
    assert!(matches!(changed[0], Outcome::Applied), "what was refused with its batch is sent again: {changed:?}");
    assert!(matches!(&changed[1], Outcome::Failed(StoreError::Unknown(_))), "it cannot be told from one under way: {changed:?}");
    assert_eq!(versions(&database, &partition).await, [Some(3), Some(2)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_never_arrived_is_unknown() {
    let proxy = Proxy::start().await;
    let (database, partition) = (connect(&proxy).await, Partition::new("never-arrived"));
    assert_eq!(versions(&database, &partition).await, [None, None]);

    proxy.cut(Cut::BeforeTheWrite);
    let outcomes = database.write(&partition, vec![put(b"a", Condition::Absent, 1)]).await.unwrap();
    assert!(!proxy.is_armed());
    assert!(matches!(outcomes.as_slice(), [Outcome::Failed(StoreError::Unknown(_))]), "{outcomes:?}");
    assert_eq!(versions(&database, &partition).await, [None, None]);
    let again = database.write(&partition, vec![put(b"a", Condition::Absent, 1)]).await.unwrap();
    assert!(matches!(again.as_slice(), [Outcome::Applied]), "{again:?}");
}
