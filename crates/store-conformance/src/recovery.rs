//! Recovery: finding the claims of dead nodes, and settling them instead of their owner.

use domain::{Next, Span, Status, Timer};
use store::{Claimed, NodeId, ShardLease};

use crate::{
    Fixture, NOW, Stage, ahead, micros, millis, secs,
    stage::{entry, ids_of},
    timer,
};

const SHORT: Span = millis(1);

/// Waits until this many claims have expired, by the database's clock.
async fn expired(stage: &Stage, shard_leases: &[ShardLease], count: usize) -> Vec<Claimed> {
    stage
        .eventually("the claims run out", || async move {
            let found = stage.store.expired_claims(shard_leases, 1_000).await.unwrap();
            (found.len() >= count).then_some(found)
        })
        .await
}

pub async fn a_claim_whose_lease_ran_out_is_found(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let short = stage.claim_one_for(&stage.create(timer("http://a.example/").payload("1")).await, SHORT).await;
    stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
    stage.create(timer("http://a.example/")).await;
    assert_eq!(expired(&stage, &stage.shard_leases, 1).await, [short]);
}

pub async fn a_lease_counts_from_the_claim(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    // Due long ago: the age of the timer has nothing to do with the age of its claim.
    stage.claim_one(&stage.create(timer("http://a.example/").due_ago(secs(86_400))).await).await;
    let short = stage.claim_one_for(&stage.create(timer("http://a.example/")).await, SHORT).await;
    assert_eq!(ids_of(&expired(&stage, &stage.shard_leases, 1).await), [short.entry.id]);
}

pub async fn a_claim_has_run_out_at_the_end_of_its_lease(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    // A lease of no length ends the moment it begins, whether or not the clock has moved since.
    let claimed = stage.claim_one_for(&stage.create(timer("http://a.example/")).await, micros(0)).await;
    assert_eq!(stage.store.expired_claims(&stage.shard_leases, 100).await.unwrap(), [claimed]);
}

pub async fn a_claim_of_a_dead_owner_is_found_at_once(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..16).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let claimed = stage.claim(&timers.iter().map(entry).collect::<Vec<_>>()).await;
    assert_eq!(claimed.len(), 16);
    assert_eq!(stage.store.expired_claims(&stage.shard_leases, 100).await.unwrap(), [], "their owner is still there");

    let shard_leases = stage.take_over(NodeId(2)).await;
    let mut found = stage.store.expired_claims(&shard_leases, 100).await.unwrap();

    found.sort_by_key(|claimed| claimed.entry.id);
    assert_eq!(ids_of(&found), ids_of(&claimed));
    for (found, timer) in found.iter().zip(timers) {
        assert!(shard_leases.contains(&found.shard_lease), "they are to be settled under the shard lease of their finder");
        assert_eq!(found.timer, Ok(Timer { status: Status::Executing, attempt: 1, ..timer }));
        assert!(claimed.iter().any(|claimed| claimed.entry == found.entry && claimed.token == found.token));
    }
}

pub async fn a_claim_of_the_new_owner_is_not_taken_for_an_old_one(fixture: impl Fixture) {
    let mut stage = Stage::set(&fixture).await;
    let old = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
    stage.shard_leases = stage.take_over(NodeId(2)).await;
    let new = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
    let found = stage.store.expired_claims(&stage.shard_leases, 100).await.unwrap();
    assert_eq!(ids_of(&found), [old.entry.id]);
    stage.settle(&new, Next::Completed { at: NOW }).await;
}

pub async fn only_claims_of_the_named_shards_are_found(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..32).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let claim = stage.claim_for(SHORT);
    stage.store.claim(&claim, &timers.iter().map(entry).collect::<Vec<_>>()).await.unwrap();
    expired(&stage, &stage.shard_leases, 32).await;
    for shard_lease in &stage.shard_leases {
        let found = stage.store.expired_claims(&[*shard_lease], 100).await.unwrap();
        let expected: Vec<_> = timers.iter().map(Timer::id).filter(|id| stage.shard(*id) == shard_lease.shard).collect();
        assert_eq!(ids_of(&found), expected, "{shard_lease:?}");
    }
}

pub async fn no_more_expired_claims_are_given_than_asked_for(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..20).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let claim = stage.claim_for(SHORT);
    stage.store.claim(&claim, &timers.iter().map(entry).collect::<Vec<_>>()).await.unwrap();
    expired(&stage, &stage.shard_leases, 20).await;
    assert_eq!(stage.store.expired_claims(&stage.shard_leases, 7).await.unwrap().len(), 7);
    assert_eq!(stage.store.expired_claims(&stage.shard_leases, 20).await.unwrap().len(), 20);
}

pub async fn looking_at_expired_claims_changes_nothing(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let claimed = stage.claim_one_for(&stage.create(timer("http://a.example/")).await, SHORT).await;
    let first = expired(&stage, &stage.shard_leases, 1).await;
    let second = stage.store.expired_claims(&stage.shard_leases, 100).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(stage.get(claimed.entry.id).await, claimed.timer.unwrap());
}

pub async fn an_expired_claim_is_settled_with_the_token_it_carries(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let old = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
    let shard_leases = stage.take_over(NodeId(2)).await;
    let found = stage.store.expired_claims(&shard_leases, 100).await.unwrap().remove(0);

    stage.settle(&found, Next::Pending { at: ahead(secs(90)), attempt: 1, error: Some("the node was lost".to_owned()) }).await;

    assert_eq!(stage.store.settle(&[old.settle(Next::Completed { at: NOW })]).await.unwrap(), [false]);
    let timer = stage.get(old.entry.id).await;
    assert_eq!((timer.status, timer.attempt, timer.last_error.as_deref()), (Status::Pending, 1, Some("the node was lost")));
    assert_eq!(stage.store.expired_claims(&shard_leases, 100).await.unwrap(), []);
}

pub async fn a_late_owner_that_is_still_the_owner_may_settle(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let late = stage.claim_one_for(&stage.create(timer("http://a.example/")).await, SHORT).await;
    expired(&stage, &stage.shard_leases, 1).await;
    stage.settle(&late, Next::Completed { at: NOW }).await;
    assert_eq!(stage.store.expired_claims(&stage.shard_leases, 100).await.unwrap(), []);
}

pub async fn a_late_owner_and_a_recovery_do_not_both_count(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let late = stage.claim_one_for(&stage.create(timer("http://a.example/")).await, SHORT).await;
    let found = expired(&stage, &stage.shard_leases, 1).await.remove(0);
    stage.settle(&found, Next::Pending { at: ahead(micros(1)), attempt: 1, error: None }).await;
    assert_eq!(stage.store.settle(&[late.settle(Next::Completed { at: NOW })]).await.unwrap(), [false]);
    assert_eq!(stage.get(late.entry.id).await.status, Status::Pending);
}
