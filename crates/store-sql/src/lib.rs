//! What stores in SQL databases share, and what names no database.
//!
//! ```text
//!   Creates ──▶ Batcher: what is queued, one statement ──▶ Inserts: the statements of a store
//!                                                              │
//!   List, Count ──▶ stretches within a budget ──────────▶ Finder: the statements of a store
//!                                                              │
//!   every other call of a store ───────────────────────────────┴──▶ Bulkhead ──▶ SessionPool ──▶ Driver
//! ```
//!
//! A store for a database server is then its SQL in files ([`sql!`]), the mapping of its rows ([`Row`]), a table of what its error codes
//! mean ([`Verdict`]), and a [`Driver`] that opens sessions. Searches are composed and not in files: a filter has more combinations of
//! conditions, orders and cursors than there could be files, and each needs its own plan. A store in the same process, as SQLite is,
//! uses only the statements
//! and their columns ([`column!`]).

mod batch;
mod bulkhead;
pub mod columns;
mod create;
mod driver;
mod failure;
mod portions;
mod rows;
mod search;
mod session_pool;
mod shard_portions;
mod shard_search;
mod statement;

pub use batch::{BatchLimits, Batcher};
pub use bulkhead::{Bulkhead, BulkheadLimits, Call};
pub use columns::{are_first_columns_of, columns};
pub use create::{Creates, ExistingTimer, Inserted, Inserts, as_created, definition_bytes};
pub use driver::{Driver, NoSession};
pub use failure::{Failure, Verdict};
pub use portions::portions;
pub use rows::{Row, Standing, cursor, timer, timer_or_complaint};
pub use search::{
    Answer, CLAIMED_AHEAD_MICROS, Count, EXECUTING_LOOKED_AT_MAX, FEW, Few, Finder, Line, List, Source, Tally, has_large_texts,
};
pub use shard_portions::ShardPortions;
pub use shard_search::ShardSearch;
pub use statement::Statement;
