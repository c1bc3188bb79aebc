//! Lists of timers among many others.

use std::time::Duration;

use domain::Status;
use store::{DueStore, Filter, ListQuery, TimerStore};
use store_conformance::{NOW, timer};

use crate::{acquire_all, claim, everything_due, open};

/// More are due than are looked at for this, so that all timers are walked through.
#[tokio::test]
async fn what_is_executing_is_found_among_too_many_that_are_due() {
    let url = throwaway::mariadb().create_database();
    let store = open(&url).await;
    let shard_leases = acquire_all(&store).await;
    let drafts = (0..10).map(|n| timer("http://a.example/").numbered(n).created_at(NOW).build());
    store.create(drafts.collect()).await.unwrap();
    let due = everything_due(&store).await;
    assert_eq!(store.claim(&claim(1, &shard_leases), &due).await.unwrap().len(), 10);
    let crowd =
        "INSERT INTO due (shard, id, at, attempt, destination) SELECT seq % 8, UNHEX(MD5(seq)), 1, 0, 1 FROM seq_1_to_20001";
    throwaway::mariadb().query(&url, crowd);
    let filter = Filter { status: vec![Status::Executing], ..Filter::default() };
    assert_eq!(store.list(&ListQuery { filter: filter.clone(), ..ListQuery::default() }).await.unwrap().timers.len(), 10);
    assert_eq!(store.count(&filter, Duration::from_secs(10)).await.unwrap(), 10);
}

/// More are due than are fetched and sorted, and there is no time to look at all of them one by one.
#[tokio::test]
async fn what_is_executing_is_found_at_once_among_many_that_are_due() {
    let url = throwaway::mariadb().create_database();
    let store = open(&url).await;
    let shard_leases = acquire_all(&store).await;
    let drafts = (0..6_000).map(|n| timer("http://a.example/").numbered(n).created_at(NOW).build());
    store.create(drafts.collect()).await.unwrap();
    let due = everything_due(&store).await;
    let claimed = store.claim(&claim(1, &shard_leases), &due[..10]).await.unwrap();
    assert_eq!(claimed.len(), 10);
    let filter = Filter { status: vec![Status::Executing], ..Filter::default() };
    let query = ListQuery { filter: filter.clone(), limit: 5, budget: Duration::ZERO, ..ListQuery::default() };
    let page = store.list(&query).await.unwrap();
    assert_eq!((page.timers.len(), page.complete), (5, true));
    assert_eq!(store.count(&filter, Duration::ZERO).await.unwrap(), 10);
}
