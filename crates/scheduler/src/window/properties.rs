//! The window beside a naive model of the store, over random histories: nothing is early, nothing is taken twice at once, and nothing
//! that is pending is forgotten.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{collection::vec, prelude::*};

use super::*;

const SHARDS: u16 = 2;
const SECONDS: i64 = 20;
const PERMITS: usize = 4;
/// With the last of them nothing is ever pushed out.
const BUDGETS: [usize; 3] = [3, 10, AMPLE];
const AMPLE: usize = 1_000;

#[derive(Debug, Clone)]
enum Step {
    /// A client registers a timer, due so many seconds after the beginning.
    Create {
        due: i64,
        destination: u64,
    },
    /// A load of the next so many seconds begins: what the store has now is what it will bring.
    BeginLoad {
        seconds: i64,
        page: usize,
    },
    EndLoad,
    AbandonLoad,
    /// The sweep tells of everything that is overdue.
    Sweep,
    Pass {
        seconds: i64,
    },
    Take {
        limit: usize,
    },
    /// One of those under way has been called, is settled, or could not be claimed.
    Call {
        which: usize,
    },
    Finish {
        which: usize,
    },
    PutBack {
        which: usize,
    },
    Lose {
        shard: u16,
    },
    Gain {
        shard: u16,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..SECONDS, 1..4_u64).prop_map(|(due, destination)| Step::Create { due, destination }),
        2 => (1..SECONDS, 1..5_usize).prop_map(|(seconds, page)| Step::BeginLoad { seconds, page }),
        2 => Just(Step::EndLoad),
        1 => Just(Step::AbandonLoad),
        1 => Just(Step::Sweep),
        3 => (0..4_i64).prop_map(|seconds| Step::Pass { seconds }),
        4 => (1..6_usize).prop_map(|limit| Step::Take { limit }),
        2 => any::<usize>().prop_map(|which| Step::Call { which }),
        3 => any::<usize>().prop_map(|which| Step::Finish { which }),
        1 => any::<usize>().prop_map(|which| Step::PutBack { which }),
        1 => (0..SHARDS).prop_map(|shard| Step::Lose { shard }),
        2 => (0..SHARDS).prop_map(|shard| Step::Gain { shard }),
    ]
}

/// What a load has read, and is about to say.
struct Loading {
    from: Vec<ShardCursor>,
    entries: Vec<DueEntry>,
    until: Timestamp,
    page: usize,
}

struct UnderWay {
    entry: DueEntry,
    is_called: bool,
}

/// A window, and everything that is true beside it.
struct World {
    window: Window,
    now: Timestamp,
    /// Pending in the store.
    pending: BTreeMap<Position, Destination>,
    under_way: Vec<UnderWay>,
    held: BTreeSet<Shard>,
    loading: Option<Loading>,
    created: u128,
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

fn entry((position, destination): (&Position, &Destination)) -> DueEntry {
    DueEntry { at: position.0, id: position.1, destination: *destination }
}

impl World {
    fn new(budget: usize) -> Self {
        Self {
            window: Window::new(SHARDS, budget, ConcurrencyLimit::new(PERMITS, PERMITS)),
            now: at(0),
            pending: BTreeMap::new(),
            under_way: Vec::new(),
            held: BTreeSet::new(),
            loading: None,
            created: 0,
        }
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Create { due, destination } => self.create(at(due), Destination(destination)),
            Step::BeginLoad { seconds, page } => self.begin_load(self.now.saturating_add(seconds_long(seconds)), page),
            Step::EndLoad => self.end_load(),
            Step::AbandonLoad => self.abandon_load(),
            Step::Sweep => self.sweep(),
            Step::Pass { seconds } => self.pass(self.now.saturating_add(seconds_long(seconds))),
            Step::Take { limit } => self.take(limit),
            Step::Call { which } => self.call(which),
            Step::Finish { which } => self.finish(which),
            Step::PutBack { which } => self.put_back(which),
            Step::Lose { shard } => self.lose(Shard(shard)),
            Step::Gain { shard } => self.gain(Shard(shard)),
        }
        self.check();
    }

    fn create(&mut self, at: Timestamp, destination: Destination) {
        self.created += 1;
        let id = TimerId::from_uuid(uuid::Uuid::from_u128(self.created));
        self.pending.insert((at, id), destination);
        self.window.admit(DueEntry { at, id, destination });
    }

    fn begin_load(&mut self, until: Timestamp, page: usize) {
        if self.loading.is_some() {
            return;
        }
        let from = self.window.begin_load(until, until);
        let read = |cursor: &ShardCursor| {
            let (shard, after) = (cursor.shard, cursor.after);
            let is_wanted = move |(position, _): &(&Position, &Destination)| {
                position.1.shard(SHARDS) == shard && position.0 <= until && after.is_none_or(|after| **position > after)
            };
            self.pending.iter().filter(is_wanted).map(entry).take(page).collect::<Vec<_>>()
        };
        let entries = from.iter().flat_map(read).collect();
        self.loading = Some(Loading { from, entries, until, page });
    }

