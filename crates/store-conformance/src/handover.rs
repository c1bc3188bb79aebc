//! Claims of a former owner of a shard: they stay its own for as long as it lives.

use domain::{Next, Status};
use store::{Claim, Epoch, NodeId, Settlement, ShardLease};

use crate::{
    Fixture, NOW, Stage, ahead, millis, secs,
    settle::every_next,
    stage::{LONG, entry, ids_of},
    timer,
};

const HEIR: NodeId = NodeId(2);
const NEXT_HEIR: NodeId = NodeId(3);

pub async fn what_a_living_former_owner_claimed_is_not_expired(fixture: impl Fixture) {
    let mut stage = Stage::set(&fixture).await;
    let former = stage.node;
    let claimed = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
    // Through any number of owners, itself included.
    for heir in [HEIR, NEXT_HEIR, former, HEIR] {
        stage.shard_leases = stage.hand_over(heir).await;
        stage.node = heir;
        assert_eq!(stage.store.expired_claims(&stage.shard_leases, 10).await.unwrap(), [], "{heir:?}");
    }
    stage.settle(&claimed, Next::Completed { at: NOW }).await;
}

pub async fn a_living_former_owner_settles_what_it_claimed(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..4).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let mut claimed = Vec::new();
    for timer in &timers {
        claimed.push(stage.claim_one(timer).await);
    }
    stage.hand_over(HEIR).await;
    let batch: Vec<_> = claimed.iter().zip(every_next()).map(|(claimed, next)| claimed.settle(next)).collect();
    assert_eq!(stage.store.settle(&batch).await.unwrap(), [true; 4]);
    assert_eq!(stage.store.settle(&batch).await.unwrap(), [false; 4], "once");
    let statuses = [Status::Completed, Status::Failed, Status::Pending, Status::Pending];
    for (timer, status) in timers.iter().zip(statuses) {
        assert_eq!(stage.get(timer.id()).await.status, status);
    }
}

pub async fn nothing_new_is_claimed_under_an_earlier_epoch(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..2).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let claim = stage.new_claim();
    assert_eq!(stage.store.claim(&claim, &[entry(&timers[0])]).await.unwrap().len(), 1);
    stage.hand_over(HEIR).await;
    assert_eq!(stage.claim(&[entry(&timers[1])]).await, []);
    // Its claim token is of no more use either.
    let again = stage.store.claim(&claim, &[entry(&timers[0]), entry(&timers[1])]).await.unwrap();
    assert_eq!(ids_of(&again), [timers[0].id()]);
    assert_eq!(stage.get(timers[1].id()).await.status, Status::Pending);
}

pub async fn a_claim_that_is_repeated_after_the_hand_over_gives_the_same(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let pending = stage.create(timer("http://a.example/")).await;
    let claim = stage.new_claim();
    let first = stage.store.claim(&claim, &[entry(&pending)]).await.unwrap();
    let shard_leases = stage.hand_over(HEIR).await;

    // A former owner that never got the first answer would otherwise never settle the claim, and no other node would either.
    assert_eq!(stage.store.claim(&claim, &[entry(&pending)]).await.unwrap(), first);
    // Under the new shard lease it is another claim, even with the same token.
    let forged = Claim { shard_leases: shard_leases.clone(), ..claim.clone() };
    assert_eq!(stage.store.claim(&forged, &[entry(&pending)]).await.unwrap(), []);

    stage.die(stage.node).await;
    // The former owner may live again before another node has recovered the claim: then it must get it.
    assert_eq!(stage.store.claim(&claim, &[entry(&pending)]).await.unwrap(), first);
    let found = stage.store.expired_claims(&shard_leases, 10).await.unwrap();
    assert_eq!(ids_of(&found), [pending.id()]);
    stage.settle(&found[0], Next::Pending { at: pending.execute_at, attempt: 1, error: None }).await;
    assert_eq!(stage.store.claim(&claim, &[entry(&pending)]).await.unwrap(), [], "another node has recovered it");
}

pub async fn what_a_dead_former_owner_claimed_is_recovered_and_its_late_word_does_not_count(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let claimed = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
    let shard_leases = stage.hand_over(HEIR).await;
    assert_eq!(stage.store.expired_claims(&shard_leases, 10).await.unwrap(), []);
    stage.live_for(stage.node, millis(20)).await;
    let found = stage
        .eventually("the former owner dies", || async {
            let found = stage.store.expired_claims(&shard_leases, 10).await.unwrap();
            (!found.is_empty()).then_some(found)
        })
        .await;
    assert!(shard_leases.contains(&found[0].shard_lease));
    stage.settle(&found[0], Next::Pending { at: ahead(secs(90)), attempt: 1, error: Some("lost".to_owned()) }).await;

    for next in every_next() {
        assert_eq!(stage.store.settle(&[claimed.settle(next)]).await.unwrap(), [false]);
    }
    let timer = stage.get(claimed.entry.id).await;
    assert_eq!((timer.status, timer.last_error.as_deref()), (Status::Pending, Some("lost")));
}

