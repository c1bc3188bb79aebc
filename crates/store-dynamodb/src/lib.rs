//! The driver of `store-partitioned` for Amazon DynamoDB: one item is one row, and DynamoDB writes one item atomically together with its
//! entries in the local secondary indexes of its table.
//!
//! ```text
//!   table, by p and k      p: "timers-17", k: <key>, v: <version>, h: <head>, b: <body>, l: <log>, i1: <position>, i2: …, i3: …, i4: …
//!   index "position-1"     p, i1 ──▶ k                      and so on, for the items that have the attribute
//! ```
//!
//! *Local* indexes, because they are the ones of DynamoDB that can be read consistently; see
//! [ADR 18](../../../docs/adr/0018-dynamodb-with-local-indexes.md). Keys and positions are binary attributes, which DynamoDB orders by
//! their bytes, as the contract wants it.
//!
//! Each row is a request of its own, many at once: DynamoDB has no batch of conditional writes in which each stands by itself. The SDK
//! repeats nothing by itself, since a repeated conditional write that was done the first time would look refused. What was throttled was
//! not done and is tried again for a moment; a write whose answer is lost is read back by its version, which no other write has.
//!
//! Without the feature `sdk` this crate is no more than the table of its metrics, which the reference shows for every build.

#[cfg(feature = "sdk")]
mod address;
#[cfg(feature = "sdk")]
mod column;
#[cfg(feature = "sdk")]
mod connect;
#[cfg(feature = "sdk")]
mod database;
#[cfg(feature = "sdk")]
mod driver;
#[cfg(feature = "sdk")]
mod failure;
#[cfg(feature = "sdk")]
mod item;
#[cfg(feature = "sdk")]
mod read;
#[cfg(feature = "sdk")]
mod table;
#[cfg(feature = "sdk")]
mod throttled_request;
#[cfg(feature = "sdk")]
mod write;

use domain::Metric;

#[cfg(feature = "sdk")]
pub use crate::{address::Address, connect::OpenError, database::DynamodbDatabase};

/// The metrics of this crate.
pub const METRICS: &[Metric] = &[
    Metric::histogram("timer_dynamodb_batch_rows", "Rows written by one call, a request for each."),
    Metric::counter("timer_dynamodb_refusals_total", "Writes whose condition did not hold, because another writer came first."),
    Metric::counter("timer_dynamodb_throttled_total", "Answers of DynamoDB that there are too many requests."),
    Metric::counter("timer_dynamodb_unknown_total", "Writes whose answer was lost, and whose row was read back."),
];
