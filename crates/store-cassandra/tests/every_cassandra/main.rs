//! The driver and the whole contract of a store on a real Cassandra, for `make soak`: they take minutes.
//!
//! ```text
//! scripts/cassandra.sh --fetch && cargo test --package store-cassandra --test every_cassandra
//! CASSANDRA_VERSION=4.1.10 …
//! ```
//!
//! All tests share one server, one keyspace and its table: each has partitions of its own, because a table for each would cost Cassandra more than what is
//! tested. Without a Cassandra they fail, and say how to get one.
#![expect(clippy::unwrap_used, reason = "these are tests: a panic is how they fail")]

mod apart;
mod conformance;
mod gaps;
mod guarded;
mod outages;
mod proxy;
mod rates;
mod setup;

mod database {
    use crate::apart::connect;

    store_partitioned::database_suite!(connect().await);
}
