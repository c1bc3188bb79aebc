//! The server dies under load and comes back: what was acknowledged is there, and the store goes on by itself.

use std::sync::Arc;

use domain::Next;
use store::{DueStore, HealthStore, Settlement, StoreError, TimerStore};
use store_conformance::{NOW, outages, timer};
use throwaway::Mysql;

const KILLS: usize = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_kills_of_the_server() {
    let server = Mysql::start_mariadb();
    let store = Arc::new(super::open(&server.create_database()).await);
    let acknowledged = outages::what_was_acknowledged_survives_kills(store, KILLS, || {
        server.stop_immediate();
        server.start_again();
    })
    .await;
    println!("{KILLS} kills: {acknowledged} timers were acknowledged, and all of them are there");
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
    outages::until("it answers again", async || store.ping().await.is_ok()).await;
    assert_eq!(store.settle(&[settlement]).await.unwrap(), [true]);
    assert_eq!(store.get(created.id()).await.unwrap().unwrap().status, domain::Status::Completed);
}
