//! The driver of `store-partitioned` for MongoDB: one document is one row, and MongoDB writes one document atomically together with its
//! entries in the indexes.
//!
//! ```text
//!   collection "rows"
//!   { _id: "timers-17/0198c5…", version: <16 bytes>, head: <bytes>, body: <bytes>, log: <bytes>,
//!     i1: "timers-17/0180…", i2: …, i3: …, i4: … }          positions, each field with a sparse index
//! ```
//!
//! MongoDB orders bytes by their *length* first, and texts by their bytes. So keys and positions are texts: the partition, a slash, and the
//! bytes in hexadecimal digits, which keep their order and which people can read.
//!
//! Calls that wait at the same time are gathered (`gather.rs`). All their writes go in one `bulkWrite`, which tells of each operation how it
//! ended; MongoDB has that since 8.0, which is the oldest that will do. Changes of different rows share an operation (`document.rs`), which
//! tells how many of them were applied. Where that is neither all nor none, the versions that the primary has tell which (`answer.rs`): no
//! other write has the same version. A command whose answer is lost is read back by versions too, but linearizably (`write.rs`): what only
//! the primary has may be lost with it.
//!
//! What is durable and what a read sees follow from what the server is:
//!
//! | | a replica set, or a sharded cluster | a standalone server |
//! |---|---|---|
//! | writes | `w: majority, j: true` | `w: 1, j: true` |
//! | linearizable reads | `linearizable`, one row each | `local` |
//! | committed reads | `majority` on the primary | `local` |
//! | eventual reads | `local`, on a secondary where there is one | `local` |

mod address;
mod answer;
mod connect;
mod deadline;
mod document;
mod failure;
mod gather;
mod key;
mod read;
mod write;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use domain::Metric;
use mongodb::{
    Collection,
    bson::{RawDocumentBuf, doc},
};
use store::StoreResult;
use store_partitioned::{Columns, Consistency, Database, Index, Limits, Outcome, Partition, Range, Row, Write};

pub use crate::{
    address::Address,
    connect::{Durability, OpenError},
};
use crate::{connect::Deployment, failure::unavailable, gather::Queue, read::ReadJob, write::WriteJob};

/// The metrics of this crate.
pub const METRICS: &[Metric] = &[
    Metric::histogram("timer_mongodb_batch_rows", "Rows written by one command."),
    Metric::counter("timer_mongodb_contention_total", "Rows written again because another writer was inserting the same."),
    Metric::counter("timer_mongodb_told_apart_total", "Operations that changed some of their rows, all of which were read back."),
    Metric::counter("timer_mongodb_unknown_total", "Commands whose answer was lost, and whose rows were read back."),
    Metric::counter("timer_mongodb_connections_broken_total", "Connections to MongoDB that were given up because of an error."),
];

const COLLECTION: &str = "rows";
/// No call takes longer: a server that is stopped or cut off does not answer at all.
const DEADLINE: Duration = Duration::from_secs(5);
/// Making indexes of a large collection takes a while.
const SET_UP_DEADLINE: Duration = Duration::from_secs(300);
/// The limit of MongoDB is 16 MiB for a document, and for the command that carries it.
const ROW_BYTES_MAX: usize = 15 * 1024 * 1024;
const ROWS_PER_WRITE: usize = 500;

/// A database of a MongoDB server, with one collection of ours.
#[derive(Clone)]
pub struct MongodbDatabase {
    database: mongodb::Database,
    rows: Collection<RawDocumentBuf>,
    deployment: Deployment,
    durability: Durability,
    reads: Arc<Queue<ReadJob>>,
    writes: Arc<Queue<WriteJob>>,
}

impl MongodbDatabase {
    fn new(database: mongodb::Database, deployment: Deployment, durability: Durability) -> Self {
        let (reads, writes) = (Queue::new(read::COMMANDS_AT_ONCE), Queue::new(write::COMMANDS_AT_ONCE));
        let rows = database.collection(COLLECTION);
        Self { database, rows, deployment, durability, reads: Arc::new(reads), writes: Arc::new(writes) }
    }

    /// What stands between an acknowledged timer and the loss of a server.
    pub const fn durability(&self) -> &Durability {
        &self.durability
    }
}

/// The field of a document that holds the position in an index, which has the same name.
const fn field(index: Index) -> &'static str {
    match index {
        Index::First => "i1",
        Index::Second => "i2",
        Index::Third => "i3",
        Index::Fourth => "i4",
    }
}

#[async_trait]
impl Database for MongodbDatabase {
    fn name(&self) -> &'static str {
        "mongodb"
    }

    fn limits(&self) -> Limits {
        Limits { rows_per_write: ROWS_PER_WRITE, row_bytes_max: ROW_BYTES_MAX }
    }

    async fn set_up(&self) -> StoreResult<()> {
        let index = |index: Index| doc! { "key": { field(index): 1 }, "name": field(index), "sparse": true };
        let indexes: Vec<_> = Index::ALL.into_iter().map(index).collect();
        let command = doc! { "createIndexes": COLLECTION, "indexes": indexes, "writeConcern": self.durability.write_concern() };
        deadline::within(SET_UP_DEADLINE, self.database.run_command(command)).await.map_err(unavailable)?;
        Ok(())
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
        Ok(write::write(self, partition, writes).await)
    }

    async fn ping(&self) -> StoreResult<()> {
        deadline::within(DEADLINE, self.database.run_command(doc! { "ping": 1 })).await.map_err(unavailable)?;
        Ok(())
    }
}
