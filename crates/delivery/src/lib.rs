//! SEND: makes the call of a claimed timer and decides what follows.
//!
//! ```text
//!             attempt                          decide
//!   timer ───────────────▶ Outcome ─────────────────────────▶ Next
//!            │      ▲        delivered                         completed, failed,
//!            ▼      │        rescheduled                       pending (a retry),
//!   request + signature      failed: why, and how long         again (a new due time)
//!            │      │        to leave the receiver alone
//!            │      │        not attempted: a local shortage   pending, nothing counted
//!            ▼      │
//!   resolve ▶ guard ▶ dial ──▶ the receiver
//! ```
//!
//! [`Deliverer::attempt`] makes one call and never more than one: nothing here tries again. It also writes the record of the call,
//! where one is kept. [`decide`] is pure.
//! How many calls are in flight, and which is next, is not decided here.
//!
//! The guard ([`Egress`]) sees the very addresses that are dialled, so a name cannot mean one thing when it is checked and
//! another when it is used. Redirects are not followed, proxies in the environment are not used, answers are not decompressed.
//!
//! Each kind of callback has a [`Sender`], in a file of its own, and [`Deliverer`] finds it by the kind. Events are published by the
//! crate that knows the broker: see [`Announcer`].

mod announcer;
mod answer;
mod call;
mod decide;
mod deliverer;
mod egress;
mod headers;
mod http;
mod metrics;
mod namespaces;
mod nats;
mod outcome;
mod payload;
mod sender;
mod setup_error;
mod signing;
mod spans;
#[cfg(test)]
mod timers;

pub use announcer::{Announcer, EventSender};
pub use answer::Answer;
pub use call::Call;
pub use decide::{decide, expired, recover, unreadable};
pub use deliverer::{Attempted, Config, Deliverer};
pub use egress::{Denied, Egress};
pub use metrics::METRICS;
pub use namespaces::{NamespaceRules, RulesSummary};
pub use nats::{NatsSender, SubjectCheck};
pub use outcome::{Failure, FailureKind, Outcome, Shortage};
pub use sender::{Prepared, Sender};
pub use setup_error::SetupError;
pub use signing::SigningSecrets;
