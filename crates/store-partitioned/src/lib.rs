//! The contract of a store, written once for databases whose only promises are a conditional write of one row and ordered ranges
//! inside a partition: Cassandra, MongoDB, DynamoDB.
//!
//! ```text
//!   store::Store ──▶ the algorithm, once ──▶ Database ──▶ a driver: Cassandra, MongoDB, DynamoDB
//!                                               └───────▶ Memory: for tests, simulation and faults
//! ```
//!
//! A driver implements [`Database`] and runs [`database_suite!`] against a real server; the store itself is then held to the
//! contract by `store-conformance`, as every store is.

#[cfg(feature = "testing")]
mod bug;
mod columns;
mod database;
#[cfg(feature = "testing")]
mod database_suite;
mod due;
mod held;
mod journal;
mod json;
mod keys;
mod layout;
mod liveness;
mod membership;
#[cfg(feature = "testing")]
mod memory;
mod nudge_inbox;
mod nudging;
mod operations;
mod partitioned_store;
mod row;
mod search;
mod shared_answer;
mod stats;
mod timer_row;
mod timers;
mod transition;

#[cfg(feature = "testing")]
pub use bug::Bug;
pub use database::Database;
#[cfg(feature = "testing")]
pub use database_suite::behaviours as database_behaviours;
#[cfg(feature = "testing")]
pub use memory::Memory;
pub use partitioned_store::PartitionedStore;
pub use row::{
    Change, Columns, Condition, Consistency, Index, Limits, Outcome, Partition, Positions, Range, Row, Version, Write, after,
};
