//! The server dies under load and comes back: what was acknowledged is there, and the store goes on by itself.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use domain::{Next, TimerId};
use store::{DueStore, HealthStore, Settlement, StoreError, TimerStore};
use store_conformance::{NOW, timer};
use store_mysql::MysqlStore;
use throwaway::Mysql;

const KILLS: usize = 5;
const WRITERS: u64 = 4;
/// A kill should find writes under way.
const WRITTEN_BETWEEN: usize = 40;
const PATIENCE: Duration = Duration::from_secs(30);

/// Registers timers one by one until it is told to stop, and keeps the ids of those that were acknowledged.
async fn register(store: Arc<MysqlStore>, writer: u64, is_over: Arc<AtomicBool>, acknowledged: Arc<Mutex<Vec<TimerId>>>) {
    for number in 0.. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let new = timer("http://a.example/").numbered(writer << 32 | number).build();
        let id = new.definition.id;
        if store.create(vec![new]).await.is_ok() {
            acknowledged.lock().unwrap().push(id);
        }
    }
}

async fn until(what: &str, mut look: impl AsyncFnMut() -> bool) {
    let looking = async {
        while !look().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, looking).await.is_ok(), "{what}: not within {PATIENCE:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_kills_of_the_server() {
    let server = Mysql::start_mariadb();
    let store = Arc::new(super::open(&server.create_database()).await);
    let (is_over, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
    let register = |writer| register(Arc::clone(&store), writer, Arc::clone(&is_over), Arc::clone(&acknowledged));
    let writers: Vec<_> = (0..WRITERS).map(|writer| tokio::spawn(register(writer))).collect();
    let count = || acknowledged.lock().unwrap().len();
    for _ in 0..KILLS {
        let before = count();
        until("the writers write", async || count() >= before + WRITTEN_BETWEEN).await;
        tokio::task::block_in_place(|| server.stop_immediate());
        tokio::task::block_in_place(|| server.start_again());
    }
    is_over.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    let acknowledged = acknowledged.lock().unwrap().clone();
    for id in &acknowledged {
        assert!(store.get(*id).await.unwrap().is_some(), "{id} was acknowledged and is gone");
    }
    println!("{KILLS} kills: {} timers were acknowledged, and all of them are there", acknowledged.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_away_is_unavailable_and_changes_nothing() {
    let server = Mysql::start_mariadb();
    let store = super::open(&server.create_database()).await;
    let shard_leases = super::acquire_all(&store).await;
    let new = timer("http://a.example/").build();
    let created = store.create(vec![new]).await.unwrap().remove(0).timer().clone();
    let claimed = store.claim(&super::claim(1, &shard_leases), &super::everything_due(&store).await).await.unwrap();
    let settlement: Settlement = claimed[0].settle(Next::Completed { at: NOW });

    tokio::task::block_in_place(|| server.stop_immediate());
    let refused = store.create(vec![timer("http://a.example/").numbered(9).build()]).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    assert!(store.settle(std::slice::from_ref(&settlement)).await.is_err());
    assert!(store.ping().await.is_err());

    tokio::task::block_in_place(|| server.start_again());
    until("it answers again", async || store.ping().await.is_ok()).await;
    assert_eq!(store.settle(&[settlement]).await.unwrap(), [true]);
    assert_eq!(store.get(created.id()).await.unwrap().unwrap().status, domain::Status::Completed);
}
