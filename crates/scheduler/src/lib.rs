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
//! The loop sleeps by an [`Alarm`] until the next one is due, and polls nothing.
//!
//! Each piece of background work is one step that says what it did; [`tasks`] holds the loops around the steps.

mod alarm;
mod assignment;
mod claiming;
mod clock_check;
mod concurrency_limit;
mod hash;
mod held_shards;
mod loading;
mod memory_budget;
mod nudge_buffer;
mod nudging;
mod ownership;
mod ready;
mod recovery;
mod rejoin_grace;
mod retention;
mod scheduler;
mod sweeping;
pub mod tasks;
mod window;

pub use alarm::Alarm;
pub use scheduler::{Config, METRICS, Permits, Scheduler};
pub use sweeping::SweepPosition;
