//! The server of a store dies under load and comes back: what was acknowledged is there, and the store goes on by itself. No
//! behaviours of the suite, because they need a server that a test has for itself. To be called on a runtime of several threads.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use domain::TimerId;
use store::{Store, StoreError};
use tokio::task::block_in_place;

use crate::timer;

const WRITERS: u64 = 4;
/// A kill should find writes under way.
const WRITTEN_BETWEEN: usize = 40;
/// A server that has just started on a busy machine takes its time.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Looks again and again, until `TIMEOUT`.
pub async fn until(what: &str, mut look: impl AsyncFnMut() -> bool) {
    let looking = async {
        while !look().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(TIMEOUT, looking).await.is_ok(), "{what}: not within {TIMEOUT:?}");
}

/// Registers timers one by one until it is told to stop, and keeps the ids of those that were acknowledged.
async fn register(store: Arc<dyn Store>, writer: u64, is_over: Arc<AtomicBool>, acknowledged: Arc<Mutex<Vec<TimerId>>>) {
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

/// Kills the server so many times while timers are registered; `kill` brings it back as well. Says how many were acknowledged.
pub async fn what_was_acknowledged_survives_kills(store: Arc<dyn Store>, kills: usize, kill: impl Fn()) -> usize {
    let (is_over, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
    let register = |writer| register(Arc::clone(&store), writer, Arc::clone(&is_over), Arc::clone(&acknowledged));
    let writers: Vec<_> = (0..WRITERS).map(|writer| tokio::spawn(register(writer))).collect();
    let count = || acknowledged.lock().unwrap().len();
    for _ in 0..kills {
        let before = count();
        until("the writers write", async || count() >= before + WRITTEN_BETWEEN).await;
        block_in_place(&kill);
    }
    is_over.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    let acknowledged = acknowledged.lock().unwrap().clone();
    until("it answers again", async || store.ping().await.is_ok()).await;
    for id in &acknowledged {
        assert!(store.get(*id).await.unwrap().is_some(), "{id} was acknowledged and is gone");
    }
    acknowledged.len()
}

/// A create while the server is away is known to be not done, and done once it is back.
pub async fn a_server_that_is_away_changes_nothing_and_is_found_again(
    store: &dyn Store,
    stop: impl FnOnce(),
    start: impl FnOnce(),
) {
    let new = timer("http://a.example/").build();
    let id = new.definition.id;

    block_in_place(stop);
    assert!(store.ping().await.is_err());
    // The first failure may be that of an open connection; then the store knows that there is no server.
    until("it is known to be away", async || matches!(store.create(vec![new.clone()]).await, Err(StoreError::Unavailable(_))))
        .await;

    block_in_place(start);
    until("it answers again", async || store.ping().await.is_ok()).await;
    assert!(store.get(id).await.unwrap().is_none());
    assert!(store.create(vec![new]).await.is_ok());
}
