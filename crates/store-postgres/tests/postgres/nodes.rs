//! Many nodes on one database, each with sessions of its own.

use std::sync::Arc;

use domain::{Shard, Span};
use sqlx::{Connection, Executor, PgConnection};
use store::{Epoch, Member, MembershipStore, NodeId, ShardLease};

use crate::{acquire_all, acquire_all_for, all_shards, open};

const LONG: Span = Span::from_secs(600);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_processes_that_come_to_life_at_once_each_shard_gets_one() {
    let url = throwaway::postgres().create_database();
    open(&url).await;
    let stores = futures_util::future::join_all((0..12).map(|_| open(&url))).await;
    let stores: Vec<_> = stores.into_iter().map(Arc::new).collect();
    let mut before = Epoch(0);
    for round in 0..8_u128 {
        let tasks = (1..).zip(&stores).map(|(number, store)| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                let node = NodeId(round * 100 + number);
                (node, acquire_all_for(&*store, node).await)
            })
        });
        let taken: Vec<_> = futures_util::future::join_all(tasks).await.into_iter().map(Result::unwrap).collect();
        let mut shards: Vec<_> =
            taken.iter().flat_map(|(_, shard_leases)| shard_leases.iter().map(|shard_lease| shard_lease.shard)).collect();
        shards.sort_unstable();
        assert_eq!(shards, all_shards(&*stores[0]), "round {round}");
        let epochs: Vec<_> =
            taken.iter().flat_map(|(_, shard_leases)| shard_leases.iter().map(|shard_lease| shard_lease.epoch)).collect();
        assert!(epochs.iter().all(|epoch| *epoch == Epoch(before.0 + 1)), "round {round}: {epochs:?}");
        before = epochs[0];
        for ((node, shard_leases), store) in taken.iter().zip(&stores) {
            // What each was told at once is what the database says afterwards. Then all die, at the same time or one by one.
            assert_eq!(store.heartbeat(&Member::new(*node), Span::ZERO).await.unwrap().held, *shard_leases);
        }
    }
}

/// A node that decided that an owner is dead, and then has to wait, must not take the shard from one that was faster, though that
/// one began to live only after the decision.
#[tokio::test(flavor = "multi_thread")]
async fn an_acquisition_that_waited_takes_nothing_from_one_that_was_faster() {
    let url = throwaway::postgres().create_database();
    let store = Arc::new(open(&url).await);
    acquire_all(&*store).await;
    store.heartbeat(&Member::new(NodeId(1)), Span::ZERO).await.unwrap();
    store.heartbeat(&Member::new(NodeId(2)), LONG).await.unwrap();
    // A third one comes to life and takes a shard, in a transaction that has not committed yet.
    let mut faster = PgConnection::connect(&url).await.unwrap();
    faster
        .execute(
            "BEGIN; INSERT INTO node (id, started_at, skew_micros, lease_until, takes_shards, name, version)
             VALUES ('00000000-0000-0000-0000-000000000003', 0, 0, 9000000000000000, true, '', '');
             UPDATE shard SET epoch = 2, owner = '00000000-0000-0000-0000-000000000003' WHERE shard = 5",
        )
        .await
        .unwrap();
    let acquiring = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.acquire(NodeId(2), &all_shards(&*store)).await.unwrap() }
    });
    let waiting = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid)";
    while !sqlx::query_scalar::<_, bool>(waiting).fetch_one(&mut faster).await.unwrap() {
        tokio::task::yield_now().await;
    }
    faster.execute("COMMIT").await.unwrap();

    let taken = acquiring.await.unwrap();

    assert_eq!(taken.len(), 63);
    assert!(!taken.iter().any(|shard_lease| shard_lease.shard == Shard(5)), "{taken:?}");
    assert_eq!(
        store.heartbeat(&Member::new(NodeId(3)), LONG).await.unwrap().held,
        [ShardLease { shard: Shard(5), epoch: Epoch(2) }]
    );
}

#[tokio::test]
async fn nodes_that_are_long_dead_are_forgotten_with_their_tenures() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    acquire_all(&store).await;
    let age = "UPDATE node SET lease_until = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - ";
    let known = "SELECT (SELECT count(*) FROM node), (SELECT count(*) FROM tenure)";

    throwaway::postgres().query(&url, &format!("{age} 3500000000"));
    assert_eq!(acquire_all_for(&store, NodeId(2)).await.len(), 64);
    assert_eq!(throwaway::postgres().query(&url, known), "2|128", "it died a moment ago");
    throwaway::postgres().query(&url, &format!("{age} 3600000001"));
    assert_eq!(acquire_all_for(&store, NodeId(3)).await.len(), 64);
    assert_eq!(throwaway::postgres().query(&url, known), "1|64");
    store.leave(NodeId(3)).await.unwrap();
    assert_eq!(throwaway::postgres().query(&url, known), "0|0");
}

/// The database was away for hours. A node that comes back late may find that it still holds a shard, and what it claims there
/// must count as its own.
#[tokio::test]
async fn one_that_holds_shards_is_not_forgotten_however_long_it_was_dead() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    acquire_all(&store).await;
    let age = "UPDATE node SET lease_until = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 3600000001";
    throwaway::postgres().query(&url, age);
    store.heartbeat(&Member::new(NodeId(2)), LONG).await.unwrap();
    let all = all_shards(&store);
    assert_eq!(store.acquire(NodeId(2), &all[1..]).await.unwrap().len(), 63);
    let held = [ShardLease { shard: Shard(0), epoch: Epoch(1) }];
    assert_eq!(store.heartbeat(&Member::new(NodeId(1)), LONG).await.unwrap().held, held);
    let remembered = "SELECT count(*) FROM tenure WHERE shard = 0 AND epoch = 1";
    assert_eq!(throwaway::postgres().query(&url, remembered), "1");
}
