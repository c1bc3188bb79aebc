//! The steps of the scheduler on the model store, with a clock that stands still until it is moved.

#![expect(clippy::unwrap_used, reason = "a test may stop where it is")]

mod nodes;

use std::{pin::pin, sync::Arc, time::Duration};

use domain::{Clock, ManualClock, NewTimer, Next, Span, TimerId};
use scheduler::{Claims, Config, Scheduler, SweepPosition};
use store::{Claimed, DueEntry, DueStore, Operation, Settlement, Store, TimerStore};
use store_conformance::{NOW, secs, timer};
use store_testing::{Fault, Faulty, Model};

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
        Self::on_shards(4, config)
    }

    fn on_shards(shards: u16, config: Config) -> Self {
        let clock = Arc::new(ManualClock::at(NOW));
        let model = Arc::new(Model::new(Arc::clone(&clock) as Arc<dyn Clock>, shards));
        let store = Arc::new(Faulty::new(Arc::clone(&model)));
        let scheduler = Scheduler::new(Arc::clone(&store) as Arc<dyn Store>, Arc::clone(&clock) as Arc<dyn Clock>, config);
        Self { clock, model, store, scheduler }
    }

    /// Another node on the same database.
    fn another(&self) -> Scheduler {
        let store = Arc::new(self.model.another_process());
        Scheduler::new(store, Arc::clone(&self.clock) as Arc<dyn Clock>, Config::default())
    }

    /// One with a timer that is being delivered.
    async fn with_a_claim() -> (Self, Vec<TimerId>, Vec<Claimed>) {
        let rig = Self::new(Config::default());
        let ids = rig.create(vec![timer(RECEIVER).build()]).await;
        rig.scheduler.beat_once().await.unwrap();
        rig.load_all().await;
        let claimed = rig.claim().await;
        (rig, ids, claimed)
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
            let Claims { claimed, more_due } = self.scheduler.claim_once().await.unwrap();
            all.extend(claimed);
            if !more_due {
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
    DueEntry { at: new.execute_at, id: new.definition.id, destination: new.definition.destination() }
}

#[tokio::test]
async fn a_timer_read_ahead_is_claimed_just_before_it_is_due_and_no_sooner() {
    let rig = Rig::new(Config::default());
    let ids = rig.create(vec![timer(RECEIVER).due_in(secs(10)).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    rig.clock.advance(secs(3));
    rig.scheduler.beat_once().await.unwrap();
    assert!(rig.claim_ids().await.is_empty());
    let too_early = secs(7).as_micros() - Config::default().claim_ahead.as_micros() - 1;
    rig.clock.advance(Span::from_micros_clamped(too_early));
    rig.scheduler.beat_once().await.unwrap();
    assert!(rig.claim_ids().await.is_empty(), "a microsecond too early");
    rig.clock.advance(Span::from_micros(1));
    assert_eq!(rig.claim_ids().await, ids);
    assert!(rig.claim_ids().await.is_empty(), "once is enough");
}

#[tokio::test]
async fn nothing_is_claimed_ahead_while_half_of_the_permits_are_taken() {
    let rig = Rig::new(Config { in_flight_max: 4, in_flight_per_destination_max: 4, ..Config::default() });
    let receivers = ["http://one.example/", "http://two.example/", "http://three.example/"];
    let ids = rig.create(receivers.iter().zip([1, 1, 2]).map(|(url, due)| timer(url).due_in(secs(due)).build()).collect()).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    rig.clock.advance(secs(1));
    let under_way = rig.claim().await;
    assert_eq!(under_way.len(), 2);

    rig.clock.advance(Span::from_micros(999_999));
    rig.scheduler.beat_once().await.unwrap();
    assert!(rig.claim_ids().await.is_empty(), "the permits that are left are for what is due");
    rig.complete(&under_way[..1]).await;
    assert_eq!(rig.claim_ids().await, ids[2..]);
}

#[tokio::test]
async fn claims_count_as_late_from_some_milliseconds_on() {
    for (late_by, late_calls) in [(24, 0), (25, 1), (5_000, 1)] {
        let rig = Rig::started().await;
        let new = timer(RECEIVER).due_in(secs(1)).build();
        rig.create(vec![new.clone()]).await;
        rig.scheduler.nudge(&[entry(&new)]);
        rig.clock.advance(Span::from_millis(1_000 + late_by));
        rig.scheduler.beat_once().await.unwrap();
        assert_eq!((rig.claim().await.len(), rig.scheduler.late_calls()), (1, late_calls), "{late_by} ms");
    }
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
    assert!(rig.claim_ids().await.is_empty(), "the scheduler was not told");
    assert_eq!(rig.scheduler.sweep_once(&mut SweepPosition::default()).await.unwrap(), 1);
    assert_eq!(rig.claim_ids().await, ids);
    assert_eq!(rig.scheduler.sweep_once(&mut SweepPosition::default()).await.unwrap(), 0);
}

#[tokio::test]
async fn a_lost_nudge_is_repaired_however_many_shards_there_are() {
    for shards in [1, 1_024, 1_025, 4_096] {
        let rig = Rig::on_shards(shards, Config { window_entries_max: 2_000_000, ..Config::default() });
        rig.scheduler.beat_once().await.unwrap();
        rig.load_all().await;
        let ids = rig.create(vec![timer(RECEIVER).due_in(secs(1)).build()]).await;
        rig.clock.advance(secs(1));
        let repaired = rig.scheduler.sweep_once(&mut SweepPosition::default()).await.unwrap();
        assert_eq!(repaired, 1, "{shards} shards");
        assert_eq!(rig.claim_ids().await, ids, "{shards} shards");
    }
}

#[tokio::test]
async fn a_lost_nudge_behind_a_backlog_is_found_in_a_few_sweeps() {
    const BACKLOG: usize = 10_000;
    let rig = Rig::new(Config { in_flight_per_destination_max: 1, ..Config::default() });
    rig.create((0..BACKLOG).map(|_| timer(RECEIVER).due_in(secs(1)).build()).collect()).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    let hidden = rig.create(vec![timer("http://another.example/").due_in(secs(2)).build()]).await;
    rig.clock.advance(secs(2));
    assert!(!rig.claim_ids().await.contains(&hidden[0]), "the scheduler was not told");
    // All else is in memory, so that each sweep reads a part of the backlog only.
    let mut position = SweepPosition::default();
    let mut sweeps = 1;
    while rig.scheduler.sweep_once(&mut position).await.unwrap() == 0 {
        sweeps += 1;
        assert!(sweeps <= BACKLOG / 4_096 + 1, "a sweep goes on where the last one stopped");
    }
    assert_eq!(rig.claim_ids().await, hidden);
}

#[tokio::test]
async fn a_timer_canceled_or_moved_in_the_store_is_not_claimed_at_its_old_time() {
    let rig = Rig::new(Config::default());
    let ids = rig.create(vec![timer(RECEIVER).due_in(secs(1)).build(), timer(RECEIVER).due_in(secs(1)).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    rig.store.cancel(ids[0], None, rig.clock.now()).await.unwrap();
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
async fn a_node_that_holds_thousands_of_shards_reads_ahead_in_all_of_them() {
    const TIMERS: usize = 200;
    let rig = Rig::on_shards(4_096, Config::default());
    rig.create((0..TIMERS).map(|_| timer(RECEIVER).due_in(secs(10)).build()).collect()).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    assert_eq!(rig.scheduler.in_memory(), TIMERS);
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
async fn a_timer_that_is_due_at_once_does_not_wait_for_a_backlog_to_be_read() {
    let rig = Rig::new(Config::default());
    rig.scheduler.beat_once().await.unwrap();
    let timers = [timer(RECEIVER).build(), timer(RECEIVER).due_in(secs(60)).build()];
    let ids = rig.create(timers.to_vec()).await;
    // Nothing has been read yet.
    rig.scheduler.nudge(&timers.each_ref().map(entry));
    assert_eq!(rig.claim_ids().await, ids[..1]);
    assert_eq!(rig.scheduler.in_memory(), 0, "the other is left to the load");
}

#[tokio::test]
async fn no_more_is_claimed_than_can_start_and_permits_become_free_again() {
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
        // What the window had no capacity for is left to the sweep.
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

/// How long a second claim takes, for so many timers, beside one that hangs for a minute.
async fn second_claim_of(count: usize) -> Duration {
    let rig = Rig::started().await;
    let claimable = async |count: usize| {
        let timers: Vec<_> = (0..count).map(|number| timer(&format!("http://receiver-{number}.example/")).build()).collect();
        rig.create(timers.clone()).await;
        rig.scheduler.nudge(&timers.iter().map(entry).collect::<Vec<_>>());
    };
    claimable(1).await;
    rig.store.plan(Operation::Claim, Fault::LateAnswer(secs(60)));
    let mut first = pin!(rig.scheduler.claim_once());
    assert!(futures_util::poll!(&mut first).is_pending());
    claimable(count).await;
    let begun = tokio::time::Instant::now();
    assert_eq!(rig.scheduler.claim_once().await.unwrap().claimed.len(), count);
    let elapsed = begun.elapsed();
    assert_eq!(first.await.unwrap().claimed.len(), 1);
    elapsed
}

#[tokio::test(start_paused = true)]
async fn beside_a_claim_that_hangs_the_next_one_waits_for_a_moment_only() {
    let few = second_claim_of(3).await;
    assert!((5..=6).contains(&few.as_millis()), "{few:?}");
    assert_eq!(second_claim_of(64).await, Duration::ZERO, "many are worth it");
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
    assert_eq!(rig.claim_ids().await, ids, "no node took the shard, so the lease could be renewed");
}

#[tokio::test]
async fn a_timer_that_gets_another_receiver_fires_once_and_its_permit_becomes_free() {
    let rig = Rig::new(Config::default());
    let ids = rig.create(vec![timer(RECEIVER).due_in(secs(1)).build()]).await;
    rig.scheduler.beat_once().await.unwrap();
    rig.load_all().await;
    let mut changed = rig.store.get(ids[0]).await.unwrap().unwrap();
    changed.definition.callback = timer("http://other.example/").build().definition.callback;
    rig.store.update(&changed, rig.clock.now()).await.unwrap();
    let destination = changed.definition.destination();
    rig.scheduler.nudge(&[DueEntry { at: changed.execute_at, id: ids[0], destination }]);
    rig.clock.advance(secs(1));
    let claimed = rig.claim().await;
    assert_eq!(claimed.len(), 1);
    rig.complete(&claimed).await;
    assert_eq!(rig.scheduler.in_flight(), 0);
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
