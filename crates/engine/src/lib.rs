//! The loop: claims what is due, delivers it, and records what became of it.
//!
//! ```text
//!   scheduler ──claim──▶ deliveries (each a task, as many as there are permits) ──▶ settlements ──▶ store
//!       ▲                                  │                                        (bounded)        │
//!       ├──────────── permit free ◀────────┘                                                         │
//!       └──────────────────────────── pending again ◀────────────────────────────────────────────────┘
//! ```
//!
//! Nothing is claimed that cannot start at once, at its time if that is a few milliseconds away, or after a moment if it
//! needs a new connection. So "executing" means "being delivered now, or in a moment". A permit becomes free when the call is
//! over; how many results may wait for the disk is bounded as well, and a store that is away stops the claiming.
//!
//! The simulation in `tests/simulation` runs this crate, with many nodes and everything that can go wrong between them.

mod ahead;
mod deliver;
mod follow_up;
mod heartbeats;
mod metrics;
mod pipeline;
mod recorder;
mod recover;
mod run;
mod settle;

pub use heartbeats::Heartbeats;
pub use metrics::{METRICS, PipelineMetrics};
pub use pipeline::{Deliver, Pipeline};
pub use recorder::{Recorder, Totals};
pub use run::Drained;
