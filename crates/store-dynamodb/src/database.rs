use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use store::StoreResult;
use store_partitioned::{Columns, Consistency, Database, Limits, Outcome, Partition, Range, Row, Write};
use tokio::sync::Semaphore;

use crate::{read, table, write};

/// No request takes longer: an endpoint that is cut off does not answer at all.
pub const DEADLINE: Duration = Duration::from_secs(5);
/// How many requests one process has under way. The others wait in the order in which they came.
pub const REQUESTS_MAX: usize = 128;
/// The limit of DynamoDB, entries in local indexes included.
const ROW_BYTES_MAX: usize = 400 * 1024;
/// How many rows of one call are written at once: DynamoDB has no limit, since each is a request of its own.
pub const ROWS_PER_WRITE: usize = 100;

/// A table of DynamoDB.
#[derive(Clone)]
pub struct DynamodbDatabase {
    pub(crate) client: Client,
    pub(crate) table: String,
    pub(crate) permits: Arc<Semaphore>,
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
