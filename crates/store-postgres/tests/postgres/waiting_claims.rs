//! What a claim makes of changes that are committed while it waits for a row.

use std::{sync::Arc, time::Duration};

use domain::{Endpoint, Next, TimerId};
use store::{Claimed, DueStore, Epoch, ShardLease, TimerStore};
use store_conformance::{NOW, timer};
use store_postgres::PostgresStore;
use tokio::time::timeout;

use crate::{acquire_all, all_shards, claim, everything_due, held_rows::Holder, open};

const TIMEOUT: Duration = Duration::from_secs(20);

/// A claim that had to wait for the row of the only timer, because `change` was under way in a transaction that had locked it.
async fn claimed_during(url: &str, id: TimerId, store: Arc<PostgresStore>, change: &'static str) -> Vec<Claimed> {
    let shard_leases = acquire_all(&*store).await;
    let due = everything_due(&*store).await;
    let mut holder = Holder::of(url, id).await;
    holder.execute(change).await;
    let claiming = tokio::spawn(async move { store.claim(&claim(7, &shard_leases), &due).await.unwrap() });
    timeout(TIMEOUT, holder.is_waited_for()).await.expect("a claim waits a moment for a row that is being changed");
    holder.commit().await;
    timeout(TIMEOUT, claiming).await.expect("a claim ends").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_waited_for_an_update_carries_the_new_content() {
    let url = throwaway::postgres().create_database();
    let store = Arc::new(open(&url).await);
    let new = timer("http://old.example/").build();
    let id = new.definition.id;
    store.create(vec![new]).await.unwrap();
    let update = "UPDATE definition SET callback_config = replace(callback_config, 'old', 'new')";

    let mut claimed = claimed_during(&url, id, Arc::clone(&store), update).await;
    if claimed.is_empty() {
        // The machine was too slow for the claim's timeout.
        claimed = store.claim(&claim(8, &acquire_all(&*store).await), &everything_due(&*store).await).await.unwrap();
    }

    let claimed = claimed.first().expect("it is still due").timer.clone().unwrap();
    let Endpoint::Http(http) = claimed.definition.callback.endpoint else { panic!("an HTTP callback") };
    assert_eq!(http.url.as_str(), "http://new.example/");
}

/// Another node takes all shards.
macro_rules! take {
    () => {
        "UPDATE shard SET epoch = epoch + 1, owner = gen_random_uuid();"
    };
}

/// A store with one timer.
async fn one_timer(url: &str) -> (Arc<PostgresStore>, TimerId) {
    let store = Arc::new(open(url).await);
    let new = timer("http://a.example/").build();
    let id = new.definition.id;
    store.create(vec![new]).await.unwrap();
    (store, id)
}

fn shard_leases_of_the_new_owner(store: &PostgresStore) -> Vec<ShardLease> {
    all_shards(store).into_iter().map(|shard| ShardLease { shard, epoch: Epoch(2) }).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_was_overtaken_by_a_hand_over_is_its_makers() {
    let url = throwaway::postgres().create_database();
    let (store, id) = one_timer(&url).await;

    let claimed = claimed_during(&url, id, Arc::clone(&store), take!()).await;

    let left = store.expired_claims(&shard_leases_of_the_new_owner(&store), 10).await.unwrap();
    assert_eq!(left, [], "its maker lives");
    let again = everything_due(&*store).await;
    assert_eq!(claimed.len() + again.len(), 1, "it is either pending, or its maker was told of it");
    for claimed in claimed {
        assert_eq!(store.settle(&[claimed.settle(Next::Completed { at: NOW })]).await.unwrap(), [true]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_was_overtaken_by_its_makers_death_is_found() {
    let url = throwaway::postgres().create_database();
    let (store, id) = one_timer(&url).await;
    let take = concat!(take!(), " UPDATE node SET lease_until = 0");

    let claimed = claimed_during(&url, id, Arc::clone(&store), take).await;

    // The new owner finds what the former one had claimed, if it got that far. That one knows of it, too, should it live again.
    let left = store.expired_claims(&shard_leases_of_the_new_owner(&store), 10).await.unwrap();
    let again = everything_due(&*store).await;
    assert_eq!(left.len() + again.len(), 1, "it is either pending or to be taken up");
    let names = |claimed: &[Claimed]| claimed.iter().map(|claimed| (claimed.entry.id, claimed.token)).collect::<Vec<_>>();
    assert_eq!(names(&claimed), names(&left));
}
