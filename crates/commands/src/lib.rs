//! The use cases, one per file. Every API and the command consumer call them, so that a rule holds for all clients.
//!
//! ```text
//!   an API                                 commands                                 store
//!   text ──parse──▶ NewTimerRequest ──▶ check rules ──▶ NewTimer ──▶ create ──┬──▶ on disk
//!                                                                            │
//!        answer ◀── Outcome ◀── nudge (the scheduler learns of it) ◀── done ─┤
//!                                            read back ◀── outcome unknown ──┘
//! ```
//!
//! A store may lose the answer to a commit. Then the client gets no answer until the timer has been read back. Only when that
//! fails for seconds, the client is told that the outcome is unknown.

mod bulk;
mod bulk_work;
mod call;
mod call_rate;
mod cancel;
mod cancel_matching;
mod cluster;
mod create;
mod create_all;
mod error;
mod events;
mod fire;
mod get;
mod group;
mod health;
mod keyring;
mod keys;
mod list;
mod operations;
mod patch;
mod pause;
mod permission;
mod permits;
mod ping;
mod retry;
mod rules;
mod searches;
mod shard_moves;
mod single_flight;
mod stats;
mod update;

#[cfg(test)]
mod estimating;
#[cfg(test)]
mod rig;

use std::sync::Arc;

use domain::{Caller, Clock, Metric, Status, Timer};
use store::{BulkStore, DueEntry, HealthStore, KeyStore, StatsStore, Store, TimerStore};

pub use bulk::{BulkAnswer, BulkBreakdown, BulkPreview, BulkRequest, CHANGED_AT_ONCE_MAX, OPERATIONS_RUNNING_MAX};
pub use bulk_work::{BulkWork, Reschedule, Shift};
pub use call_rate::CallCount;
pub use cancel_matching::{CanceledMany, Selection};
pub use create::{NewTimerRequest, Outcome, Target};
pub use error::{CommandError, Verb};
pub use events::{Event, EventType, EventTypes, Events, Following};
pub use health::Health;
pub use keyring::{KeyRing, NoteKeyUse};
pub use list::Listed;
pub use operations::{OperationRunner, Ran};
pub use patch::{Field, HttpPatch, Patch};
pub use permits::{Permit, Permits};
pub use rules::{CallbackCheck, EarliestAllowed, Rules};
pub use searches::Searches;
pub use shard_moves::{ShardMove, ShardMoves};
pub use stats::{
    CountCreated, DestinationHealth, DestinationStatus, Destinations, DueBuckets, FiredBuckets, ListedNamespace,
    ListedNamespaces, Live, NamespaceSettings, NodeLoad, PeriodRequest, Stats, StatsPeriod,
};
pub use store::{
    BulkOperation, Cluster, Count, Cursor, Digest, Filter, GroupCount, ListQuery, Member, NodeId, OperationId, OperationState,
    Order, Page, Period, SEARCH_BUDGET, Sort, Summary,
};

/// Tells the scheduler of timers that were just scheduled. It must not block: a lost nudge costs at most one sweep.
pub type Nudge = Arc<dyn Fn(&[DueEntry]) + Send + Sync>;

/// The use cases, with what they need. Cheap to clone.
#[derive(Clone)]
pub struct Commands {
    pub stores: Stores,
    pub clock: Arc<dyn Clock>,
    pub rules: Rules,
    pub nudge: Nudge,
    /// The caller on whose behalf the commands run; see [`Commands::on_behalf_of`].
    pub caller: Caller,
    /// Shared by all clones.
    pub searches: Searches,
    pub stats: Stats,
}

/// The parts of the store that the use cases may call. Claims, settlements and membership are not among them.
#[derive(Clone)]
pub struct Stores {
    pub timers: Arc<dyn TimerStore>,
    pub bulk: Arc<dyn BulkStore>,
    pub keys: Arc<dyn KeyStore>,
    pub health: Arc<dyn HealthStore>,
    /// What is followed of the record of events.
    pub events: Events,
    pub stats: Arc<dyn StatsStore>,
}

impl Stores {
    pub fn of(store: Arc<dyn Store>) -> Self {
        Self {
            timers: store.clone(),
            bulk: store.clone(),
            keys: store.clone(),
            health: store.clone(),
            stats: store.clone(),
            events: Events::new(store),
        }
    }
}

impl Commands {
    fn scheduled(&self, timer: &Timer) {
        if timer.status == Status::Pending {
            let destination = timer.definition.destination();
            (self.nudge)(&[DueEntry { at: timer.execute_at, id: timer.id(), destination }]);
        }
    }
}

/// The metrics of this crate.
pub const METRICS: &[Metric] = &[
    Metric::counter("timer_created_total", "Timers registered, by result: created or replaced.")
        .by(&[("result", &["created", "replaced"])]),
    Metric::counter("timer_updated_total", "Timers changed by their callers."),
    Metric::counter("timer_canceled_total", "Timers canceled by their callers."),
    Metric::counter("timer_retried_total", "Failed or expired timers that their callers had tried again."),
    Metric::gauge("timer_event_streams", "Streams of events that are open."),
    Metric::counter("timer_paused_total", "Timers paused by their callers."),
    Metric::counter("timer_resumed_total", "Paused timers that their callers resumed."),
    Metric::counter("timer_bulk_changed_total", "Timers changed by bulk requests and operations, by action.")
        .by(&[("action", &BulkWork::NAMES)]),
    Metric::counter("timer_read_back_total", "Writes whose outcome was unknown and had to be read back, by operation.")
        .by(&[("operation", &["create", "update", "cancel", "retry", "revive", "pause", "resume", "add_key"])]),
];
