//! Who holds which shard.

use domain::{Next, Shard};
use store::{Epoch, NodeId, Tenure};

use crate::{
    Fixture, NOW, Stage, micros, millis,
    stage::{LONG, entry, ids_of},
    timer,
};

const ONE: NodeId = NodeId(0x1111_1111_1111_1111_1111_1111_1111_1111);
/// The largest there is: ids use all their bits.
const TWO: NodeId = NodeId(u128::MAX);

fn sorted(mut tenures: Vec<Tenure>) -> Vec<Tenure> {
    tenures.sort_by_key(|tenure| tenure.shard);
    tenures
}

/// `node` tries to get `shards` until it has them all.
async fn take_over(stage: &Stage, node: NodeId, shards: &[Shard]) -> Vec<Tenure> {
    stage
        .eventually("the lease runs out", || async move {
            let tenures = stage.store.acquire(node, shards, LONG).await.unwrap();
            (tenures.len() == shards.len()).then(|| sorted(tenures))
        })
        .await
}

pub async fn there_are_shards(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    assert!(stage.store.shards() > 0);
}

pub async fn shards_that_nobody_ever_had_can_be_acquired(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let tenures = sorted(stage.store.acquire(ONE, &stage.all_shards(), LONG).await.unwrap());
    assert_eq!(tenures.iter().map(|tenure| tenure.shard).collect::<Vec<_>>(), stage.all_shards());
    assert!(tenures.iter().all(|tenure| tenure.epoch > Epoch(0)), "{tenures:?}");
}

pub async fn only_the_shards_that_are_asked_for_are_acquired(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let (first, rest) = (stage.all_shards()[0], stage.all_shards()[1..].to_vec());
    let tenures = stage.store.acquire(ONE, &[first], LONG).await.unwrap();
    assert_eq!(tenures.iter().map(|tenure| tenure.shard).collect::<Vec<_>>(), [first]);
    let others = sorted(stage.store.acquire(TWO, &stage.all_shards(), LONG).await.unwrap());
    assert_eq!(others.iter().map(|tenure| tenure.shard).collect::<Vec<_>>(), rest);
}

pub async fn a_shard_in_other_hands_is_refused(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let tenures = stage.store.acquire(ONE, &stage.all_shards(), LONG).await.unwrap();
    assert_eq!(stage.store.acquire(TWO, &stage.all_shards(), LONG).await.unwrap(), []);
    assert_eq!(sorted(stage.store.renew(ONE, &tenures, LONG).await.unwrap()), sorted(tenures));
}

pub async fn acquiring_what_one_holds_gives_the_epoch_it_has(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let first = sorted(stage.store.acquire(ONE, &stage.all_shards(), LONG).await.unwrap());
    assert_eq!(sorted(stage.store.acquire(ONE, &stage.all_shards(), LONG).await.unwrap()), first);
}

pub async fn a_released_shard_can_be_taken_at_once_and_epochs_rise(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let mut last = sorted(stage.store.acquire(ONE, &stage.all_shards(), LONG).await.unwrap());
    for (old, new) in [(ONE, TWO), (TWO, ONE), (ONE, ONE)] {
        stage.store.release(old, &last).await.unwrap();
        let tenures = sorted(stage.store.acquire(new, &stage.all_shards(), LONG).await.unwrap());
        assert_eq!(tenures.len(), last.len());
        for (earlier, later) in last.iter().zip(&tenures) {
            assert!(later.epoch > earlier.epoch, "{earlier:?} {later:?}");
        }
        last = tenures;
    }
}

pub async fn a_released_tenure_is_lost(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let tenures = stage.store.acquire(ONE, &stage.all_shards(), LONG).await.unwrap();
    stage.store.release(ONE, &tenures[..1]).await.unwrap();
    let standing = sorted(stage.store.renew(ONE, &tenures, LONG).await.unwrap());
    assert_eq!(standing, sorted(tenures[1..].to_vec()));
}

pub async fn a_released_shard_is_its_last_owners_until_it_is_taken(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..3).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let first = stage.claim_one(&timers[0]).await;
    stage.store.release(stage.node, &stage.tenures).await.unwrap();

    stage.settle(&first, Next::Completed { at: NOW }).await;
    let second = stage.claim_one(&timers[1]).await;
    let tenures = stage.store.acquire(TWO, &stage.all_shards(), LONG).await.unwrap();

    assert_eq!(tenures.len(), stage.tenures.len());
    assert_eq!(stage.store.settle(&[second.settle(Next::Completed { at: NOW })]).await.unwrap(), [false]);
    assert_eq!(stage.claim(&[entry(&timers[2])]).await, []);
    assert_eq!(ids_of(&stage.store.expired_claims(&tenures, 100).await.unwrap()), [second.entry.id]);
}

