//! The NATS command consumer: commands come in as messages, events go out as messages.
//!
//! ```text
//!                 receive                one commit
//!   broker ──────────────────▶ CommandConsumer ──────────────────▶ commands ──▶ store
//!     ▲   ScheduleTimer          │                          │
//!     │                          │ done: acknowledged       │ one answer each
//!     ├──────────────────────────┤ later: given back ◀──────┘
//!     │                          │ never: dead letter, with the reason
//!     │
//!     └──── announce ◀──── a due timer          DueTimeReached, then its result is recorded
//! ```
//!
//! A command is acknowledged only once its timer is on disk, and a timer counts as delivered only once the broker has stored
//! its event. Whatever fails in between, the command is redelivered and the event is published again under the same id.
//! Commands may come in any order and more than once: they are idempotent.
//!
//! [`Broker`] is all that the consumer knows of a message broker. [`NatsBroker`] is the only one for production, and the folder
//! `nats` the only module that knows NATS. `Memory` serves tests.

mod announce;
mod backoff;
mod consumer;
mod contract;
#[cfg(test)]
mod memory;
mod messages;
mod nats;
mod platform;
#[cfg(test)]
mod rig;

use domain::Metric;

pub use crate::nats::{NatsBroker, learn_platform_subjects};
pub use announce::announce;
pub use consumer::CommandConsumer;
pub use contract::{Broker, BrokerError, Event, Received, Verdict};
#[cfg(test)]
pub(crate) use memory::Memory;
pub(crate) use messages::{ScheduleTimer, due_time_reached};
pub use platform::PlatformSubjects;

/// The metrics of this crate.
pub const METRICS: &[Metric] = &[
    Metric::counter("timer_commands_received_total", "Commands that the broker delivered, repetitions included."),
    Metric::counter(
        "timer_commands_total",
        "Commands handled, by result: scheduled, moved, unchanged, later (the broker delivers them again) or dead (dead-lettered).",
    )
    .by(&[("result", &["scheduled", "moved", "unchanged", "later", "dead"])]),
    Metric::histogram("timer_command_batch_size", "Commands that were registered in one commit."),
    Metric::counter("timer_events_published_total", "Events of due timers, by result: published or failed.")
        .by(&[("result", &["published", "failed"])]),
];
