use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use domain::Clock;
use store_testing::Model;

use super::{
    client::{self, History},
    clock::TrueClock,
    dice::Dice,
    ledger::{Ledger, PipelineMetrics, Violation},
    nemesis,
    node::{Node, Outside},
    plan::Plan,
    planted::{Bug, Tampering},
    receiver::Receivers,
    verdict,
};

const SHARDS: u16 = 8;

/// Some nodes, one database, receivers, and a nemesis that does harm.
pub struct World {
    pub outside: Outside,
    pub history: History,
    slots: Mutex<Vec<Arc<Node>>>,
    started: AtomicU64,
    is_down: AtomicBool,
    is_healed: AtomicBool,
}

/// How a simulation went.
pub struct Ended {
    pub violations: Vec<Violation>,
    /// What happened, in order, as far as it concerns the first violation.
    pub story: Vec<String>,
    pub hash: u64,
    pub metrics: PipelineMetrics,
}

/// Runs one simulation to its end.
pub fn run(seed: u64, bug: Option<Bug>) -> Ended {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = Arc::new(World::new(seed, bug));
        world.live().await;
        world.ended()
    })
}

impl World {
    pub const NODES: usize = 3;

    fn new(seed: u64, bug: Option<Bug>) -> Self {
        let (truth, plan) = (TrueClock::start(), Plan::of(seed));
        let ledger = Arc::new(Ledger::new(truth, SHARDS, &plan));
        let receivers = Receivers { seed, clock: truth, ledger: Arc::clone(&ledger), are_well: AtomicBool::new(false) };
        let outside = Outside {
            plan,
            bug,
            truth,
            model: Model::new(Arc::new(truth) as Arc<dyn Clock>, SHARDS),
            tampering: Arc::new(Tampering::new(bug)),
            ledger,
            receivers: Arc::new(receivers),
        };
        Self {
            outside,
            history: History::default(),
            slots: Mutex::default(),
            started: AtomicU64::new(1),
            is_down: AtomicBool::new(false),
            is_healed: AtomicBool::new(false),
        }
    }

    async fn live(self: &Arc<Self>) {
        let mut dice = Dice::new(self.outside.plan.seed, 3);
        for _ in 0..Self::NODES {
            let node = self.start(&mut dice);
            self.slots.lock().unwrap().push(node);
            tokio::time::sleep(dice.millis(0, 500)).await;
        }
        let clients = tokio::spawn(client::run(Arc::clone(self)));
        nemesis::run(Arc::clone(self)).await;
        clients.await.unwrap();
        self.heal();
        // What was late on its way may still arrive, and leases of the dead must run out.
        tokio::time::sleep(self.outside.plan.odds.late_by_max.as_duration() + verdict::SETTLING_TIME).await;
        verdict::judge(self).await;
    }

    fn start(&self, dice: &mut Dice) -> Arc<Node> {
        let nth = self.started.fetch_add(1, Ordering::Relaxed);
        let is_skewed = self.outside.plan.troubles.contains(&super::plan::Trouble::Step) && dice.percent(30);
        let ahead = if is_skewed { self.skew(dice) } else { dice.around_zero(100_000) };
        let node = Node::start(&self.outside, nth, ahead);
        node.faults.set_down(self.is_down());
        self.outside.ledger.note(format_args!("{} starts, {ahead} us ahead", super::ledger::short(node.id)));
        Arc::new(node)
    }

    /// How far a clock may be off.
    pub fn skew(&self, dice: &mut Dice) -> i64 {
        match dice.below(3) {
            0 => dice.around_zero(450_000),
            1 => dice.around_zero(1_500_000),
            _ => dice.around_zero(600_000_000),
        }
    }

    pub fn node(&self, slot: usize) -> Option<Arc<Node>> {
        self.slots.lock().unwrap().get(slot).cloned()
    }

    /// All nodes that can be reached, as far as clients know.
    pub fn reachable(&self) -> Vec<Arc<Node>> {
        self.slots.lock().unwrap().iter().filter(|node| node.is_serving()).cloned().collect()
    }

    pub fn is_down(&self) -> bool {
        self.is_down.load(Ordering::Relaxed)
    }

    pub fn is_healed(&self) -> bool {
        self.is_healed.load(Ordering::Relaxed)
    }

    pub fn restart(&self, slot: usize, dice: &mut Dice) {
        if self.is_healed() {
            return;
        }
        let node = self.start(dice);
        self.slots.lock().unwrap()[slot] = node;
    }

    pub fn set_clock(&self, node: &Node, ahead_micros: i64) {
        if !self.is_healed() {
            node.clock.set_ahead(ahead_micros);
        }
    }

    pub fn set_down(&self, is_down: bool) {
        if is_down && self.is_healed() {
            return;
        }
        self.is_down.store(is_down, Ordering::Relaxed);
        self.slots.lock().unwrap().iter().for_each(|node| node.faults.set_down(is_down));
    }

    /// Nothing goes wrong any more, and at least one node serves.
    fn heal(&self) {
        self.outside.ledger.note(format_args!("everything is well from now on"));
        self.set_down(false);
        self.is_healed.store(true, Ordering::Relaxed);
        self.outside.receivers.are_well.store(true, Ordering::Relaxed);
        let mut slots = self.slots.lock().unwrap();
        for node in slots.iter() {
            node.faults.heal();
            if node.clock.ahead_micros().abs() > 300_000 {
                node.clock.set_ahead(0);
            }
        }
        if slots.iter().all(|node| !node.is_serving()) {
            let nth = self.started.fetch_add(1, Ordering::Relaxed);
            let node = Node::start(&self.outside, nth, 0);
            node.faults.heal();
            slots[0] = Arc::new(node);
        }
    }

    fn ended(&self) -> Ended {
        let hash = self.outside.ledger.hash();
        let books = self.outside.ledger.books();
        let concerned = books.violations.first().and_then(|violation| violation.id);
        let belongs = |id: &Option<domain::TimerId>| id.is_none() || concerned.is_none() || *id == concerned;
        Ended {
            violations: books.violations.clone(),
            story: books.trace.iter().filter(|(id, _)| belongs(id)).map(|(_, line)| line.clone()).collect(),
            hash,
            metrics: books.metrics(),
        }
    }

    pub fn elapsed(&self) -> Duration {
        self.outside.truth.elapsed()
    }
}
