//! WHEN: owns shards, holds the near term of them in memory, and claims what is due.
//!
//! ```text
//!   store ──load──▶ upcoming ──promote──▶ ready ──take──▶ claim ──▶ (delivery)
//!     ▲   ──sweep─▶ (by time)             (by tenant and receiver)     │
//!     │                ▲                                               │
//!     └────────────────┴──────────── settled: again at … ◀─────────────┘
//! ```
//!
//! Nothing needed for firing lives in memory only: the window is a copy of rows that are pending in the store, and
//! a claim checks each of them there. So a window that is wrong costs time, never a timer: what is missing in it is
//! found by the sweep within a second, and what is stale in it is not claimed.
//!
//! The loop sleeps until the next one is to be claimed, a few milliseconds before it is due, and polls nothing. Its call is started by
//! an [`Alarm`].
//!
//! Each piece of background work is one step that says what it did; [`tasks`] holds the loops around the steps.
//!
//! [`Scheduler`] wires the parts together. State that changes is owned by three of them, each with its own lock and wake-ups, and
//! an arrow here is "uses":
//!
//! ```text
//!   claiming, loading, sweeping, recovery, retention     the steps
//!        │                 │
//!        │              nudges ──▶ nudge buffer          to and from other nodes
//!        ▼                 ▼
//!   membership ─────▶ shared window ──▶ window           what this node holds and may do; what is due in it
//! ```

mod alarm;
mod assignment;
mod claiming;
mod clock_check;
mod concurrency_limit;
mod config;
mod hash;
mod held_shards;
mod linger;
mod loading;
mod membership;
mod memory_budget;
mod metrics;
mod nudge_buffer;
mod nudges;
mod position;
mod purge_pace;
mod ready;
mod recovery;
mod rejoin_grace;
mod retention;
mod scheduler;
mod shared_window;
mod sweeping;
pub mod tasks;
mod window;

pub use alarm::Alarm;
pub use claiming::Claims;
pub use config::Config;
pub use linger::Linger;
pub use metrics::METRICS;
pub use scheduler::{Permits, Scheduler};
pub use sweeping::SweepPosition;
