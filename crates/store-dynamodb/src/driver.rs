//! How a table of DynamoDB keeps the contract of a partitioned database.

use async_trait::async_trait;
use store::StoreResult;
use store_partitioned::{Columns, Consistency, Database, Limits, Outcome, Partition, Range, Row, Write};

use crate::{
    database::{DynamodbDatabase, ROWS_PER_WRITE},
    read, table, write,
};

/// The limit of DynamoDB, entries in local indexes included.
const ROW_BYTES_MAX: usize = 400 * 1024;

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
