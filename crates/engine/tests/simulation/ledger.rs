//! What really happened in the database and at the receivers, and whether each step of it was allowed.

mod books;
mod calls;
mod claims;
mod shard_leases;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    hash::{DefaultHasher, Hasher},
    sync::{Arc, Mutex, MutexGuard},
};

use domain::{Clock, Delivery, Shard, Status, TimerId, Timestamp};
use store::{ClaimToken, Epoch, NodeId, ShardLease};

use super::{
    clock::{NodeClock, TrueClock},
    plan::Plan,
};

pub use calls::{Arrival, Call, Reply};

/// What must hold. Each violation names one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// What was accepted is called, or visibly failed by its own rule.
    Lost,
    /// Nothing is called before it is due.
    Early,
    /// No attempt starts when the timer has expired.
    Expired,
    /// Nothing is called that was never made, or was canceled, or in a version that an update replaced.
    Ghost,
    /// Nothing is called twice without a fault that explains it.
    Duplicate,
    /// No node has a claim while another one stands; a stale owner changes nothing; epochs rise.
    Claim,
    /// No node calls, or takes shards, without a lease that stands.
    Lease,
    /// What is stored is what happened.
    State,
    /// Without faults everything comes to its end, and soon.
    Stuck,
}

#[derive(Debug, Clone)]
pub struct Violation {
    pub check: Check,
    pub what: String,
    /// Whom it concerns, to tell the story.
    pub id: Option<TimerId>,
}

/// One timer, by what happened to it.
#[derive(Debug)]
pub struct Life {
    pub status: Status,
    pub revision: u32,
    pub execute_at: Timestamp,
    /// When it was made, changed or settled.
    pub touched: Timestamp,
    /// When its next attempt is due.
    pub at: Timestamp,
    pub attempt: u32,
    pub delivery: Delivery,
    pub claims: Vec<Taken>,
}

/// A claim.
#[derive(Debug)]
pub struct Taken {
    pub token: ClaimToken,
    pub node: NodeId,
    pub shard_lease: ShardLease,
    pub attempt: u32,
    pub revision: u32,
    pub due: Timestamp,
    pub since: Timestamp,
    pub call: Option<usize>,
    pub ending: Option<Ending>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Its owner recorded what became of it.
    Settled,
    /// Another node did instead of it.
    TakenOver,
}

#[derive(Default)]
pub struct Books {
    pub timers: BTreeMap<TimerId, Life>,
    pub calls: Vec<Call>,
    pub violations: Vec<Violation>,
    pub trace: Vec<(Option<TimerId>, String)>,
    hash: DefaultHasher,
    leases: BTreeMap<NodeId, Lease>,
    owners: BTreeMap<Shard, (Epoch, Option<NodeId>)>,
    holders: BTreeMap<ShardLease, NodeId>,
    clocks: BTreeMap<NodeId, Arc<NodeClock>>,
    troubled: BTreeSet<NodeId>,
    metrics: PipelineMetrics,
}

#[derive(Debug, Clone, Copy)]
struct Lease {
    until: Timestamp,
    /// When the node came back from the dead for the last time.
    gap_until: Option<Timestamp>,
}

/// How much happened: a simulation in which little does proves little.
#[derive(Debug, Default, Clone, Copy)]
pub struct PipelineMetrics {
    pub timers: usize,
    pub calls: usize,
    /// Claims that another node ended.
    pub taken_over: usize,
    /// Calls of what had been delivered before.
    pub repeated: usize,
    /// Results that did not count.
    pub fenced: usize,
    /// Leases that ran out although their node lived on.
    pub gaps: usize,
}

pub struct Ledger {
    clock: TrueClock,
    shards: u16,
    /// Whether a store may fail by chance. If not, only a node that the nemesis touched may lose its lease.
    is_store_faulty: bool,
    /// Whether nothing at all goes wrong.
    is_free_of_faults: bool,
    books: Mutex<Books>,
}

impl Ledger {
    pub fn new(clock: TrueClock, shards: u16, plan: &Plan) -> Self {
        Self {
            clock,
            shards,
            is_store_faulty: plan.is_store_faulty(),
            is_free_of_faults: plan.is_free_of_faults(),
            books: Mutex::default(),
        }
    }

    pub fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }

    /// A node that begins, with its clock.
    pub fn begins(&self, node: NodeId, clock: Arc<NodeClock>) {
        self.books().clocks.insert(node, clock);
    }

    /// The nemesis does something to a node: its lease may run out.
    pub fn troubles(&self, node: NodeId, what: fmt::Arguments<'_>) {
        self.books().troubled.insert(node);
        self.note(format_args!("{} {what}", short(node)));
    }

    pub fn note(&self, what: fmt::Arguments<'_>) {
        self.write(None, what);
    }

    /// What a caller was told.
    pub fn heard(&self, id: TimerId, what: fmt::Arguments<'_>) {
        self.write(Some(id), what);
    }

    fn write(&self, id: Option<TimerId>, what: fmt::Arguments<'_>) {
        self.books().write(self.clock, id, what);
    }

    pub fn violated(&self, check: Check, id: Option<TimerId>, what: fmt::Arguments<'_>) {
        self.books().violated(self.clock, check, id, what);
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// One number for everything that happened, in its order.
    pub fn hash(&self) -> u64 {
        self.books().hash.finish()
    }
}

impl Books {
    fn write(&mut self, clock: TrueClock, id: Option<TimerId>, what: fmt::Arguments<'_>) {
        let subject = id.map(|id| format!(" {}", &id.to_string()[..8])).unwrap_or_default();
        let line = format!("{:>10.3}{subject} {what}", clock.elapsed().as_secs_f64());
        self.hash.write(line.as_bytes());
        self.trace.push((id, line));
    }

    fn violated(&mut self, clock: TrueClock, check: Check, id: Option<TimerId>, what: fmt::Arguments<'_>) {
        self.write(clock, id, format_args!("VIOLATION {check:?}: {what}"));
        self.violations.push(Violation { check, what: what.to_string(), id });
    }

    pub fn metrics(&self) -> PipelineMetrics {
        PipelineMetrics { timers: self.timers.len(), calls: self.calls.len(), ..self.metrics }
    }

    fn is_alive(&self, node: NodeId, now: Timestamp) -> bool {
        self.leases.get(&node).is_some_and(|lease| lease.until > now)
    }

    /// Whether there was a moment since then at which the node did not live.
    fn was_dead_since(&self, node: NodeId, since: Timestamp, now: Timestamp) -> bool {
        let gap = self.leases.get(&node).and_then(|lease| lease.gap_until);
        !self.is_alive(node, now) || gap.is_some_and(|until| until >= since)
    }
}

/// A node in a trace.
pub fn short(node: NodeId) -> String {
    format!("node {}", node.0 as u64 & 0xffff)
}