pub async fn a_dead_former_owner_may_settle_until_its_claim_is_recovered(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let claimed = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
    let shard_leases = stage.take_over(HEIR).await;
    let found = stage.store.expired_claims(&shard_leases, 10).await.unwrap().remove(0);
    stage.settle(&claimed, Next::Completed { at: NOW }).await;
    assert_eq!(stage.store.settle(&[found.settle(Next::Failed { at: NOW, error: "lost".to_owned() })]).await.unwrap(), [false]);
    assert_eq!(stage.get(claimed.entry.id).await.status, Status::Completed);
}

pub async fn a_former_owner_that_lives_again_has_its_claims_again(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let claimed = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
    let shard_leases = stage.take_over(HEIR).await;
    assert_eq!(stage.store.expired_claims(&shard_leases, 10).await.unwrap().len(), 1);
    stage.live(stage.node).await;
    assert_eq!(stage.store.expired_claims(&shard_leases, 10).await.unwrap(), []);
    stage.settle(&claimed, Next::Completed { at: NOW }).await;
}

pub async fn a_claim_runs_out_although_its_maker_lives(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let claimed = stage.claim_one_for(&stage.create(timer("http://a.example/")).await, domain::Span::ZERO).await;
    let shard_leases = stage.hand_over(HEIR).await;
    let found = stage.store.expired_claims(&shard_leases, 10).await.unwrap();
    assert_eq!(ids_of(&found), [claimed.entry.id]);
    stage.settle(&found[0], Next::Completed { at: NOW }).await;
}

pub async fn a_settlement_under_any_other_shard_lease_counts_for_nothing(fixture: impl Fixture) {
    let mut stage = Stage::set(&fixture).await;
    let claimed = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
    stage.shard_leases = stage.hand_over(HEIR).await;
    stage.node = HEIR;
    let between = stage.shard_lease(claimed.entry.id);
    stage.shard_leases = stage.hand_over(NEXT_HEIR).await;
    let current = stage.shard_lease(claimed.entry.id);
    let under = |epoch: Epoch, next: Next| Settlement { shard_lease: ShardLease { epoch, ..current }, ..claimed.settle(next) };

    for epoch in [between.epoch, Epoch(claimed.shard_lease.epoch.0 - 1), Epoch(current.epoch.0 + 1)] {
        for next in every_next() {
            assert_eq!(stage.store.settle(&[under(epoch, next)]).await.unwrap(), [false], "{epoch:?}");
        }
    }
    assert_eq!(stage.get(claimed.entry.id).await, claimed.timer.clone().unwrap());
    assert_eq!(stage.store.settle(&[under(current.epoch, every_next()[0].clone())]).await.unwrap(), [true]);
}

pub async fn only_the_current_shard_lease_finds_expired_claims(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let claim = stage.claim_for(domain::Span::ZERO);
    let pending = stage.create(timer("http://a.example/")).await;
    assert_eq!(stage.store.claim(&claim, &[entry(&pending)]).await.unwrap().len(), 1);
    let shard_leases = stage.take_over(HEIR).await;
    let shifted = |by: i64| {
        shard_leases
            .iter()
            .map(|shard_lease| ShardLease { epoch: Epoch(shard_lease.epoch.0 + by), ..*shard_lease })
            .collect::<Vec<_>>()
    };
    for (what, shard_leases) in
        [("the former owner's", stage.shard_leases.clone()), ("a later one", shifted(1)), ("none", vec![])]
    {
        assert_eq!(stage.store.expired_claims(&shard_leases, 10).await.unwrap(), [], "{what}");
    }
    assert_eq!(ids_of(&stage.store.expired_claims(&shard_leases, 10).await.unwrap()), [pending.id()]);
}

pub async fn the_claims_of_a_living_former_owner_do_not_hide_those_of_a_dead_one(fixture: impl Fixture) {
    let mut stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..60).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let entries: Vec<_> = timers.iter().map(entry).collect();
    let living = stage.node;
    assert_eq!(stage.claim(&entries[..30]).await.len(), 30);
    stage.shard_leases = stage.hand_over(HEIR).await;
    stage.node = HEIR;
    assert_eq!(stage.claim(&entries[30..]).await.len(), 30);
    stage.shard_leases = stage.take_over(NEXT_HEIR).await;
    stage.live_for(living, LONG).await;

    assert_eq!(stage.store.expired_claims(&stage.shard_leases, 7).await.unwrap().len(), 7);
    let found = stage.store.expired_claims(&stage.shard_leases, 100).await.unwrap();
    assert_eq!(ids_of(&found), entries[30..].iter().map(|entry| entry.id).collect::<Vec<_>>());
}
