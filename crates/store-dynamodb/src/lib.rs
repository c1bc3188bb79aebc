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

#![cfg(feature = "sdk")]

mod address;
mod column;
mod connect;
mod failure;
mod item;
mod patience;
mod read;
mod table;
mod write;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use store::StoreResult;
use store_partitioned::{Columns, Consistency, Database, Limits, Outcome, Partition, Range, Row, Write};
use tokio::sync::Semaphore;

pub use crate::{address::Address, connect::OpenError};

/// No request takes longer: an endpoint that is cut off does not answer at all.
const DEADLINE: Duration = Duration::from_secs(5);
/// How many requests one process has under way. The others wait in the order in which they came.
const REQUESTS_MAX: usize = 128;
/// The limit of DynamoDB, entries in local indexes included.
const ROW_BYTES_MAX: usize = 400 * 1024;
/// How many rows of one call are written at once: DynamoDB has no limit, since each is a request of its own.
const ROWS_PER_WRITE: usize = 100;

/// A table of DynamoDB.
#[derive(Clone)]
pub struct DynamodbDatabase {
    client: Client,
    table: String,
    permits: Arc<Semaphore>,
}

#[async_trait]
impl Database for DynamodbDatabase {
    fn name(&self) -> &'static str {
        "dynamodb"
    }

    fn limits(&self) -> Limits {
        Limits { rows_per_write: ROWS_PER_WRITE, row_bytes_max: ROW_BYTES_MAX }
    }

    async fn set_up(&self) -> StoreResult<()> {
        table::set_up(self).await
    }

    async fn read(
        &self,
        partition: &Partition,
        keys: &[Vec<u8>],
        columns: Columns,
        consistency: Consistency,
    ) -> StoreResult<Vec<Option<Row>>> {
        read::read(self, partition, keys, columns, consistency).await
    }

    async fn range(
        &self,
        partition: &Partition,
        range: &Range,
        columns: Columns,
        consistency: Consistency,
    ) -> StoreResult<Vec<Row>> {
        read::range(self, partition, range, columns, consistency).await
    }

    async fn write(&self, partition: &Partition, writes: Vec<Write>) -> StoreResult<Vec<Outcome>> {
        Ok(write::write(self, partition, &writes).await)
    }

    async fn ping(&self) -> StoreResult<()> {
        // There is no such row. An answer is all that is asked for.
        let key = vec![vec![0]];
        self.read(&Partition::new("ping"), &key, Columns::NONE, Consistency::Committed).await.map(drop)
    }
}
