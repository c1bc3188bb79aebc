//! The steps of the scheduler on the model store, with a clock that stands still until it is moved.

#![expect(clippy::unwrap_used, reason = "a test may stop where it is")]

use std::sync::Arc;

use domain::{Clock, ManualClock, NewTimer, Next, Shard, Span, Status, TimerId, Timestamp};
use scheduler::{Config, Scheduler, SweepPosition};
use store::{Claimed, DueEntry, Epoch, Fault, Faulty, Member, Model, NodeId, Operation, Settlement, Store, Tenure};
use store_conformance::{NOW, secs, timer};

const RECEIVER: &str = "http://receiver.example/";

struct Rig {
    clock: Arc<ManualClock>,
    model: Arc<Model>,
    store: Arc<Faulty<Model>>,
    scheduler: Scheduler,
}

impl Rig {
    /// A scheduler that holds all shards and has read ahead.
    async fn started() -> Self {
        Self::with(Config::default()).await
    }

    async fn with(config: Config) -> Self {
        let rig = Self::new(config);
        rig.scheduler.beat_once().await.unwrap();
        rig.load_all().await;
        rig
    }

    fn new(config: Config) -> Self {
        let clock = Arc::new(ManualClock::at(NOW));
        let model = Arc::new(Model::new(Arc::clone(&clock) as Arc<dyn Clock>, 4));
        let store = Arc::new(Faulty::new(Arc::clone(&model)));
        let scheduler = Scheduler::new(Arc::clone(&store) as Arc<dyn Store>, Arc::clone(&clock) as Arc<dyn Clock>, config);
        Self { clock, model, store, scheduler }
    }

    /// Another node on the same database.
    fn another(&self) -> Scheduler {
        let store = Arc::new(self.model.another_process());
        Scheduler::new(store, Arc::clone(&self.clock) as Arc<dyn Clock>, Config::default())
    }

    async fn load_all(&self) {
        while self.scheduler.load_once().await.unwrap() {}
    }

    /// Puts timers into the store without telling the scheduler.
    async fn create(&self, timers: Vec<NewTimer>) -> Vec<TimerId> {
        let created = self.store.create(timers).await.unwrap();
        created.iter().map(|created| created.timer().id()).collect()
    }

    async fn claim(&self) -> Vec<Claimed> {
        let mut all = Vec::new();
        loop {
            let (claimed, more) = self.scheduler.claim_once().await.unwrap();
            all.extend(claimed);
            if !more {
                return all;
            }
        }
    }

    async fn claim_ids(&self) -> Vec<TimerId> {
        self.claim().await.iter().map(|claimed| claimed.entry.id).collect()
    }

    async fn settle(&self, claimed: &[Claimed], next: impl Fn(&Claimed) -> Next) {
        let batch: Vec<Settlement> = claimed.iter().map(|claimed| claimed.settle(next(claimed))).collect();
        assert!(self.store.settle(&batch).await.unwrap().iter().all(|counted| *counted));
        self.scheduler.settled(&batch);
    }

    async fn complete(&self, claimed: &[Claimed]) {
        let at = self.clock.now();
        self.settle(claimed, |_| Next::Completed { at }).await;
    }
}

fn entry(new: &NewTimer) -> DueEntry {
    DueEntry { at: new.execute_at, id: new.definition.id, destination: new.definition.callback.destination() }
}

