//! Callers that ask much must not keep due timers waiting, and due timers that are many must not cost the shards.

use std::{sync::Arc, time::Duration};

use domain::{Next, Shard, Span};
use sqlx::{Connection, Executor, PgConnection};
use store::{DueStore, ListQuery, Member, MembershipStore, NodeId, Order, ShardCursor, Sort, TimerStore};
use store_conformance::{NOW, timer};
use tokio::time::timeout;

use crate::{acquire_all, claim, everything_due, open};

/// Longer than a claim takes, much shorter than a list may hang.
const PROMPTLY: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn lists_that_hang_hold_up_no_other_call() {
    let url = throwaway::postgres().create_database();
    let store = Arc::new(open(&url).await);
    let new = timer("http://a.example/").build();
    let id = new.definition.id;
    store.create(vec![new]).await.unwrap();
    let shard_leases = acquire_all(&*store).await;

    // Another session locks a table that lists need and claims do not.
    let blocker = tokio::task::spawn_blocking({
        let url = url.clone();
        move || {
            throwaway::postgres().query(&url, "BEGIN; LOCK TABLE outcome IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(6); COMMIT");
        }
    });
    let locked =
        "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted AND relation = 'outcome'::regclass";
    while throwaway::postgres().query(&url, locked) != "1" {
        tokio::task::yield_now().await;
    }
    let lists: Vec<_> = (0..50)
        .map(|_| {
            let store = Arc::clone(&store);
            let query = ListQuery { sort: Sort::CreatedAt, order: Order::Descending, limit: 10, ..ListQuery::default() };
            tokio::spawn(async move { store.list(&query).await })
        })
        .collect();
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while throwaway::postgres().query(&url, waiting) != store::SCANS_MAX.to_string() {
        tokio::task::yield_now().await;
    }

    let delivery = async {
        let due = everything_due(&*store).await;
        let claimed = store.claim(&claim(7, &shard_leases), &due).await.unwrap();
        assert_eq!(claimed.len(), 1);
        let later = NOW.saturating_add(Span::from_secs(5));
        assert_eq!(store.settle(&[claimed[0].settle(Next::Again { at: later })]).await.unwrap(), [true]);
        store.create(vec![timer("http://a.example/").build()]).await.unwrap();
    };
    timeout(PROMPTLY, delivery).await.expect("claims, settlements and creates go on");
    for list in lists {
        // Most are given up; one that got its session late may have outlasted the lock.
        let listed = list.await.unwrap();
        assert!(listed.as_ref().map_or_else(store::StoreError::is_not_done, |_| true), "{listed:?}");
    }
    blocker.await.unwrap();
    assert!(store.get(id).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn shards_are_kept_while_everything_else_hangs() {
    let url = throwaway::postgres().create_database();
    let store = Arc::new(open(&url).await);
    let shard_leases = acquire_all(&*store).await;
    let mut blocker = PgConnection::connect(&url).await.unwrap();
    blocker.execute("BEGIN; LOCK TABLE due IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let scans: Vec<_> = (0..50)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.due(&[ShardCursor { shard: Shard(0), after: None }], NOW, 10).await })
        })
        .collect();
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'due'::regclass";
    while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut blocker).await.unwrap() < 4 {
        tokio::task::yield_now().await;
    }

    let ownership = async {
        let reply = store.heartbeat(&Member::new(NodeId(1)), Span::from_secs(600)).await.unwrap();
        assert_eq!(reply.held, shard_leases);
        assert_eq!(store.acquire(NodeId(1), &[Shard(0)]).await.unwrap(), shard_leases[..1]);
        store.release(NodeId(1), &shard_leases[..1]).await.unwrap();
        store.leave(NodeId(1)).await.unwrap();
    };
    timeout(PROMPTLY, ownership).await.expect("ownership goes on");
    blocker.execute("ROLLBACK").await.unwrap();
    for scan in scans {
        drop(scan.await.unwrap());
    }
}
