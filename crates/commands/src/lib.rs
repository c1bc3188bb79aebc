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

mod call;
mod cancel;
mod cancel_matching;
mod cluster;
mod create;
mod create_all;
mod error;
mod fire;
mod get;
mod group;
mod health;
mod keyring;
mod keys;
mod list;
mod patch;
mod permission;
mod ping;
mod retry;
mod rules;
mod searches;
mod update;

#[cfg(test)]
mod rig;

use std::sync::Arc;

use domain::{Caller, Clock, Metric, Status, Timer};
use store::{DueEntry, HealthStore, KeyStore, Store, TimerStore};

pub use cancel_matching::{CanceledMany, Members, Selection};
pub use create::{NewTimerRequest, Outcome, Target};
pub use error::{CommandError, Verb};
pub use health::Health;
pub use keyring::KeyRing;
pub use list::Listed;
pub use patch::{Field, HttpPatch, Patch};
pub use rules::{CallbackCheck, EarliestAllowed, Rules};
pub use searches::Searches;
pub use store::{Cluster, Cursor, Filter, GroupCount, ListQuery, Member, NodeId, Order, Page, Sort, Summary};

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
}

/// The parts of the store that the use cases may call. Claims, settlements and membership are not among them.
#[derive(Clone)]
pub struct Stores {
    pub timers: Arc<dyn TimerStore>,
    pub keys: Arc<dyn KeyStore>,
    pub health: Arc<dyn HealthStore>,
}

impl Stores {
    pub fn of(store: Arc<dyn Store>) -> Self {
        Self { timers: store.clone(), keys: store.clone(), health: store }
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
    Metric::counter("timer_read_back_total", "Writes whose outcome was unknown and had to be read back, by operation.")
        .by(&[("operation", &["create", "update", "cancel", "retry", "revive", "add_key"])]),
];
