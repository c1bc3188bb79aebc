//! Many timers at once, and the operations that change them page by page.

use domain::{AccessKeyId, Span, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};
use store::{
    BulkAction, BulkChange, BulkCounts, BulkItem, BulkOperation, Cursor, Epoch, OperationId, OperationState, Progress,
    StoreError, Unreadable,
};
use store_sql::{column, sql};

use crate::{failure::Failure, rows::Id, step::Found, tally::Tally, writer::Write};

pub const INSERT_OPERATION: &str = sql!("sql/insert_operation.sql");
pub const OPERATION: &str = sql!("sql/operation.sql");
pub const OPERATIONS: &str = sql!("sql/operations.sql");
pub const FREE_OPERATION: &str = sql!("sql/free_operation.sql");
pub const TAKE_OPERATION: &str = sql!("sql/take_operation.sql");
pub const PROGRESS: &str = sql!("sql/progress.sql");
pub const RUNNING: &str = sql!("sql/running.sql");
pub const FINISH_OPERATION: &str = sql!("sql/finish_operation.sql");
pub const PURGE_OPERATIONS: &str = sql!("sql/purge_operations.sql");

// Rows of both are read alike.
const _: () = assert!(store_sql::are_first_columns_of(OPERATION, OPERATIONS));

pub struct ChangeAll {
    pub action: BulkAction,
    pub items: Vec<BulkItem>,
    pub progress: Option<Progress>,
    pub now: Timestamp,
    /// The time by the database's clock.
    pub clock: Timestamp,
}

impl Write for ChangeAll {
    /// `None` when the operation is not its owner's any more.
    type Answer = Option<Vec<BulkChange>>;
    const NAME: &'static str = "change_all";

    fn rows(&self) -> usize {
        self.items.len()
    }

    /// A page of an operation; otherwise a client waits for it.
    fn is_background(&self) -> bool {
        self.progress.is_some()
    }

    fn run(&self, connection: &Connection, tally: &mut Tally) -> Result<Self::Answer, Failure> {
        if let Some(progress) = &self.progress
            && !is_running(connection, progress)?
        {
            return Ok(None);
        }
        let mut changes = Vec::with_capacity(self.items.len());
        for item in &self.items {
            changes.push(self.change(connection, item, tally)?);
        }
        if let Some(progress) = &self.progress {
            let counts = BulkCounts::of(&changes);
            let (at, id) = cursor_columns(progress.cursor);
            connection.prepare_cached(PROGRESS)?.execute(params![
                id_of(progress.operation),
                progress.epoch.0,
                at,
                id,
                number(counts.changed),
                number(counts.skipped),
                number(progress.errors + counts.unreadable),
                self.clock.saturating_add(progress.lease).as_micros(),
                progress.matched.map(number),
            ])?;
        }
        Ok(Some(changes))
    }
}

impl ChangeAll {
    fn change(&self, connection: &Connection, item: &BulkItem, tally: &mut Tally) -> Result<BulkChange, Failure> {
        let Some(mut found) = Found::by_id(connection, item.id)? else { return Ok(BulkChange::Skipped) };
        if self.action.asks_for_terms() {
            found = found.with_terms(connection)?;
        }
        match self.action.step(item, &found.standing, self.now) {
            Some(step) => found.apply(connection, step, self.action.note(), self.now, tally),
            None => Ok(self.action.passed_by(item, &found.standing, self.now)),
        }
    }
}

fn is_running(connection: &Connection, progress: &Progress) -> Result<bool, Failure> {
    let key = params![id_of(progress.operation), progress.epoch.0];
    let running: i64 = connection.prepare_cached(RUNNING)?.query_row(key, |row| row.get(column!(RUNNING, "running")))?;
    Ok(running > 0)
}

pub struct AddOperation {
    pub operation: BulkOperation,
    pub running_max: usize,
}

impl Write for AddOperation {
    type Answer = bool;
    const NAME: &'static str = "add_operation";

    fn rows(&self) -> usize {
        1
    }

    fn run(&self, connection: &Connection, _: &mut Tally) -> Result<bool, Failure> {
        let BulkOperation { id, key, by, work, filter, matched, expected_max, started_at, .. } = &self.operation;
        let filter = serde_json::to_string(filter).map_err(|error| Unreadable(error.to_string()))?;
        let added = connection.prepare_cached(INSERT_OPERATION)?.execute(params![
            id_of(*id),
            key.map(|key| key.0.into_bytes()),
            by,
            work,
            filter,
            number(*matched),
            number(*expected_max),
            started_at.as_micros(),
            number(self.running_max as u64),
        ])?;
        Ok(added > 0)
    }
}

pub struct TakeOperation {
    pub lease: Span,
    pub clock: Timestamp,
}

impl Write for TakeOperation {
    /// `Err` for one that cannot be read: it is taken nevertheless, so that the next call takes another.
    type Answer = Option<Result<BulkOperation, StoreError>>;
    const NAME: &'static str = "take_operation";

    fn rows(&self) -> usize {
        1
    }

