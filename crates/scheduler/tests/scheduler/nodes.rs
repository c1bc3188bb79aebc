//! Several nodes on one store: sharing, handing over, taking over.

use std::sync::Arc;

use domain::{Clock, ManualClock, Next, Shard, Status, Timestamp};
use scheduler::{Config, Scheduler};
use store::{DueStore, Epoch, Member, MembershipStore, NodeId, Operation, ShardLease, Store, TimerStore};
use store_conformance::{NOW, secs, timer};
use store_testing::Fault;

use crate::{RECEIVER, Rig, entry};

#[tokio::test]
async fn what_a_dead_owner_left_executing_is_found_after_the_take_over() {
    let (rig, ids, claimed) = Rig::with_a_claim().await;
    assert!(rig.scheduler.expired_once().await.unwrap().is_empty(), "it is being delivered here");

    let successor = rig.another();
    assert_eq!(successor.beat_once().await.unwrap(), 0, "the first one lives");
    rig.clock.advance(secs(3));
    assert_eq!(successor.beat_once().await.unwrap(), 0, "and is still believed to");
    rig.clock.advance(secs(1));
    assert_eq!(successor.beat_once().await.unwrap(), 4);
    let expired = successor.expired_once().await.unwrap();
    assert_eq!(expired.iter().map(|claimed| claimed.entry.id).collect::<Vec<_>>(), ids);

    let at = expired[0].entry.at;
    let batch = [expired[0].settle(Next::Pending { at, attempt: expired[0].attempt, error: None })];
    assert_eq!(rig.store.settle(&batch).await.unwrap(), [true]);
    while successor.load_once().await.unwrap() {}
    successor.settled(&batch);
    let again = successor.claim_once().await.unwrap().claimed;
    assert_eq!((again[0].entry.id, again[0].attempt), (ids[0], 2));

    // The old owner wakes up: it has lost its shards, and what it did counts for nothing.
    rig.scheduler.beat_once().await.unwrap();
    assert!(!rig.scheduler.may_send(claimed[0].shard_lease).await);
    let late = [claimed[0].settle(Next::Completed { at: rig.clock.now() })];
    assert_eq!(rig.store.settle(&late).await.unwrap(), [false]);
}

