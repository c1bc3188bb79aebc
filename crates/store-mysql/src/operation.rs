//! The operations that change many timers page by page, as they are stored.

use domain::{AccessKeyId, Span, TimerId, Timestamp};
use sqlx::{Row, mysql::MySqlRow, types::Uuid};
use store::{BulkOperation, Cursor, Epoch, OperationId, OperationState, Unreadable};
use store_sql::{Call, sql};

use crate::{
    connector::Connector,
    failure::{Failure, Step},
    session::Session,
    transaction::{Holds, Transaction},
};

pub(crate) const INSERT_OPERATION: &str = sql!("sql/insert_operation.sql");
pub(crate) const OPERATION: &str = sql!("sql/operation.sql");
pub(crate) const OPERATIONS: &str = sql!("sql/operations.sql");
pub(crate) const FREE_OPERATION: &str = sql!("sql/free_operation.sql");
pub(crate) const TAKE_OPERATION: &str = sql!("sql/take_operation.sql");
pub(crate) const LOCK_OPERATION: &str = sql!("sql/lock_operation.sql");
pub(crate) const PROGRESS: &str = sql!("sql/progress.sql");
pub(crate) const FINISH_OPERATION: &str = sql!("sql/finish_operation.sql");
pub(crate) const PURGE_OPERATIONS: &str = sql!("sql/purge_operations.sql");

pub struct AddOperation {
    pub operation: BulkOperation,
    pub running_max: usize,
}

impl Call<Connector> for AddOperation {
    type Answer = bool;
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<bool, Failure> {
        let BulkOperation { id, key, by, work, filter, matched, expected_max, started_at, .. } = &self.operation;
        let filter = serde_json::to_string(filter).map_err(|error| Unreadable(error.to_string()))?;
        let added = sqlx::query(INSERT_OPERATION)
            .bind(id.0.as_uuid())
            .bind(key.map(|key| key.0))
            .bind(by)
            .bind(work)
            .bind(filter)
            .bind(number(*matched))
            .bind(number(*expected_max))
            .bind(started_at.as_micros())
            .bind(key.map(|key| key.0))
            .bind(number(self.running_max as u64))
            .execute(session)
            .await
            .or_unknown()?;
        Ok(added.rows_affected() > 0)
    }
}

/// The latest operations, or one of them.
pub struct Operations {
    pub id: Option<OperationId>,
    pub before: Option<OperationId>,
    pub limit: usize,
}

impl Call<Connector> for Operations {
    type Answer = Vec<BulkOperation>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut Session) -> Result<Vec<BulkOperation>, Failure> {
        let query = match self.id {
            Some(id) => sqlx::query(OPERATION).bind(id.0.as_uuid()),
            None => {
                let before = self.before.map_or_else(Uuid::max, |id| id.0.as_uuid());
                sqlx::query(OPERATIONS).bind(before).bind(number(self.limit as u64))
            }
        };
        query.fetch_all(session).await.or_not_done()?.iter().map(read).collect()
    }
}

pub struct TakeOperation(pub Span);

impl Call<Connector> for TakeOperation {
    type Answer = Option<BulkOperation>;
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<Option<BulkOperation>, Failure> {
        let mut transaction = Transaction::begin(session, Holds::default()).await?;
        let now = transaction.now;
        let free = sqlx::query_scalar::<_, Uuid>(FREE_OPERATION).bind(now).fetch_optional(transaction.session()).await;
        let Some(id) = free.or_not_done()? else {
            // Nothing was written: this only ends the transaction.
            transaction.commit().await?;
            return Ok(None);
        };
        let take = sqlx::query(TAKE_OPERATION).bind(now.saturating_add(self.0.as_micros())).bind(id);
        take.execute(transaction.session()).await.or_not_done()?;
        let row = sqlx::query(OPERATION).bind(id).fetch_one(transaction.session()).await.or_not_done()?;
        // Before it is read: one that cannot be read is taken as well, so that the next call takes another.
        transaction.commit().await?;
        read(&row).map(Some)
    }
}

pub struct FinishOperation {
    pub id: OperationId,
    pub epoch: Option<Epoch>,
    pub state: OperationState,
    pub error: Option<String>,
    pub now: Timestamp,
}

impl Call<Connector> for FinishOperation {
    type Answer = bool;
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<bool, Failure> {
        let epoch = self.epoch.map(|epoch| epoch.0);
        let query = sqlx::query(FINISH_OPERATION)
            .bind(self.state.as_str())
            .bind(self.error.as_deref())
            .bind(self.now.as_micros())
            .bind(self.id.0.as_uuid())
            .bind(epoch)
            .bind(epoch);
        Ok(query.execute(session).await.or_unknown()?.rows_affected() > 0)
    }
}

pub struct PurgeOperations {
    pub before: Timestamp,
    pub limit: usize,
}

impl Call<Connector> for PurgeOperations {
    type Answer = usize;
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<usize, Failure> {
        let query = sqlx::query(PURGE_OPERATIONS).bind(self.before.as_micros()).bind(number(self.limit as u64));
        let purged = query.execute(session).await.or_unknown()?.rows_affected();
        Ok(usize::try_from(purged).unwrap_or(usize::MAX))
    }
}

fn read(row: &MySqlRow) -> Result<BulkOperation, Failure> {
    let count = |column| row.try_get::<i64, _>(column).map(i64::unsigned_abs).or_not_done();
    let micros = |column| row.try_get::<Option<i64>, _>(column).or_not_done();
    let (state, filter): (&str, &str) = (row.try_get("state").or_not_done()?, row.try_get("filter").or_not_done()?);
    let cursor_id: Option<Uuid> = row.try_get("cursor_id").or_not_done()?;
    let key: Option<Uuid> = row.try_get("key_id").or_not_done()?;
    let cursor = micros("cursor_at")?.zip(cursor_id);
    Ok(BulkOperation {
        id: OperationId(TimerId::from_uuid(row.try_get("id").or_not_done()?)),
        key: key.map(AccessKeyId),
        by: row.try_get("by_name").or_not_done()?,
        work: row.try_get("work").or_not_done()?,
        filter: serde_json::from_str(filter).map_err(|error| Unreadable(format!("the filter of an operation: {error}")))?,
        state: OperationState::parse(state).ok_or_else(|| Unreadable(format!("an operation is {state}")))?,
        matched: count("matched")?,
        expected_max: count("expected_max")?,
        changed: count("changed")?,
        skipped: count("skipped")?,
        errors: count("errors")?,
        error: row.try_get("error").or_not_done()?,
        cursor: cursor.map(|(at, id)| Cursor { at: Timestamp::from_micros(at), id: TimerId::from_uuid(id) }),
        started_at: Timestamp::from_micros(row.try_get("started_at").or_not_done()?),
        finished_at: micros("finished_at")?.map(Timestamp::from_micros),
        epoch: Epoch(row.try_get("epoch").or_not_done()?),
    })
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