#[tokio::test]
async fn a_timer_read_ahead_is_claimed_when_it_is_due_and_not_before() {
    let rig = Rig::new(Config::default());
    let ids = rig.create(vec![timer(RECEIVER).due_in(secs(10)).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    rig.clock.advance(secs(3));
    rig.scheduler.beat_once().await.unwrap();
    assert!(rig.claim_ids().await.is_empty());
    rig.clock.advance(Span::from_micros(6_999_999));
    rig.scheduler.beat_once().await.unwrap();
    assert!(rig.claim_ids().await.is_empty(), "a microsecond too early");
    rig.clock.advance(Span::from_micros(1));
    assert_eq!(rig.claim_ids().await, ids);
    assert!(rig.claim_ids().await.is_empty(), "once is enough");
}

#[tokio::test]
async fn a_nudged_timer_needs_no_load() {
    let rig = Rig::started().await;
    let new = timer(RECEIVER).due_in(secs(1)).build();
    let ids = rig.create(vec![new.clone()]).await;
    rig.scheduler.nudge(&[entry(&new)]);
    rig.clock.advance(secs(1));
    assert_eq!(rig.claim_ids().await, ids);
}

#[tokio::test]
async fn a_lost_nudge_is_repaired_by_the_sweep() {
    let rig = Rig::started().await;
    let ids = rig.create(vec![timer(RECEIVER).due_in(secs(1)).build()]).await;
    rig.clock.advance(secs(1));
    assert!(rig.claim_ids().await.is_empty(), "nobody told the scheduler");
    assert_eq!(rig.scheduler.sweep_once(&mut SweepPosition::default()).await.unwrap(), 1);
    assert_eq!(rig.claim_ids().await, ids);
    assert_eq!(rig.scheduler.sweep_once(&mut SweepPosition::default()).await.unwrap(), 0);
}

#[tokio::test]
async fn a_timer_canceled_or_moved_in_the_store_is_not_claimed_at_its_old_time() {
    let rig = Rig::new(Config::default());
    let ids = rig.create(vec![timer(RECEIVER).due_in(secs(1)).build(), timer(RECEIVER).due_in(secs(1)).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    rig.store.cancel(ids[0], rig.clock.now()).await.unwrap();
    let mut moved = rig.store.get(ids[1]).await.unwrap().unwrap();
    moved.execute_at = NOW.saturating_add(secs(2));
    rig.store.update(&moved, rig.clock.now()).await.unwrap();
    rig.clock.advance(secs(1));
    assert!(rig.claim_ids().await.is_empty());
    rig.clock.advance(secs(1));
    rig.scheduler.sweep_once(&mut SweepPosition::default()).await.unwrap();
    assert_eq!(rig.claim_ids().await, [ids[1]]);
}

#[tokio::test]
async fn a_retry_comes_back_through_memory_at_its_time() {
    let rig = Rig::new(Config::default());
    rig.create(vec![timer(RECEIVER).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    let claimed = rig.claim().await;
    assert_eq!(claimed[0].attempt, 1);
    let at = NOW.saturating_add(secs(2));
    rig.settle(&claimed, |claimed| Next::Pending { at, attempt: claimed.attempt, error: Some("HTTP 500".to_owned()) }).await;
    rig.clock.advance(secs(1));
    assert!(rig.claim_ids().await.is_empty());
    rig.clock.advance(secs(1));
    let again = rig.claim().await;
    assert_eq!((again[0].entry.id, again[0].attempt), (claimed[0].entry.id, 2));
}

#[tokio::test]
async fn no_more_is_claimed_than_can_start_and_places_become_free_again() {
    let rig = Rig::new(Config { in_flight_max: 8, in_flight_per_destination_max: 2, ..Config::default() });
    rig.create((0..5).map(|_| timer(RECEIVER).build()).collect()).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    let first = rig.claim().await;
    assert!((1..=2).contains(&first.len()));
    assert!(rig.claim().await.is_empty());
    let mut fired = first.len();
    let mut under_way = first;
    while !under_way.is_empty() {
        rig.complete(&under_way).await;
        under_way = rig.claim().await;
        fired += under_way.len();
    }
    assert_eq!(fired, 5);
}

#[tokio::test]
async fn a_backlog_larger_than_the_window_fires_completely_and_oldest_first() {
    let config = Config {
        window_entries_max: 20_000,
        in_flight_max: 100_000,
        in_flight_per_destination_max: 100_000,
        ..Config::default()
    };
    let rig = Rig::new(config);
    let overdue: Vec<_> = (0..50_000_u32).map(|n| timer(RECEIVER).due_ago(Span::from_secs(100_000 - n)).build()).collect();
    for batch in overdue.chunks(1000) {
        rig.create(batch.to_vec()).await;
    }
    rig.scheduler.beat_once().await.unwrap();
    let mut fired = Vec::new();
    let mut position = SweepPosition::default();
    while fired.len() < overdue.len() {
        rig.load_all().await;
        // What the window had no room for is left to the sweep.
        rig.scheduler.sweep_once(&mut position).await.unwrap();
        assert!(rig.scheduler.in_memory() <= 20_000, "the window keeps to its budget");
        let claimed = rig.claim().await;
        assert!(!claimed.is_empty(), "stuck after {} of {}", fired.len(), overdue.len());
        fired.extend(claimed.iter().map(|claimed| claimed.entry.at));
        rig.complete(&claimed).await;
    }
    // Four shards are read page by page, so the order holds but for what one page of a shard spans.
    let out_of_order = fired.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!(out_of_order < 32, "{out_of_order}");
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_read_back_and_fires_once() {
    let rig = Rig::new(Config::default());
    let ids = rig.create(vec![timer(RECEIVER).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    rig.store.plan(Operation::Claim, Fault::DoneUnknown);
    let claimed = rig.claim().await;
    assert_eq!((claimed[0].entry.id, claimed[0].attempt), (ids[0], 1));
    assert!(rig.claim_ids().await.is_empty());
}

#[tokio::test]
async fn a_claim_that_failed_leaves_its_timers_due() {
    let rig = Rig::new(Config::default());
    let ids = rig.create(vec![timer(RECEIVER).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    rig.store.plan(Operation::Claim, Fault::NotDone);
    assert!(rig.scheduler.claim_once().await.is_err());
    assert_eq!(rig.scheduler.in_flight(), 0);
    assert_eq!(rig.claim_ids().await, ids);
}

#[tokio::test]
async fn a_failed_load_is_tried_again() {
    let rig = Rig::new(Config::default());
    let ids = rig.create(vec![timer(RECEIVER).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.store.plan(Operation::Due, Fault::NotDone);
    assert!(rig.scheduler.load_once().await.is_err());
    rig.load_all().await;
    assert_eq!(rig.claim_ids().await, ids);
}

#[tokio::test]
async fn nothing_is_claimed_on_a_lease_that_may_have_run_out() {
    let rig = Rig::new(Config::default());
    let ids = rig.create(vec![timer(RECEIVER).due_in(secs(1)).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    rig.clock.advance(secs(4));
    assert!(rig.claim_ids().await.is_empty());
    rig.scheduler.beat_once().await.unwrap();
    assert_eq!(rig.claim_ids().await, ids, "nobody took the shard, so the lease could be renewed");
}

#[tokio::test]
async fn what_a_dead_owner_left_executing_is_found_after_the_take_over() {
    let rig = Rig::new(Config::default());
    let ids = rig.create(vec![timer(RECEIVER).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    let claimed = rig.claim().await;
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
    let (again, _) = successor.claim_once().await.unwrap();
    assert_eq!((again[0].entry.id, again[0].attempt), (ids[0], 2));

    // The old owner wakes up: it has lost its shards, and what it did counts for nothing.
    rig.scheduler.beat_once().await.unwrap();
    assert!(!rig.scheduler.may_send(claimed[0].tenure).await);
    let late = [claimed[0].settle(Next::Completed { at: rig.clock.now() })];
    assert_eq!(rig.store.settle(&late).await.unwrap(), [false]);
}

/// Its first sign of life and the taking of its shards may pass each other: neither sees the other, and the answer still names
/// shards whose claims the taker found abandoned.
#[tokio::test]
async fn after_a_break_one_heartbeat_is_not_enough_to_send() {
    let rig = Rig::new(Config::default());
    rig.create(vec![timer(RECEIVER).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    let tenure = rig.claim().await[0].tenure;
    rig.clock.advance(secs(4));
    rig.store.plan_none(Operation::Heartbeat);
    rig.store.plan(Operation::Heartbeat, Fault::NotDone);
    assert!(rig.scheduler.beat_once().await.is_err());
    assert_eq!(futures_util::FutureExt::now_or_never(rig.scheduler.may_send(tenure)), None);
    rig.scheduler.beat_once().await.unwrap();
    assert!(rig.scheduler.may_send(tenure).await, "nobody took the shard");
}

#[tokio::test]
async fn what_was_handed_over_is_not_sent_after_the_machine_was_suspended() {
    let rig = Rig::new(Config::default());
    rig.create(vec![timer(RECEIVER).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    let tenure = rig.claim().await[0].tenure;
    rig.scheduler.leave().await.unwrap();
    assert!(rig.scheduler.may_send(tenure).await);
    let successor = rig.another();
    // The steady clock knows nothing of it.
    rig.clock.set(NOW.saturating_add(secs(10)));
    assert_eq!(successor.beat_once().await.unwrap(), 4);
    assert_eq!(successor.expired_once().await.unwrap().len(), 1);
    rig.scheduler.beat_once().await.unwrap();
    assert!(!rig.scheduler.may_send(tenure).await);
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
    assert_eq!(claimed.iter().map(|claimed| claimed.entry.id).collect::<Vec<_>>(), ids, "so nobody else would fire it");
    assert!(!rig.scheduler.may_send(claimed[0].tenure).await);
    rig.settle(&claimed, |claimed| Next::Pending { at: claimed.entry.at, attempt: 0, error: None }).await;
}

/// What it claimed before it handed its shards over is nobody's now.
#[tokio::test]
async fn claims_are_looked_for_at_once_when_a_node_is_gone() {
    for another_comes in [false, true] {
        let rig = Rig::started().await;
        let (other, newcomer) = (rig.another(), rig.another());
        other.leave().await.unwrap();
        let is_time =
            || futures_util::FutureExt::now_or_never(rig.scheduler.wait_for_take_over(secs(60).as_duration())).is_some();
        assert!(is_time() && !is_time(), "all shards came in once");
        for is_gone in [false, true] {
            rig.clock.advance(secs(2));
            if is_gone && another_comes {
                newcomer.leave().await.unwrap();
            }
            rig.scheduler.beat_once().await.unwrap();
            assert_eq!(is_time(), is_gone);
        }
    }
}

#[tokio::test]
async fn a_node_that_departs_leaves_everything_to_others_at_once() {
    let rig = Rig::started().await;
    rig.scheduler.depart().await.unwrap();
    assert_eq!(rig.another().beat_once().await.unwrap(), 4);
}

#[tokio::test]
async fn a_node_that_leaves_hands_its_shards_over_at_once_and_finishes_what_is_under_way() {
    let rig = Rig::new(Config::default());
    let ids = rig.create(vec![timer(RECEIVER).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    let claimed = rig.claim().await;
    rig.scheduler.leave().await.unwrap();
    assert_eq!(rig.scheduler.shards_held(), 0);

    let successor = rig.another();
    assert_eq!(successor.beat_once().await.unwrap(), 4);
    assert_eq!(rig.scheduler.beat_once().await.unwrap(), 0, "it takes nothing back");
    assert!(successor.expired_once().await.unwrap().is_empty(), "its claim is not up for grabs while it lives");
    assert!(rig.scheduler.may_send(claimed[0].tenure).await);
    rig.complete(&claimed).await;
    assert_eq!(rig.store.get(ids[0]).await.unwrap().unwrap().status, Status::Completed);
}

#[tokio::test]
async fn what_a_leaving_node_does_not_finish_is_taken_up_once_it_lives_no_more() {
    let rig = Rig::new(Config::default());
    let ids = rig.create(vec![timer(RECEIVER).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    let claimed = rig.claim().await;
    rig.scheduler.leave().await.unwrap();
    let successor = rig.another();
    successor.beat_once().await.unwrap();
    rig.scheduler.depart().await.unwrap();
    assert_eq!(successor.expired_once().await.unwrap()[0].entry.id, ids[0]);
    rig.scheduler.beat_once().await.unwrap();
    rig.clock.advance(secs(5));
    rig.scheduler.beat_once().await.unwrap();
    assert!(!rig.scheduler.may_send(claimed[0].tenure).await, "there was a break in its life");
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
    let told = rig.scheduler.tell_once().await.unwrap();
    assert!((1..20).contains(&told), "{told}");
    assert_eq!(other.hear_once().await.unwrap(), told);
    assert_eq!((rig.scheduler.in_memory(), other.in_memory()), (20 - told, told));
    // Alone, there is nobody to tell.
    rig.clock.advance(secs(5));
    rig.scheduler.beat_once().await.unwrap();
    rig.scheduler.nudge(&entries);
    assert!(futures_util::FutureExt::now_or_never(rig.scheduler.tell_once()).is_none());
}

/// A clock that is off by so much.
struct Skewed(Arc<ManualClock>, i64);

impl Clock for Skewed {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.now().as_micros() + self.1)
    }

    fn steady(&self) -> std::time::Duration {
        self.0.steady()
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
async fn a_timer_that_gets_another_receiver_fires_once_and_its_place_becomes_free() {
    let rig = Rig::new(Config::default());
    let ids = rig.create(vec![timer(RECEIVER).due_in(secs(1)).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    let mut changed = rig.store.get(ids[0]).await.unwrap().unwrap();
    changed.definition.callback = timer("http://other.example/").build().definition.callback;
    rig.store.update(&changed, rig.clock.now()).await.unwrap();
    let destination = changed.definition.callback.destination();
    rig.scheduler.nudge(&[DueEntry { at: changed.execute_at, id: ids[0], destination }]);
    rig.clock.advance(secs(1));
    let claimed = rig.claim().await;
    assert_eq!(claimed.len(), 1);
    rig.complete(&claimed).await;
    assert_eq!(rig.scheduler.in_flight(), 0);
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
    let tenure = Tenure { shard: Shard(1), epoch: Epoch(1) };
    let waiting = rig.scheduler.may_send(tenure);
    assert!(tokio::time::timeout(std::time::Duration::from_secs(1), waiting).await.unwrap());
}

#[tokio::test]
async fn the_lag_is_how_late_the_oldest_waiting_timer_is() {
    let rig = Rig::new(Config::default());
    rig.create(vec![timer(RECEIVER).due_in(secs(1)).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    assert_eq!(rig.scheduler.lag(), Span::ZERO);
    rig.clock.advance(secs(3));
    assert_eq!(rig.scheduler.lag(), secs(2));
}

#[tokio::test]
async fn a_wall_clock_that_jumps_fires_each_timer_once() {
    let rig = Rig::new(Config::default());
    let hour = Span::from_secs(3600);
    let ids = rig.create(vec![timer(RECEIVER).due_in(secs(60)).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    rig.clock.set(NOW.saturating_sub(hour));
    assert!(rig.claim_ids().await.is_empty(), "back an hour: not due");
    rig.clock.set(NOW.saturating_add(hour));
    assert!(rig.claim_ids().await.is_empty(), "forward: not believed before it was compared with the database's");
    rig.scheduler.beat_once().await.unwrap();
    assert_eq!(rig.claim_ids().await, ids, "forward: due");
    rig.clock.set(NOW);
    rig.scheduler.sweep_once(&mut SweepPosition::default()).await.unwrap();
    rig.clock.set(NOW.saturating_add(hour));
    rig.scheduler.sweep_once(&mut SweepPosition::default()).await.unwrap();
    assert!(rig.claim_ids().await.is_empty(), "not a second time");
}

#[tokio::test]
async fn finished_timers_are_purged_when_they_are_old_enough() {
    let rig = Rig::new(Config { retention: secs(60), ..Config::default() });
    let ids = rig.create(vec![timer(RECEIVER).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    let claimed = rig.claim().await;
    rig.complete(&claimed).await;
    rig.clock.advance(secs(60));
    rig.scheduler.purge_once().await.unwrap();
    assert!(rig.store.get(ids[0]).await.unwrap().is_some());
    rig.clock.advance(secs(1));
    rig.scheduler.purge_once().await.unwrap();
    assert!(rig.store.get(ids[0]).await.unwrap().is_none());
}

/// The loop sleeps on the real clock, so this one does too; it ends as soon as the wake-up comes.
#[tokio::test]
async fn an_earlier_timer_wakes_the_loop() {
    let rig = Rig::started().await;
    // The start itself asked for a look; that is over now.
    rig.scheduler.wait().await;
    let mut waiting = std::pin::pin!(rig.scheduler.wait());
    assert!(futures_util::poll!(waiting.as_mut()).is_pending(), "there is nothing to do");
    let new = timer(RECEIVER).due_in(secs(1)).build();
    rig.create(vec![new.clone()]).await;
    rig.scheduler.nudge(&[entry(&new)]);
    assert!(futures_util::poll!(waiting.as_mut()).is_ready());
}