pub async fn a_shard_is_free_at_the_end_of_its_lease(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    // A lease of no length ends the moment it begins, whether or not the clock has moved since.
    let old = sorted(stage.store.acquire(ONE, &stage.all_shards(), micros(0)).await.unwrap());
    let new = sorted(stage.store.acquire(TWO, &stage.all_shards(), LONG).await.unwrap());
    assert_eq!(new.len(), old.len());
    assert!(old.iter().zip(&new).all(|(old, new)| new.epoch > old.epoch), "{old:?} {new:?}");
}

pub async fn a_shard_can_be_taken_over_once_its_lease_ran_out(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let shards = stage.all_shards();
    let old = sorted(stage.store.acquire(ONE, &shards, millis(50)).await.unwrap());
    let new = take_over(&stage, TWO, &shards).await;
    for (earlier, later) in old.iter().zip(&new) {
        assert!(later.epoch > earlier.epoch, "{earlier:?} {later:?}");
    }
    assert_eq!(stage.store.acquire(ONE, &shards, LONG).await.unwrap(), []);
}

pub async fn a_lost_tenure_is_missing_in_the_answer_to_renew(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let shards = stage.all_shards();
    let old = sorted(stage.store.acquire(ONE, &shards, millis(1)).await.unwrap());
    take_over(&stage, TWO, &shards[..1]).await;
    // The other leases ran out as well, but nobody took those: they are still the first node's.
    assert_eq!(sorted(stage.store.renew(ONE, &old, LONG).await.unwrap()), old[1..]);
    assert_eq!(stage.store.acquire(TWO, &shards[1..], LONG).await.unwrap(), [], "renewed in time");
}

pub async fn a_renewed_lease_lasts(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let (first, rest) = (stage.all_shards()[..1].to_vec(), stage.all_shards()[1..].to_vec());
    let tenures = stage.store.acquire(ONE, &stage.all_shards(), millis(50)).await.unwrap();
    let renewed: Vec<_> = tenures.iter().copied().filter(|tenure| tenure.shard != first[0]).collect();
    assert_eq!(sorted(stage.store.renew(ONE, &renewed, LONG).await.unwrap()), sorted(renewed));
    take_over(&stage, TWO, &first).await;
    assert_eq!(stage.store.acquire(TWO, &rest, LONG).await.unwrap(), [], "these were renewed");
}

pub async fn only_the_owner_renews(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let tenures = sorted(stage.store.acquire(ONE, &stage.all_shards(), LONG).await.unwrap());
    assert_eq!(stage.store.renew(TWO, &tenures, LONG).await.unwrap(), []);
    for by in [-1, 1] {
        let shifted: Vec<_> = tenures.iter().map(|tenure| Tenure { epoch: Epoch(tenure.epoch.0 + by), ..*tenure }).collect();
        assert_eq!(stage.store.renew(ONE, &shifted, LONG).await.unwrap(), [], "epochs shifted by {by}");
    }
}

pub async fn releasing_what_is_not_ones_own_is_passed_over(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let old = stage.store.acquire(ONE, &stage.all_shards(), LONG).await.unwrap();
    stage.store.release(TWO, &old).await.unwrap();
    assert_eq!(stage.store.acquire(TWO, &stage.all_shards(), LONG).await.unwrap(), []);

    // A straggler releases under an epoch that is long over.
    stage.store.release(ONE, &old).await.unwrap();
    let new = sorted(stage.store.acquire(TWO, &stage.all_shards(), LONG).await.unwrap());
    stage.store.release(ONE, &old).await.unwrap();
    assert_eq!(sorted(stage.store.renew(TWO, &new, LONG).await.unwrap()), new);
    stage.store.release(TWO, &old).await.unwrap();
    assert_eq!(sorted(stage.store.renew(TWO, &new, LONG).await.unwrap()), new);
}

pub async fn of_many_nodes_each_shard_gets_one(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let mut tasks = Vec::new();
    for node in 1..=16 {
        let (store, shards) = (stage.store.clone(), stage.all_shards());
        tasks.push(tokio::spawn(async move { store.acquire(NodeId(node), &shards, LONG).await.unwrap() }));
    }
    let mut taken = Vec::new();
    for task in tasks {
        taken.extend(task.await.unwrap());
    }
    let shards: Vec<_> = sorted(taken).iter().map(|tenure| tenure.shard).collect();
    assert_eq!(shards, stage.all_shards());
}
