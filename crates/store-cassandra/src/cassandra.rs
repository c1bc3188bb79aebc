use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use domain::Cause;
use scylla::{
    client::session::Session,
    errors::{DbError, PrepareError, RequestAttemptError},
};
use store::{StoreError, StoreResult};
use store_partitioned::{Columns, Condition, Consistency, Database, Outcome, Partition, Range, Row, Write};

use crate::{
    CassandraOptions, Durability, OpenError,
    failure::of_read,
    notes::Observed,
    open,
    partition_queue::PartitionQueues,
    read::Reader,
    schema,
    statements::{Levels, Statements},
    write::Writer,
};

/// How often a table that cannot be used yet is tried, and how long it waits in between.
const PREPARED_ATTEMPTS_MAX: u32 = 50;
const PREPARED_PAUSE: Duration = Duration::from_millis(200);

/// A keyspace of Cassandra, as a partitioned database.
pub struct Cassandra {
    options: CassandraOptions,
    session: Arc<Session>,
    durability: Durability,
    reader: Arc<Reader>,
    writer: Arc<Writer>,
    queues: PartitionQueues,
}

impl Cassandra {
    /// Connects to a cluster, and creates keyspace and table where they are missing.
    pub async fn connect(options: &CassandraOptions) -> Result<Self, OpenError> {
        let levels = if options.datacenter.is_some() { Levels::OF_ONE_DATACENTER } else { Levels::EVERYWHERE };
        let session = Arc::new(open::connect(options).await?);
        schema::create_missing(&session, options).await.map_err(OpenError::of_set_up)?;
        let durability = open::durability(&session, &options.keyspace).await?;
        let statements = prepare(&session, &options.keyspace, levels).await;
        let statements = Arc::new(statements.map_err(|error| OpenError::SetUp(Cause::of(error)))?);
        let reader = Arc::new(Reader {
            session: Arc::clone(&session),
            statements: Arc::clone(&statements),
            levels,
            observed: Observed::default(),
        });
        let writer = Arc::new(Writer::new(Arc::clone(&session), statements, Arc::clone(&reader)));
        let queues = PartitionQueues::new(Arc::clone(&reader), Arc::clone(&writer));
        Ok(Self { options: options.clone(), session, durability, reader, writer, queues })
    }

    /// What stands between an acknowledged timer and a failure.
    pub const fn durability(&self) -> &Durability {
        &self.durability
    }
}

/// Prepares the statements. A table that another process is just creating is listed a moment before it can be used.
async fn prepare(session: &Session, keyspace: &str, levels: Levels) -> Result<Statements, PrepareError> {
    let mut attempt = 1;
    loop {
        match Statements::prepare(session, schema::table(keyspace), levels).await {
            Err(PrepareError::AllAttemptsFailed { first_attempt: RequestAttemptError::DbError(DbError::Invalid, _) })
                if attempt < PREPARED_ATTEMPTS_MAX =>
            {
                attempt += 1;
                tokio::time::sleep(PREPARED_PAUSE).await;
            }
            prepared => return prepared,
        }
    }
}

#[async_trait]
impl Database for Cassandra {
    fn name(&self) -> &'static str {
        "cassandra"
    }

    async fn set_up(&self) -> StoreResult<()> {
        schema::create_missing(&self.session, &self.options).await.map_err(|error| StoreError::Unavailable(Cause::of(error)))
    }

    async fn read(
        &self,
        partition: &Partition,
        keys: &[Vec<u8>],
        columns: Columns,
        consistency: Consistency,
    ) -> StoreResult<Vec<Option<Row>>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        match consistency {
            Consistency::Linearizable => self.queues.read(partition, keys.to_vec(), columns).await,
            other => self.reader.read(partition, keys, columns, self.reader.levels.of(other)).await,
        }
    }

    async fn range(
        &self,
        partition: &Partition,
        range: &Range,
        columns: Columns,
        consistency: Consistency,
    ) -> StoreResult<Vec<Row>> {
        self.reader.range(partition, range, columns, consistency).await
    }

    async fn write(&self, partition: &Partition, writes: Vec<Write>) -> StoreResult<Vec<Outcome>> {
        if writes.is_empty() {
            return Ok(Vec::new());
        }
        let are_plain: Vec<bool> = writes.iter().map(|write| write.condition == Condition::Any).collect();
        let (plain, conditional): (Vec<Write>, Vec<Write>) =
            writes.into_iter().partition(|write| write.condition == Condition::Any);
        if plain.is_empty() {
            return self.queues.write(partition, conditional).await;
        }
        let mut plain = self.writer.write_plainly(partition, plain).await.into_iter();
        if conditional.is_empty() {
            return Ok(plain.collect());
        }
        let mut conditional = self.queues.write(partition, conditional).await?.into_iter();
        let next = |is_plain: bool| if is_plain { plain.next() } else { conditional.next() };
        Ok(are_plain.into_iter().filter_map(next).collect())
    }

    async fn ping(&self) -> StoreResult<()> {
        self.session.query_unpaged("SELECT key FROM system.local", ()).await.map(drop).map_err(of_read)
    }
}
