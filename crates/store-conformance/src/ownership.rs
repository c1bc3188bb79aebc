//! Shard leases: which node owns which shard.

use domain::{Next, Shard};
use store::{Epoch, Member, NodeId, ShardLease, StoreError, StoreResult};

use crate::{
    Fixture, NOW, Stage, millis,
    stage::{LONG, entry, ids_of},
    timer,
};

const ONE: NodeId = NodeId(0x1111_1111_1111_1111_1111_1111_1111_1111);
/// The largest possible id: ids use all their bits.
const TWO: NodeId = NodeId(u128::MAX);

/// How many nodes want all the shards at once.
const CROWD: u128 = 16;

fn assert_later(old: &[ShardLease], new: &[ShardLease]) {
    assert_eq!(new.len(), old.len());
    assert!(old.iter().zip(new).all(|(old, new)| new.shard == old.shard && new.epoch > old.epoch), "{old:?} {new:?}");
}

pub async fn there_are_shards(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    assert!(stage.store.shards() > 0);
}

pub async fn shards_that_never_had_an_owner_can_be_acquired(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let shard_leases = stage.join(ONE).await;
    assert_eq!(shard_leases.iter().map(|shard_lease| shard_lease.shard).collect::<Vec<_>>(), stage.all_shards());
    assert!(shard_leases.iter().all(|shard_lease| shard_lease.epoch > Epoch(0)), "{shard_leases:?}");
}

pub async fn only_the_shards_that_are_asked_for_are_acquired(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let (first, rest) = (stage.all_shards()[0], stage.all_shards()[1..].to_vec());
    stage.live(ONE).await;
    let shard_leases = stage.acquire(ONE, &[first]).await;
    assert_eq!(shard_leases.iter().map(|shard_lease| shard_lease.shard).collect::<Vec<_>>(), [first]);
    let others = stage.join(TWO).await;
    assert_eq!(others.iter().map(|shard_lease| shard_lease.shard).collect::<Vec<_>>(), rest);
}

pub async fn a_shard_that_does_not_exist_is_passed_over(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    stage.live(ONE).await;
    assert_eq!(stage.acquire(ONE, &[Shard(stage.store.shards()), Shard(u16::MAX)]).await, []);
}

pub async fn a_shard_of_the_living_is_refused(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let shard_leases = stage.join(ONE).await;
    assert_eq!(stage.join(TWO).await, []);
    assert_eq!(stage.live(ONE).await.held, shard_leases);
}

pub async fn acquiring_what_one_holds_gives_the_epoch_it_has(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let first = stage.join(ONE).await;
    assert_eq!(stage.acquire(ONE, &stage.all_shards()).await, first);
}

pub async fn a_released_shard_can_be_taken_at_once_and_epochs_rise(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let mut last = stage.join(ONE).await;
    for (old, new) in [(ONE, TWO), (TWO, ONE), (ONE, ONE)] {
        stage.store.release(old, &last).await.unwrap();
        let shard_leases = stage.join(new).await;
        assert_later(&last, &shard_leases);
        last = shard_leases;
    }
}

pub async fn a_released_shard_is_not_held_any_more(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let shard_leases = stage.join(ONE).await;
    stage.store.release(ONE, &shard_leases[..1]).await.unwrap();
    assert_eq!(stage.live(ONE).await.held, shard_leases[1..]);
}

pub async fn a_released_shard_is_its_last_owners_until_it_is_taken(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..3).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let first = stage.claim_one(&timers[0]).await;
    stage.store.release(stage.node, &stage.shard_leases).await.unwrap();

    stage.settle(&first, Next::Completed { at: NOW }).await;
    let second = stage.claim_one(&timers[1]).await;
    let shard_leases = stage.join(TWO).await;

    assert_eq!(shard_leases.len(), stage.shard_leases.len());
    assert_eq!(stage.claim(&[entry(&timers[2])]).await, []);
    stage.settle(&second, Next::Completed { at: NOW }).await;
    assert_eq!(ids_of(&stage.store.expired_claims(&shard_leases, 100).await.unwrap()), []);
}

pub async fn a_shard_can_be_taken_at_the_end_of_its_owners_lease(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let old = stage.join(ONE).await;
    // A lease of no length ends the moment it begins, whether or not the clock has moved since.
    stage.die(ONE).await;
    assert_later(&old, &stage.join(TWO).await);
}

pub async fn a_shard_can_be_taken_over_once_its_owners_lease_ran_out(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    stage.live(TWO).await;
    let old = stage.join(ONE).await;
    stage.live_for(ONE, millis(50)).await;
    let new = stage
        .eventually("the lease runs out", || async {
            let shard_leases = stage.acquire(TWO, &stage.all_shards()).await;
            (!shard_leases.is_empty()).then_some(shard_leases)
        })
        .await;
    assert_later(&old, &new);
    assert_eq!(stage.join(ONE).await, [], "they are the other one's now");
}

pub async fn a_dead_node_acquires_nothing(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    assert_eq!(stage.acquire(ONE, &stage.all_shards()).await, [], "it never lived");
    stage.die(ONE).await;
    assert_eq!(stage.acquire(ONE, &stage.all_shards()).await, [], "it lives no more");
    let held = stage.join(ONE).await;
    stage.die(ONE).await;
    assert_eq!(stage.acquire(ONE, &stage.all_shards()).await, [], "not even what it holds");
    assert_eq!(stage.live(ONE).await.held, held);
    stage.store.leave(ONE).await.unwrap();
    assert_eq!(stage.acquire(ONE, &stage.all_shards()).await, [], "it left");
    assert_eq!(stage.join(TWO).await.len(), held.len());
}

pub async fn releasing_what_is_not_ones_own_is_passed_over(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let old = stage.join(ONE).await;
    stage.store.release(TWO, &old).await.unwrap();
    assert_eq!(stage.join(TWO).await, []);

    // A straggler releases under an old epoch.
    stage.store.release(ONE, &old).await.unwrap();
    let new = stage.join(TWO).await;
    for straggler in [ONE, TWO] {
        stage.store.release(straggler, &old).await.unwrap();
        assert_eq!(stage.live(TWO).await.held, new);
    }
}

/// Makes a call until it is answered, as a node does: a crowd on a slow machine can be more than a store answers before its deadline.
async fn persistently<T, Answer: Future<Output = StoreResult<T>>>(mut call: impl FnMut() -> Answer) -> T {
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(StoreError::Unavailable(_) | StoreError::Unknown(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

pub async fn of_many_nodes_each_shard_gets_one(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let mut before = Epoch(0);
    for round in 0..5_u128 {
        let nodes = (1..=CROWD).map(|number| NodeId(round * CROWD + number));
        let mut tasks = Vec::new();
        // All nodes start at the same time: none may take one that has just begun to live for dead.
        for node in nodes.clone() {
            let (store, shards) = (stage.store.clone(), stage.all_shards());
            tasks.push(tokio::spawn(async move {
                let member = Member::new(node);
                persistently(|| store.heartbeat(&member, LONG)).await;
                persistently(|| store.acquire(node, &shards)).await
            }));
        }
        let mut taken = Vec::new();
        for task in tasks {
            taken.extend(task.await.unwrap());
        }
        taken.sort_unstable_by_key(|shard_lease| shard_lease.shard);
        assert_eq!(taken.iter().map(|shard_lease| shard_lease.shard).collect::<Vec<_>>(), stage.all_shards(), "round {round}");
        assert!(taken.iter().all(|shard_lease| shard_lease.epoch > before), "{taken:?}");
        before = taken[0].epoch;
        for node in nodes {
            stage.die(node).await;
        }
    }
}
