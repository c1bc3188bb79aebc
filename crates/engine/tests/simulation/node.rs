use std::sync::{Arc, Mutex};

use delivery::NamespaceRules;
use domain::{Clock, Span};
use scheduler::{Config, Scheduler};
use store::{NodeId, Store};
use store_testing::{Faulty, Model};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{
    clock::{NodeClock, TrueClock},
    dice::Dice,
    gate::Gate,
    ledger::Ledger,
    plan::Plan,
    planted::{Bug, Tampering},
    receiver::{Receivers, Sender},
    wire::Wire,
    witness::Witness,
};
use engine::{Drained, Heartbeats, Pipeline, PipelineMetrics};

pub const LEASE: Span = Span::from_millis(3_500);
/// Short, so that finished timers are removed while the simulation runs.
const RETENTION: Span = Span::from_secs(45);

/// What all nodes share.
pub struct Outside {
    pub plan: Plan,
    pub bug: Option<Bug>,
    pub truth: TrueClock,
    pub model: Model,
    pub tampering: Arc<Tampering>,
    pub ledger: Arc<Ledger>,
    pub receivers: Arc<Receivers>,
}

/// One process: a pipeline of its own, behind a gate.
pub struct Node {
    pub id: NodeId,
    pub gate: Arc<Gate>,
    /// Its way to the database, and to nothing else.
    pub line: Arc<Gate>,
    pub clock: Arc<NodeClock>,
    /// The store as this node reaches it.
    pub store: Arc<dyn Store>,
    pub faults: Arc<Faulty<Witness>>,
    pub scheduler: Arc<Scheduler>,
    pub stop: CancellationToken,
    running: JoinHandle<Drained>,
}

impl Node {
    /// Starts the process that is the `nth` of this simulation.
    pub fn start(outside: &Outside, nth: u64, ahead_micros: i64) -> Self {
        let plan = &outside.plan;
        let mut dice = Dice::new(plan.seed, 0x1000 + nth);
        let id = NodeId(u128::from(dice.roll()) << 64 | u128::from(dice.roll() & !0xffff | nth));
        let mut clock = NodeClock::new(outside.truth, ahead_micros);
        clock.is_monotonic_by_the_wall = outside.bug == Some(Bug::LeaseByTheWallClock);
        let (gate, line, clock) = (Arc::new(Gate::new()), Arc::new(Gate::new()), Arc::new(clock));
        outside.ledger.begins(id, Arc::clone(&clock));
        let witness = Witness {
            node: id,
            model: outside.model.another_process(),
            tampering: Arc::clone(&outside.tampering),
            ledger: Arc::clone(&outside.ledger),
        };
        let faults = Arc::new(Faulty::by_chance(Arc::new(witness), dice.roll(), plan.odds));
        let store: Arc<dyn Store> = Arc::new(Wire {
            inner: Arc::clone(&faults) as Arc<dyn Store>,
            gate: Arc::clone(&gate),
            line: Arc::clone(&line),
            clock: Arc::clone(&clock),
            dice: Mutex::new(Dice::new(plan.seed, 0x2000 + nth)),
            latency_millis_max: plan.latency_millis_max,
            are_nudges_lost: plan.are_nudges_lost,
            bug: outside.bug,
            has_failed: Mutex::new(false),
        });
        let config = Config { node_lease: LEASE, retention: RETENTION, ..Config::default() };
        let as_clock = Arc::clone(&clock) as Arc<dyn Clock>;
        let scheduler = Arc::new(Scheduler::as_node(id, Arc::clone(&store), Arc::clone(&as_clock), config));
        let sender =
            Sender { node: id, gate: Arc::clone(&gate), clock: Arc::clone(&clock), receivers: Arc::clone(&outside.receivers) };
        let pipeline = Arc::new(Pipeline {
            scheduler: Arc::clone(&scheduler),
            deliverer: Arc::new(sender),
            store: store.clone(),
            timers: store.clone(),
            health: store.clone(),
            clock: as_clock,
            overdue_window: None,
            retry_interval_min: Span::ZERO,
            namespaces: Arc::new(NamespaceRules::default()),
            timer_page: None,
            metrics: PipelineMetrics::default(),
            heartbeats: Heartbeats::default(),
        });
        let stop = CancellationToken::new();
        let running = tokio::spawn(pipeline.run(stop.clone()));
        Self { id, gate, line, clock, store, faults, scheduler, stop, running }
    }

    /// Whether it is there at all. It may be stopped, or on its way out.
    pub fn exists(&self) -> bool {
        !self.gate.is_gone() && !self.running.is_finished()
    }

    /// Whether it is there and not on its way out.
    pub fn is_serving(&self) -> bool {
        self.exists() && !self.stop.is_cancelled()
    }
}