/// Its first heartbeat and the taking of its shards may pass each other: neither sees the other, and the answer still names
/// shards whose claims the taker found abandoned.
#[tokio::test]
async fn after_a_break_one_heartbeat_is_not_enough_to_send() {
    let rig = Rig::new(Config::default());
    rig.create(vec![timer(RECEIVER).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    let shard_lease = rig.claim().await[0].shard_lease;
    rig.clock.advance(secs(4));
    rig.store.plan_none(Operation::Heartbeat);
    rig.store.plan(Operation::Heartbeat, Fault::NotDone);
    assert!(rig.scheduler.beat_once().await.is_err());
    assert_eq!(futures_util::FutureExt::now_or_never(rig.scheduler.may_send(shard_lease)), None);
    rig.scheduler.beat_once().await.unwrap();
    assert!(rig.scheduler.may_send(shard_lease).await, "no node took the shard");
}

#[tokio::test]
async fn what_was_handed_over_is_not_sent_after_the_machine_was_suspended() {
    let rig = Rig::new(Config::default());
    rig.create(vec![timer(RECEIVER).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    let shard_lease = rig.claim().await[0].shard_lease;
    rig.scheduler.leave().await.unwrap();
    assert!(rig.scheduler.may_send(shard_lease).await);
    let successor = rig.another();
    // The monotonic clock knows nothing of it.
    rig.clock.set(NOW.saturating_add(secs(10)));
    assert_eq!(successor.beat_once().await.unwrap(), 4);
    assert_eq!(successor.expired_once().await.unwrap().len(), 1);
    rig.scheduler.beat_once().await.unwrap();
    assert!(!rig.scheduler.may_send(shard_lease).await);
}

#[tokio::test]
async fn a_claim_in_doubt_is_not_forgotten_by_one_that_was_dead_for_a_moment() {
    let rig = Rig::new(Config::default());
    let ids = rig.create(vec![timer(RECEIVER).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    let successor = rig.another();
    rig.store.plan(Operation::Claim, Fault::DoneUnknown);
    let (claimed, ()) = tokio::join!(rig.claim(), async {
        rig.clock.advance(secs(4));
        assert_eq!(successor.beat_once().await.unwrap(), 4);
    });
    // It lives again before the successor has looked for what it left.
    rig.scheduler.beat_once().await.unwrap();
    assert!(successor.expired_once().await.unwrap().is_empty());
    assert_eq!(claimed.iter().map(|claimed| claimed.entry.id).collect::<Vec<_>>(), ids, "so no other node would fire it");
    assert!(!rig.scheduler.may_send(claimed[0].shard_lease).await);
    rig.settle(&claimed, |claimed| Next::Pending { at: claimed.entry.at, attempt: 0, error: None }).await;
}

/// What it claimed before it handed its shards over has no owner now.
#[tokio::test]
async fn claims_are_looked_for_at_once_when_a_node_is_gone() {
    for another_comes in [false, true] {
        let rig = Rig::started().await;
        let (other, joining) = (rig.another(), rig.another());
        other.leave().await.unwrap();
        let is_time =
            || futures_util::FutureExt::now_or_never(rig.scheduler.wait_for_take_over(secs(60).as_duration())).is_some();
        assert!(is_time() && !is_time(), "all shards came in once");
        for is_gone in [false, true] {
            rig.clock.advance(secs(2));
            if is_gone && another_comes {
                joining.leave().await.unwrap();
            }
            rig.scheduler.beat_once().await.unwrap();
            assert_eq!(is_time(), is_gone);
        }
    }
}

#[tokio::test]
async fn a_node_that_ends_its_lease_leaves_everything_to_other_nodes_at_once() {
    let rig = Rig::started().await;
    rig.scheduler.end_lease().await.unwrap();
    assert_eq!(rig.another().beat_once().await.unwrap(), 4);
}

#[tokio::test]
async fn a_node_that_leaves_hands_its_shards_over_at_once_and_finishes_what_is_under_way() {
    let (rig, ids, claimed) = Rig::with_a_claim().await;
    rig.scheduler.leave().await.unwrap();
    assert_eq!(rig.scheduler.shards_held(), 0);

    let successor = rig.another();
    assert_eq!(successor.beat_once().await.unwrap(), 4);
    assert_eq!(rig.scheduler.beat_once().await.unwrap(), 0, "it takes nothing back");
    assert!(successor.expired_once().await.unwrap().is_empty(), "its claim is not up for grabs while it lives");
    assert!(rig.scheduler.may_send(claimed[0].shard_lease).await);
    rig.complete(&claimed).await;
    assert_eq!(rig.store.get(ids[0]).await.unwrap().unwrap().status, Status::Completed);
}

#[tokio::test]
async fn what_a_leaving_node_does_not_finish_is_taken_up_once_it_lives_no_more() {
    let (rig, ids, claimed) = Rig::with_a_claim().await;
    rig.scheduler.leave().await.unwrap();
    let successor = rig.another();
    successor.beat_once().await.unwrap();
    rig.scheduler.end_lease().await.unwrap();
    assert_eq!(successor.expired_once().await.unwrap()[0].entry.id, ids[0]);
    rig.scheduler.beat_once().await.unwrap();
    rig.clock.advance(secs(5));
    rig.scheduler.beat_once().await.unwrap();
    assert!(!rig.scheduler.may_send(claimed[0].shard_lease).await, "there was a break in its life");
}

#[tokio::test]
async fn nodes_share_the_shards_and_those_that_come_get_theirs() {
    let rig = Rig::new(Config::default());
    let other = rig.another();
    assert_eq!(rig.scheduler.beat_once().await.unwrap(), 4);
    assert_eq!(other.beat_once().await.unwrap(), 0, "everything is taken");
    other.beat_once().await.unwrap();
    assert_eq!(rig.scheduler.beat_once().await.unwrap(), 2, "handed over");
    assert_eq!(other.beat_once().await.unwrap(), 2);
    rig.clock.advance(secs(3));
    assert_eq!(other.beat_once().await.unwrap(), 2);
    rig.clock.advance(secs(1));
    assert_eq!(other.beat_once().await.unwrap(), 4, "the first one lives no more");
    assert_eq!(rig.scheduler.beat_once().await.unwrap(), 0, "it lost its shards");
    assert_eq!(other.beat_once().await.unwrap(), 2, "and gets its share again");
    assert_eq!(rig.scheduler.beat_once().await.unwrap(), 2);
}

#[tokio::test]
async fn timers_of_other_nodes_are_passed_on_and_reach_their_window() {
    let rig = Rig::new(Config::default());
    let other = rig.another();
    for _ in 0..3 {
        rig.scheduler.beat_once().await.unwrap();
        other.beat_once().await.unwrap();
    }
    rig.load_all().await;
    while other.load_once().await.unwrap() {}
    let new: Vec<_> = (0..20).map(|_| timer(RECEIVER).due_in(secs(1)).build()).collect();
    rig.create(new.clone()).await;
    let entries: Vec<_> = new.iter().map(entry).collect();
    rig.scheduler.nudge(&entries);
    let told = rig.scheduler.send_nudges().await.unwrap();
    assert!((1..20).contains(&told), "{told}");
    assert_eq!(other.receive_nudges().await.unwrap(), told);
    assert_eq!((rig.scheduler.in_memory(), other.in_memory()), (20 - told, told));
    // Alone, there is no node to tell.
    rig.clock.advance(secs(5));
    rig.scheduler.beat_once().await.unwrap();
    rig.scheduler.nudge(&entries);
    assert!(futures_util::FutureExt::now_or_never(rig.scheduler.send_nudges()).is_none());
}

/// A clock that is off by so much.
struct Skewed(Arc<ManualClock>, i64);

impl Clock for Skewed {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.now().as_micros() + self.1)
    }

    fn monotonic(&self) -> std::time::Duration {
        self.0.monotonic()
    }
}

#[tokio::test]
async fn a_node_whose_clock_is_wrong_owns_nothing() {
    for (skew_millis, owns) in [(0, true), (499, true), (-499, true), (501, false), (-501, false), (3_600_000, false)] {
        let rig = Rig::new(Config::default());
        let clock = Arc::new(Skewed(Arc::clone(&rig.clock), skew_millis * 1000));
        let scheduler = Scheduler::new(Arc::clone(&rig.store) as Arc<dyn Store>, clock, Config::default());
        assert_eq!(scheduler.beat_once().await.unwrap() > 0, owns, "{skew_millis}");
        assert_eq!(scheduler.clock_skew(), (skew_millis as f64 / 1e3, !owns));
        // The other one owns what is left, whatever that one's clock says.
        for _ in 0..3 {
            rig.scheduler.beat_once().await.unwrap();
            scheduler.beat_once().await.unwrap();
        }
        assert_eq!(rig.scheduler.shards_held(), if owns { 2 } else { 4 }, "{skew_millis}");
    }
}

#[tokio::test]
async fn a_failed_acquisition_does_not_undo_a_heartbeat() {
    let rig = Rig::new(Config { node_lease: secs(3), ..Config::default() });
    // One that holds a shard, but wants none.
    let rival = Member { takes_shards: false, ..Member::new(NodeId(1)) };
    rig.store.heartbeat(&rival, secs(60)).await.unwrap();
    let taken = rig.store.acquire(rival.node, &[Shard(0)]).await.unwrap();
    assert_eq!(rig.scheduler.beat_once().await.unwrap(), 3);
    rig.clock.advance(secs(2));
    rig.store.release(rival.node, &taken).await.unwrap();
    rig.store.plan(Operation::Acquire, Fault::NotDone);
    assert!(rig.scheduler.beat_once().await.is_err());
    // Past the first lease, but not past the renewed one.
    rig.clock.advance(secs(2));
    let shard_lease = ShardLease { shard: Shard(1), epoch: Epoch(1) };
    let waiting = rig.scheduler.may_send(shard_lease);
    assert!(tokio::time::timeout(std::time::Duration::from_secs(1), waiting).await.unwrap());
}