    fn end_load(&mut self) {
        if let Some(Loading { from, entries, until, page }) = self.loading.take() {
            self.window.end_load(&from, &entries, until, page);
        }
    }

    fn abandon_load(&mut self) {
        if let Some(Loading { from, .. }) = self.loading.take() {
            self.window.abandon_load(&from);
        }
    }

    fn sweep(&mut self) {
        for found in self.pending.iter().map(entry).filter(|found| found.at <= self.now) {
            self.window.find(found);
        }
    }

    fn pass(&mut self, now: Timestamp) {
        self.now = now;
        while self.window.promote(now, 3) {}
    }

    fn take(&mut self, limit: usize) {
        for taken in self.window.take(limit) {
            let position = (taken.at, taken.id);
            assert!(taken.at <= self.now, "early: {taken:?}");
            assert!(self.held.contains(&taken.id.shard(SHARDS)), "of a shard that is not held: {taken:?}");
            let is_under_way = |other: &UnderWay| (other.entry.at, other.entry.id) == position;
            assert!(!self.under_way.iter().any(is_under_way), "taken twice at once: {taken:?}");
            match self.pending.remove(&position) {
                Some(destination) => {
                    assert_eq!(taken.destination, destination);
                    self.under_way.push(UnderWay { entry: taken, is_called: false });
                }
                // A load brought it that had begun before it was settled. The claim tells.
                None => self.window.done(&taken),
            }
        }
    }

    fn which(&self, which: usize) -> Option<usize> {
        (!self.under_way.is_empty()).then(|| which % self.under_way.len())
    }

    fn call(&mut self, which: usize) {
        if let Some(which) = self.which(which) {
            self.under_way[which].is_called = true;
            self.window.called(&self.under_way[which].entry);
        }
    }

    fn finish(&mut self, which: usize) {
        if let Some(which) = self.which(which) {
            self.window.done(&self.under_way.swap_remove(which).entry);
        }
    }

    fn put_back(&mut self, which: usize) {
        if let Some(which) = self.which(which) {
            let entry = self.under_way.swap_remove(which).entry;
            self.pending.insert((entry.at, entry.id), entry.destination);
            self.window.put_back(&[entry]);
        }
    }

    fn lose(&mut self, shard: Shard) {
        self.held.remove(&shard);
        self.window.close(shard);
    }

    fn gain(&mut self, shard: Shard) {
        if self.held.insert(shard) {
            self.window.open(shard);
        }
    }

    fn check(&self) {
        let called = self.under_way.iter().filter(|one| one.is_called).count();
        assert_eq!(self.window.in_flight(), self.under_way.len() - called, "permits");
        assert!(self.window.in_flight() <= PERMITS);
        for (position, destination) in self.pending.iter().filter(|((at, _), _)| *at > self.now) {
            let loaded = self.window.reach.get(&position.1.shard(SHARDS)).and_then(|reach| reach.loaded);
            if loaded.is_some_and(|loaded| *position <= loaded) {
                assert_eq!(self.window.upcoming.get(position), Some(destination), "forgotten, though its shard was read so far");
            }
        }
    }

    /// From here on nothing happens but what the scheduler does by itself: everything that is pending is taken.
    fn drain(&mut self) {
        (0..SHARDS).for_each(|shard| self.gain(Shard(shard)));
        self.end_load();
        while !self.under_way.is_empty() {
            self.finish(0);
        }
        for _ in 0..=self.pending.len() {
            self.begin_load(at(SECONDS), usize::MAX);
            self.end_load();
            self.sweep();
            self.pass(at(2 * SECONDS));
            self.window.look_again();
            self.take(usize::MAX);
            while !self.under_way.is_empty() {
                self.finish(0);
            }
            self.check();
        }
        assert_eq!(self.pending, BTreeMap::new(), "never taken");
        assert_eq!((self.window.len(), self.window.in_flight()), (0, 0));
    }
}

fn seconds_long(seconds: i64) -> domain::Span {
    domain::Span::from_micros_clamped(seconds * 1_000_000)
}

proptest! {
    #[test]
    fn nothing_is_early_nothing_is_taken_twice_and_nothing_is_forgotten(
        budget in proptest::sample::select(&BUDGETS),
        steps in vec(step(), 0..120),
    ) {
        let mut world = World::new(budget);
        for step in &steps {
            world.apply(step);
        }
        world.drain();
    }
}