    fn run(&self, connection: &Connection, _: &mut Tally) -> Result<Self::Answer, Failure> {
        let free = connection
            .prepare_cached(FREE_OPERATION)?
            .query_row([self.clock.as_micros()], |row| row.get::<_, Id>(column!(FREE_OPERATION, "id")))
            .optional()?;
        let Some(id) = free else { return Ok(None) };
        let until = self.clock.saturating_add(self.lease).as_micros();
        connection.prepare_cached(TAKE_OPERATION)?.execute(params![id, until])?;
        match operation(connection, OperationId(id.timer())) {
            Ok(operation) => Ok(operation.map(Ok)),
            Err(Failure(error @ StoreError::Corrupt(_))) => Ok(Some(Err(error))),
            Err(failure) => Err(failure),
        }
    }
}

pub struct FinishOperation {
    pub id: OperationId,
    pub epoch: Option<Epoch>,
    pub state: OperationState,
    pub error: Option<String>,
    pub now: Timestamp,
}

impl Write for FinishOperation {
    type Answer = bool;
    const NAME: &'static str = "finish_operation";

    fn rows(&self) -> usize {
        1
    }

    fn run(&self, connection: &Connection, _: &mut Tally) -> Result<bool, Failure> {
        let epoch = self.epoch.map(|epoch| epoch.0);
        let row = params![id_of(self.id), epoch, self.state.as_str(), self.error, self.now.as_micros()];
        Ok(connection.prepare_cached(FINISH_OPERATION)?.execute(row)? > 0)
    }
}

pub struct PurgeOperations {
    pub before: Timestamp,
    pub limit: usize,
}

impl Write for PurgeOperations {
    type Answer = usize;
    const NAME: &'static str = "purge_operations";

    fn rows(&self) -> usize {
        self.limit
    }

    fn run(&self, connection: &Connection, _: &mut Tally) -> Result<usize, Failure> {
        let row = params![self.before.as_micros(), number(self.limit as u64)];
        Ok(connection.prepare_cached(PURGE_OPERATIONS)?.execute(row)?)
    }
}

pub fn operation(connection: &Connection, id: OperationId) -> Result<Option<BulkOperation>, Failure> {
    let found = connection.prepare_cached(OPERATION)?.query_row([id_of(id)], read).optional()?;
    Ok(found.transpose()?)
}

pub fn operations(connection: &Connection, before: Option<OperationId>, limit: usize) -> Result<Vec<BulkOperation>, Failure> {
    // After every id there is one that is longer.
    let before = before.map_or_else(|| vec![0xff; 17], |before| id_of(before).bytes().to_vec());
    let mut statement = connection.prepare_cached(OPERATIONS)?;
    let mut rows = statement.query(params![before, number(limit as u64)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)??);
    }
    Ok(found)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Result<BulkOperation, Unreadable>> {
    let (state, filter): (String, String) = (row.get(column!(OPERATION, "state"))?, row.get(column!(OPERATION, "filter"))?);
    let filter = match serde_json::from_str(&filter) {
        Ok(filter) => filter,
        Err(error) => return Ok(Err(Unreadable(format!("the filter of an operation: {error}")))),
    };
    let Some(state) = OperationState::parse(&state) else {
        return Ok(Err(Unreadable(format!("an operation is {state}"))));
    };
    let count = |column: usize| row.get::<_, i64>(column).map(i64::unsigned_abs);
    let key: Option<Id> = row.get(column!(OPERATION, "key_id"))?;
    let cursor_at: Option<i64> = row.get(column!(OPERATION, "cursor_at"))?;
    let cursor_id: Option<Id> = row.get(column!(OPERATION, "cursor_id"))?;
    Ok(Ok(BulkOperation {
        id: OperationId(row.get::<_, Id>(column!(OPERATION, "id"))?.timer()),
        key: key.map(|key| AccessKeyId(key.timer().as_uuid())),
        by: row.get(column!(OPERATION, "by_name"))?,
        work: row.get(column!(OPERATION, "work"))?,
        filter,
        state,
        matched: count(column!(OPERATION, "matched"))?,
        expected_max: count(column!(OPERATION, "expected_max"))?,
        changed: count(column!(OPERATION, "changed"))?,
        skipped: count(column!(OPERATION, "skipped"))?,
        errors: count(column!(OPERATION, "errors"))?,
        error: row.get(column!(OPERATION, "error"))?,
        cursor: cursor_at.zip(cursor_id).map(|(at, id)| Cursor { at: Timestamp::from_micros(at), id: id.timer() }),
        started_at: Timestamp::from_micros(row.get(column!(OPERATION, "started_at"))?),
        finished_at: row.get::<_, Option<i64>>(column!(OPERATION, "finished_at"))?.map(Timestamp::from_micros),
        epoch: Epoch(row.get(column!(OPERATION, "epoch"))?),
    }))
}

const fn id_of(id: OperationId) -> Id {
    Id::of(id.0)
}

fn cursor_columns(cursor: Option<Cursor>) -> (Option<i64>, Option<Id>) {
    (cursor.map(|cursor| cursor.at.as_micros()), cursor.map(|cursor| Id::of(cursor.id)))
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
