use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use domain::{Clock, NewTimer, Span, Status, TimerId, Timestamp};
use store::{NodeId, TimerStore};
use store_conformance::timer;
use store_partitioned::{Bug, Memory, PartitionedStore};
use tokio::time::Instant;

use crate::{
    audit::{Audit, Check},
    dice::Dice,
    network::Network,
    node::Node,
};

const SHARDS: u16 = 4;
const NODES: usize = 3;
const START: Timestamp = Timestamp::from_micros(1_893_456_000_000_000);
/// For how long things go wrong, and for how long the nodes are watched after that.
const TROUBLE: Duration = Duration::from_secs(40);
const SETTLING_TIME: Duration = Duration::from_secs(30);
/// How long everything may take altogether once nothing goes wrong any more. Over a slow network a take-over takes half a minute, and what
/// was claimed before it comes after it; what is stuck stays so for an hour.
const SETTLING_TIME_MAX: Duration = Duration::from_secs(180);
const TIMERS: u64 = 120;

/// How a simulation went.
pub struct Ended {
    pub violations: Vec<(Check, String)>,
    pub calls: u64,
    pub recoveries: u64,
    pub overtaken: u64,
    pub unknown: u64,
}

/// The clock of a machine: the monotonic one is right, the wall clock is off by something.
struct SimClock {
    began: Instant,
    ahead_micros: i64,
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let micros = i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(START.as_micros() + micros + self.ahead_micros)
    }

    fn monotonic(&self) -> Duration {
        self.began.elapsed()
    }
}

struct World {
    seed: u64,
    bug: Option<Bug>,
    memory: Memory,
    audit: Arc<Audit>,
    is_well: Arc<AtomicBool>,
    began: Instant,
    tokens: Arc<AtomicI64>,
    started: AtomicI64,
}

/// Runs one simulation to its end.
pub fn run(seed: u64, bug: Option<Bug>) -> Ended {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let memory = Memory::default();
        let world = World {
            seed,
            bug,
            memory,
            audit: Arc::default(),
            is_well: Arc::default(),
            began: Instant::now(),
            tokens: Arc::new(AtomicI64::new(1)),
            started: AtomicI64::new(1),
        };
        world.live().await;
        world.audit.with(|books| Ended {
            violations: std::mem::take(&mut books.violations),
            calls: books.calls(),
            recoveries: books.recoveries(),
            overtaken: books.overtaken(),
            unknown: books.unknown,
        })
    })
}

impl World {
    async fn live(&self) {
        let mut dice = Dice::new(self.seed, 1);
        self.memory.set_lag([0, 5, 60][usize::try_from(dice.below(3)).unwrap()]);
        let mut nodes = Vec::new();
        for _ in 0..NODES {
            nodes.push(self.start(&mut dice).await);
        }
        let clients = tokio::spawn(create(Arc::clone(&nodes[0]), self.seed));
        while self.began.elapsed() < TROUBLE {
            tokio::time::sleep(dice.millis(100, 3_000)).await;
            let slot = usize::try_from(dice.below(NODES as u64)).unwrap();
            self.strike(&mut nodes, slot, &mut dice).await;
        }
        self.is_well.store(true, Ordering::Relaxed);
        // A client that lost its node comes back with another.
        clients.abort();
        create(Arc::clone(&nodes[1]), self.seed).await;
        let well_since = Instant::now();
        tokio::time::sleep(SETTLING_TIME).await;
        for new in batch(self.seed) {
            let id = new.definition.id;
            let mut status = status(&nodes[1], id).await;
            while status != Status::Completed && well_since.elapsed() < SETTLING_TIME_MAX {
                tokio::time::sleep(Duration::from_secs(1)).await;
                status = self::status(&nodes[1], id).await;
            }
            if status != Status::Completed {
                self.audit.with(|books| books.stuck(id, status));
            }
        }
        nodes.iter().for_each(|node| node.stop.store(true, Ordering::Relaxed));
    }

    async fn start(&self, dice: &mut Dice) -> Arc<Node> {
        let nth = self.started.fetch_add(1, Ordering::Relaxed);
        let ahead_micros = i64::try_from(dice.below(400_000)).unwrap() - 200_000;
        let clock: Arc<dyn Clock> = Arc::new(SimClock { began: self.began, ahead_micros });
        let network = Arc::new(Network {
            memory: self.memory.clone(),
            dice: Mutex::new(Dice::new(self.seed, 1_000 + nth.unsigned_abs())),
            audit: Arc::clone(&self.audit),
            is_well: Arc::clone(&self.is_well),
            has_faults: !self.seed.is_multiple_of(3),
            latency_millis_max: [5, 60, 400][usize::try_from(dice.below(3)).unwrap()],
            paused_until: Arc::new(Mutex::new(Instant::now())),
            is_dead: Arc::default(),
        });
        let store = loop {
            if let Ok(store) = PartitionedStore::open(Arc::clone(&network) as _, Arc::clone(&clock), SHARDS).await {
                break store.with_bug(self.bug);
            }
        };
        let id = NodeId(u128::from(dice.roll()) << 16 | u128::from(nth.unsigned_abs()));
        let node = Node::new(id, store, network, clock, Arc::clone(&self.audit), Arc::clone(&self.tokens));
        let node = Arc::new(node);
        node.start();
        node
    }

    async fn strike(&self, nodes: &mut [Arc<Node>], slot: usize, dice: &mut Dice) {
        let node = &nodes[slot];
        if dice.per_mille(300) {
            node.network.is_dead.store(true, Ordering::Relaxed);
            node.stop.store(true, Ordering::Relaxed);
            let id = node.id;
            self.audit.with(|books| books.is_gone(id));
            nodes[slot] = self.start(dice).await;
        } else {
            *node.network.paused_until.lock().unwrap() = Instant::now() + dice.millis(10, 8_000);
        }
    }
}

async fn status(node: &Node, id: TimerId) -> Status {
    node.store.get(id).await.unwrap().map_or(Status::Canceled, |timer| timer.status)
}

fn batch(seed: u64) -> Vec<NewTimer> {
    let mut dice = Dice::new(seed, 2);
    let mut new = |number: u64| {
        let at = START.saturating_add(Span::from_millis(u32::try_from(dice.below(45_000)).unwrap()));
        timer("http://a.example/").numbered(number).created_at(START).due_at(at).build()
    };
    (0..TIMERS).map(&mut new).collect()
}

/// Registers all timers, over and over until that is answered.
async fn create(node: Arc<Node>, seed: u64) {
    for part in batch(seed).chunks(10) {
        while node.store.create(part.to_vec()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
