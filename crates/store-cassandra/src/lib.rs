//! Timers in Apache Cassandra, 4.1 or 5.0: the driver on which `store-partitioned` keeps the contract of a store.
//!
//! ```text
//!   write, conditional ─▶ the queue of its partition: what waits there, one conditional batch, one Paxos round at a time ─┐
//!   read, linearizable ─▶ the same queue: what waits there, one SERIAL read ──────────────────────────────────────────────┼─▶ Cassandra
//!   write without condition, other reads, ranges ─────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! One table holds everything (`schema.rs`): a partition of the store is a partition of the table, and holds its rows (kind 0) beside the
//! entries of its indexes (kinds 1 to 4), because a conditional batch of Cassandra stays in one partition of one table. Such a
//! batch is all or nothing, so what its conditions refuse is taken out and the rest is sent again (`write.rs`). Two Paxos
//! rounds on one partition hinder each other, so a process has one at a time (`partition_queue.rs`).
//!
//! Where timers were due and fired, Cassandra keeps the marks of what was deleted for hours. A partition notes which stretches of its
//! indexes are empty, so that ranges pass over them (`gaps.rs`, `notes.rs`, `tidy.rs`).
//!
//! An answer that is lost leaves an outcome unknown: it is read back by the version, which no other write has.

mod cassandra;
mod failure;
mod gaps;
mod notes;
mod open;
mod options;
mod partition_queue;
mod portions;
mod read;
mod schema;
mod statements;
mod tidy;
mod tls;
mod write;

pub use cassandra::Cassandra;
use domain::Metric;
pub use open::{Durability, OpenError};
pub use options::CassandraOptions;

/// The metrics of this crate.
pub const METRICS: &[Metric] = &[
    Metric::histogram("timer_cassandra_batch_rows", "Rows written by one conditional batch."),
    Metric::counter("timer_cassandra_refusals_total", "Conditional batches sent again without the rows that were refused."),
    Metric::counter("timer_cassandra_unknown_total", "Conditional batches whose answer was lost, and which were read back."),
];
