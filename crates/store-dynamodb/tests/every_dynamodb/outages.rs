//! The server dies under load, or its answers get lost: what was acknowledged is there, and what was written is recognized.

use std::sync::Arc;

use domain::{Clock, SystemClock};
use store::StoreError;
use store_conformance::outages;
use store_dynamodb::DynamodbDatabase;
use store_partitioned::{
    Change, Columns, Condition, Consistency, Database, Outcome, Partition, PartitionedStore, Positions, Version, Write,
};
use throwaway::DynamoDb;

use super::{
    connect,
    proxy::{Fault, Proxy},
};

const KILLS: usize = 5;

async fn open(url: &str) -> PartitionedStore {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    PartitionedStore::open(connect(url).await, clock, 4).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_kills_of_the_server() {
    let server = DynamoDb::start().unwrap();
    let store = Arc::new(open(&server.new_table()).await);
    let acknowledged = outages::what_was_acknowledged_survives_kills(store, KILLS, || {
        server.stop_immediate();
        server.start_again();
    })
    .await;
    println!("{KILLS} kills: {acknowledged} timers were acknowledged, and all of them are there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_away_changes_nothing_and_is_found_again() {
    let server = DynamoDb::start().unwrap();
    let store = open(&server.new_table()).await;
    let (stop, start) = (|| server.stop_immediate(), || server.start_again());
    outages::a_server_that_is_away_changes_nothing_and_is_found_again(&store, stop, start).await;
}

// ── Lost answers ───────────────────────────────────────────────────────────────────────────────────────────────────

fn put(key: &[u8], condition: Condition, version: u128) -> Write {
    let change =
        Change::Put { version: Version(version), head: b"head".to_vec(), body: None, log: None, positions: Positions::default() };
    Write { key: key.to_vec(), condition, change, before: Positions::default() }
}

async fn one(database: &DynamodbDatabase, partition: &Partition, write: Write) -> Outcome {
    database.write(partition, vec![write]).await.unwrap().remove(0)
}

/// The version of a row, if there is one.
async fn version(database: &DynamodbDatabase, partition: &Partition, key: &[u8]) -> Option<u128> {
    let keys = [key.to_vec()];
    let rows = database.read(partition, &keys, Columns::HEAD, Consistency::Linearizable).await.unwrap();
    rows.into_iter().flatten().next().map(|row| row.version.0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_answer_is_lost_is_read_back() {
    let proxy = Proxy::start().await;
    let (database, partition) = (connect(&proxy.url).await, Partition::new("lost"));
    database.set_up().await.unwrap();
    let removal =
        Write { key: b"a".to_vec(), condition: Condition::Is(Version(3)), change: Change::Delete, before: Positions::default() };
    for (write, is_recognized, then) in [
        (put(b"a", Condition::Absent, 1), true, Some(1)),
        (put(b"a", Condition::Is(Version(1)), 3), true, Some(3)),
        // Neither can be told from one that is under way still.
        (put(b"a", Condition::Is(Version(9)), 4), false, Some(3)),
        (removal, false, None),
    ] {
        proxy.arm(Fault::CutAfterTheWrite);
        let outcome = one(&database, &partition, write).await;
        assert!(!proxy.is_armed());
        match outcome {
            Outcome::Applied => assert!(is_recognized),
            Outcome::Failed(StoreError::Unknown(_)) => assert!(!is_recognized),
            outcome => panic!("{outcome:?}"),
        }
        assert_eq!(version(&database, &partition, b"a").await, then);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_never_arrived_is_unknown() {
    let proxy = Proxy::start().await;
    let (database, partition) = (connect(&proxy.url).await, Partition::new("lost"));
    database.set_up().await.unwrap();
    proxy.arm(Fault::CutBeforeTheWrite);
    let outcome = one(&database, &partition, put(b"a", Condition::Absent, 1)).await;
    assert!(matches!(outcome, Outcome::Failed(StoreError::Unknown(_))), "{outcome:?}");
    assert_eq!(version(&database, &partition, b"a").await, None);
    let outcome = one(&database, &partition, put(b"a", Condition::Absent, 1)).await;
    assert!(matches!(outcome, Outcome::Applied), "{outcome:?}");
}

// ── Too much at once ───────────────────────────────────────────────────────────────────────────────────────────────

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_throttled_write_is_tried_again_and_then_not_done() {
    let proxy = Proxy::start().await;
    let (database, partition) = (connect(&proxy.url).await, Partition::new("throttled"));
    database.set_up().await.unwrap();

    proxy.arm(Fault::Throttle(2));
    let outcome = one(&database, &partition, put(b"a", Condition::Absent, 1)).await;
    assert!(matches!(outcome, Outcome::Applied) && !proxy.is_armed(), "{outcome:?}");

    proxy.arm(Fault::Throttle(1_000));
    let outcome = one(&database, &partition, put(b"b", Condition::Absent, 2)).await;
    assert!(
        matches!(&outcome, Outcome::Failed(StoreError::Unavailable(why)) if why.as_str().contains("too many writes")),
        "{outcome:?}"
    );
    assert_eq!(version(&database, &partition, b"b").await, None);
}
