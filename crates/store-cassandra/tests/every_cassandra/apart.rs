//! Partitions of its own for each test, in the keyspace that all share.

use std::sync::Arc;

use async_trait::async_trait;
use store::StoreResult;
use store_cassandra::{Cassandra, CassandraOptions};
use store_partitioned::{Columns, Consistency, Database, Outcome, Partition, Range, Row, Write};

/// The server that all tests share. `throwaway` says how to get one where there is none, and then they fail.
pub fn server() -> &'static throwaway::Cassandra {
    throwaway::cassandra().unwrap()
}

pub fn options() -> CassandraOptions {
    CassandraOptions::parse(&server().url("shared")).unwrap()
}

/// A connection of its own.
pub async fn connect() -> Arc<dyn Database> {
    Arc::new(Cassandra::connect(&options()).await.unwrap())
}

/// A database whose partitions have a prefix.
pub struct Apart {
    pub database: Arc<dyn Database>,
    pub prefix: String,
}

impl Apart {
    pub fn partition(&self, partition: &Partition) -> Partition {
        Partition::new(format!("{}-{partition}", self.prefix))
    }
}

#[async_trait]
impl Database for Apart {
    fn name(&self) -> &'static str {
        self.database.name()
    }

    async fn set_up(&self) -> StoreResult<()> {
        self.database.set_up().await
    }

    async fn read(
        &self,
        partition: &Partition,
        keys: &[Vec<u8>],
        columns: Columns,
        consistency: Consistency,
    ) -> StoreResult<Vec<Option<Row>>> {
        self.database.read(&self.partition(partition), keys, columns, consistency).await
    }

    async fn range(
        &self,
        partition: &Partition,
        range: &Range,
        columns: Columns,
        consistency: Consistency,
    ) -> StoreResult<Vec<Row>> {
        self.database.range(&self.partition(partition), range, columns, consistency).await
    }

    async fn write(&self, partition: &Partition, writes: Vec<Write>) -> StoreResult<Vec<Outcome>> {
        self.database.write(&self.partition(partition), writes).await
    }

    async fn ping(&self) -> StoreResult<()> {
        self.database.ping().await
    }
}
