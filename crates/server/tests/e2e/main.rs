//! The promises of the service, each tried on the real binary: on a real SQLite file and on a real PostgreSQL, from outside,
//! through HTTP only.
//!
//! ```text
//!   client ──HTTP──▶ timer serve ──HTTP──▶ receiver (records what arrives, and when)
//!                     │      ▲
//!              SQLite file,  └─ kill -9, SIGTERM, a clock that jumps
//!              PostgreSQL
//! ```
//!
//! One binary, so that it is linked once. Tests that measure time or load the machine run alone (see `rig::machine`). The
//! figures they print are shown by `cargo test -p server --test e2e -- --nocapture`.
#![expect(clippy::expect_used, reason = "helpers of tests are tests")]
#![expect(clippy::print_stdout, reason = "measured figures are for people to read")]

mod rig;

mod bad_requests;
mod callbacks;
mod changes;
mod clock_steps;
mod command_line;
mod configuration;
mod crash;
mod database_outage;
mod disk_full;
mod downtime;
mod figures;
mod isolation;
mod log_reader;
mod million;
mod on_time;
mod race;
mod slow_clients;
mod standby;
mod stopping;
mod unrecorded;
