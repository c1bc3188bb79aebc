//! Partitions of its own for each test, in the keyspace that all share.

use std::sync::Arc;

use async_trait::async_trait;
use store::StoreResult;
use store_cassandra::{Cassandra, CassandraOptions};
use store_partitioned::{Columns, Consistency, Database, Memory, Outcome, Partition, Range, Row, Write};

pub fn options() -> Option<CassandraOptions> {
    let server = throwaway::cassandra()?;
    Some(CassandraOptions::parse(&server.url("shared")).unwrap())
}

/// A connection of its own. Without a Cassandra, which is told, the database in memory stands in for it.
pub async fn connect() -> Arc<dyn Database> {
    match options() {
        Some(options) => Arc::new(Cassandra::connect(&options).await.unwrap()),
        None => Arc::new(Memory::default()),
    }
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
