//! Load on a timer service, and what can be measured from outside, through HTTP alone.
//!
//! ```text
//!   load client ──creates──▶ service ──calls──▶ sink ──▶ ledger: which timer, when first, how often
//!    one thread                                one thread          │
//!        └───────── due time of each timer (plan) ─────────────────┴──▶ lateness, lost, duplicates
//! ```
//!
//! Client, sink and service mostly share one machine, so client and sink are built to take little of it: one thread each,
//! keep-alive connections, and only the part of HTTP that two programs need which know each other. What they do take is
//! measured, as is what the service, its database and all other processes take, and what client and sink reach without a
//! service. Due times and arrivals are read from the same clock.
//!
//! A campaign runs workloads against one service; pairs run them against two builds in turns.

mod ask;
mod campaign;
mod ceiling;
mod chart;
mod client;
mod disk;
mod embedded;
mod error;
mod ledger;
mod load;
mod machine;
mod memory;
mod pace;
mod pairs;
mod percentiles;
mod plan;
mod processes;
mod progress;
mod ratio;
mod record;
mod report;
mod requests;
mod session;
mod shape;
mod sink;
mod summary;
mod target;
mod usage;
mod wire;
mod workload;

pub use campaign::Campaign;
pub use embedded::{Embedded, Wanted};
pub use error::Failed;
pub use pairs::{Comparison, Pairs, Side};
pub use percentiles::Percentiles;
pub use progress::Note;
pub use ratio::{Pair, RATIO_HEAD, Ratio, Ratios, ratio_rows};
pub use record::{Ceiling, Disk, Held, Memory, Record, Run, Service, Stream};
pub use report::{Report, day, report};
pub use session::Session;
pub use summary::{HELD_HEAD, RUN_HEAD, STREAM_HEAD, held_line, held_rows, run_line, run_rows, stream_rows};
pub use target::Target;
pub use workload::Workload;
