//! Bulk changes, and the operations that make them page by page.
//!
//! A page of changes is no single commit here: its timers are changed each by itself, and the progress of the operation after them. Each
//! timer notes the operations that changed it last, so that a page which is repeated after a crash changes no timer twice, also where
//! another operation had its turn in between, and counts each as if it had been changed once.

use async_trait::async_trait;
use domain::{AccessKeyId, Span, TimerId, Timestamp};
use serde::{Deserialize, Serialize};
use store::{
    BulkAction, BulkChange, BulkCounts, BulkItem, BulkOperation, BulkStore, Cursor, Epoch, Filter, OperationId, OperationState,
    Progress, StoreError, StoreResult,
};
use uuid::Uuid;

use crate::{
    Change, Columns, Condition, Consistency, PartitionedStore, Positions, Range, Row, Version, Write,
    json::{corrupt, from_json, to_json},
    layout, transition,
};

/// Operations by their ids.
const BY_ID: u8 = 1;
/// Which operations of a key may be running.
const BY_KEY: u8 = 2;
/// How many operations are read at once.
const PAGE: usize = 500;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredOperation {
    key: Option<u128>,
    by: String,
    work: String,
    filter: Filter,
    state: String,
    matched: u64,
    expected_max: u64,
    changed: u64,
    skipped: u64,
    errors: u64,
    error: Option<String>,
    cursor: Option<(i64, u128)>,
    started_at: i64,
    finished_at: Option<i64>,
    epoch: i64,
    /// Until then it is its owner's.
    lease_until: i64,
}

impl StoredOperation {
    fn of(operation: &BulkOperation) -> Self {
        Self {
            key: operation.key.map(|key| key.0.as_u128()),
            by: operation.by.clone(),
            work: operation.work.clone(),
            filter: operation.filter.clone(),
            state: operation.state.as_str().to_owned(),
            matched: operation.matched,
            expected_max: operation.expected_max,
            changed: operation.changed,
            skipped: operation.skipped,
            errors: operation.errors,
            error: operation.error.clone(),
            cursor: operation.cursor.map(|cursor| (cursor.at.as_micros(), cursor.id.as_uuid().as_u128())),
            started_at: operation.started_at.as_micros(),
            finished_at: operation.finished_at.map(Timestamp::as_micros),
            epoch: operation.epoch.0,
            lease_until: i64::MIN,
        }
    }

    fn operation(self, id: OperationId) -> Option<BulkOperation> {
        let cursor =
            |(at, id): (i64, u128)| Cursor { at: Timestamp::from_micros(at), id: TimerId::from_uuid(Uuid::from_u128(id)) };
        Some(BulkOperation {
            id,
            key: self.key.map(|key| AccessKeyId(Uuid::from_u128(key))),
            by: self.by,
            work: self.work,
            filter: self.filter,
            state: OperationState::parse(&self.state)?,
            matched: self.matched,
            expected_max: self.expected_max,
            changed: self.changed,
            skipped: self.skipped,
            errors: self.errors,
            error: self.error,
            cursor: self.cursor.map(cursor),
            started_at: Timestamp::from_micros(self.started_at),
            finished_at: self.finished_at.map(Timestamp::from_micros),
            epoch: Epoch(self.epoch),
        })
    }

    fn is_running(&self) -> bool {
        self.state == OperationState::Running.as_str()
    }

    /// Whether no node has it.
    fn is_free(&self, now: i64) -> bool {
        self.is_running() && self.lease_until <= now
    }

    /// Since when it waits for a node that goes on with it.
    fn waits_since(&self) -> i64 {
        self.lease_until.max(self.started_at)
    }

    fn runs_under(&self, epoch: Option<Epoch>) -> bool {
        self.is_running() && epoch.is_none_or(|epoch| epoch.0 == self.epoch)
    }
}

fn by_id(id: OperationId) -> Vec<u8> {
    [&[BY_ID][..], id.0.as_uuid().as_bytes()].concat()
}

fn id_of(row: &Row) -> Option<OperationId> {
    layout::timer_id(row.key.get(1..)?).map(OperationId)
}

fn read(row: &Row) -> StoreResult<StoredOperation> {
    from_json(&row.head).map_err(corrupt)
}

fn whole(row: &Row) -> StoreResult<BulkOperation> {
    let operation = id_of(row).and_then(|id| read(row).ok()?.operation(id));
    operation.ok_or_else(|| StoreError::Corrupt("an operation cannot be read".into()))
}

impl PartitionedStore {
    async fn operation_row(&self, key: Vec<u8>) -> StoreResult<Option<Row>> {
        let rows = self.database.read(&layout::operations(), &[key], Columns::HEAD, Consistency::Linearizable).await?;
        Ok(rows.into_iter().next().flatten())
    }

    /// Changes an operation as it stands. `None` where `change` finds that it is not to be changed.
    async fn change_operation(
        &self,
        id: OperationId,
        change: impl Fn(&mut StoredOperation) -> bool + Send + Sync,
    ) -> StoreResult<Option<StoredOperation>> {
        loop {
            let Some(row) = self.operation_row(by_id(id)).await? else { return Ok(None) };
            let mut operation = read(&row)?;
            if !change(&mut operation) {
                return Ok(None);
            }
            let write = self.put(by_id(id), Condition::Is(row.version), to_json(&operation));
            if self.write_one(&layout::operations(), write).await? {
                return Ok(Some(operation));
            }
        }
    }

    /// All operations in the order of their start, page by page, until `look` has seen enough. It decides itself what an operation means
    /// to it that cannot be read: none must hold up the others.
    async fn each_operation(&self, mut look: impl FnMut(&Row, StoreResult<StoredOperation>) -> bool + Send) -> StoreResult<()> {
        let mut from = vec![BY_ID];
        loop {
            let range = Range { from, to: Some(vec![BY_KEY]), ..Range::all(PAGE) };
            let rows = self.database.range(&layout::operations(), &range, Columns::HEAD, Consistency::Committed).await?;
            for row in &rows {
                if !look(row, read(row)) {
                    return Ok(());
                }
            }
            match rows.last() {
                Some(last) if rows.len() == PAGE => from = crate::after(last.key.clone()),
                _ => return Ok(()),
            }
        }
    }

    /// Which of these operations are running.
    async fn running(&self, ids: Vec<u128>) -> StoreResult<Vec<u128>> {
        let key = |id: &u128| by_id(OperationId(TimerId::from_uuid(Uuid::from_u128(*id))));
        let keys: Vec<Vec<u8>> = ids.iter().map(key).collect();
        let rows = self.database.read(&layout::operations(), &keys, Columns::HEAD, Consistency::Linearizable).await?;
        let is_running = |row: &Option<Row>| row.as_ref().is_some_and(|row| read(row).is_ok_and(|kept| kept.is_running()));
        Ok(ids.into_iter().zip(rows).filter(|(_, row)| is_running(row)).map(|(id, _)| id).collect())
    }
}

#[async_trait]
impl BulkStore for PartitionedStore {
    async fn change_all(
        &self,
        action: &BulkAction,
        items: &[BulkItem],
        progress: Option<&Progress>,
        now: Timestamp,
    ) -> StoreResult<Option<Vec<BulkChange>>> {
        if let Some(progress) = progress {
            let row = self.operation_row(by_id(progress.operation)).await?;
            let runs = row.map(|row| read(&row)).transpose()?.is_some_and(|kept| kept.runs_under(Some(progress.epoch)));
            if !runs {
                return Ok(None);
            }
        }
        let clock = self.now();
        let operation = progress.map(|progress| progress.operation.0.as_uuid().as_u128());
        let items: Vec<(TimerId, BulkItem)> = items.iter().map(|item| (item.id, *item)).collect();
        let changes = self
            .change(&items, Columns::HEAD_AND_BODY, &|item, met| Ok(transition::bulk(action, item, operation, met, now, clock)))
            .await?;
        let Some(progress) = progress else { return Ok(Some(changes)) };
        let counts = BulkCounts::of(&changes);
        let noted = self
            .change_operation(progress.operation, |kept| {
                if !kept.runs_under(Some(progress.epoch)) {
                    return false;
                }
                kept.changed += counts.changed;
                kept.skipped += counts.skipped;
                kept.errors += progress.errors + counts.unreadable;
                kept.matched = progress.matched.unwrap_or(kept.matched);
                kept.cursor = progress.cursor.map(|cursor| (cursor.at.as_micros(), cursor.id.as_uuid().as_u128()));
                kept.lease_until = clock.saturating_add(progress.lease).as_micros();
                true
            })
            .await;
        match noted {
            Ok(noted) => Ok(noted.map(|_| changes)),
            Err(error) => Err(StoreError::Unknown(domain::Cause::of(error))),
        }
    }

    async fn add_operation(&self, operation: &BulkOperation, running_max: usize) -> StoreResult<bool> {
        let partition = layout::operations();
        let owner = operation.key.map_or_else(Vec::new, |key| key.0.as_bytes().to_vec());
        let guard = [&[BY_KEY][..], &owner].concat();
        loop {
            let row = self.operation_row(guard.clone()).await?;
            let version: Option<Version> = row.as_ref().map(|row| row.version);
            let named: Vec<u128> = row.map(|row| from_json(&row.head)).transpose().map_err(corrupt)?.unwrap_or_default();
            let mut running = self.running(named).await?;
            if running.len() >= running_max {
                return Ok(false);
            }
            running.push(operation.id.0.as_uuid().as_u128());
            // The operation first: another process that finds it named must find it running.
            let kept = self.put(by_id(operation.id), Condition::Absent, to_json(&StoredOperation::of(operation)));
            let Change::Put { version: kept_version, .. } = kept.change else { return Ok(false) };
            if !self.write_one(&partition, kept).await? {
                return Ok(false);
            }
            let condition = version.map_or(Condition::Absent, Condition::Is);
            if self.write_one(&partition, self.put(guard.clone(), condition, to_json(&running))).await? {
                return Ok(true);
            }
            // Another one of the same key came first.
            let removal = Write {
                key: by_id(operation.id),
                condition: Condition::Is(kept_version),
                change: Change::Delete,
                before: Positions::default(),
            };
            if !self.write_one(&partition, removal).await? {
                return Ok(true);
            }
        }
    }

    async fn operation(&self, id: OperationId) -> StoreResult<Option<BulkOperation>> {
        self.operation_row(by_id(id)).await?.map(|row| whole(&row)).transpose()
    }

    async fn operations(&self, before: Option<OperationId>, limit: usize) -> StoreResult<Vec<BulkOperation>> {
        let to = before.map_or_else(|| vec![BY_KEY], by_id);
        let range = Range { index: None, from: vec![BY_ID], to: Some(to), is_descending: true, limit };
        let rows = self.database.range(&layout::operations(), &range, Columns::HEAD, Consistency::Committed).await?;
        rows.iter().map(whole).collect()
    }

    async fn take_operation(&self, lease: Span) -> StoreResult<Option<BulkOperation>> {
        let now = self.now().as_micros();
        let (mut free, mut unreadable) = (Vec::new(), None);
        self.each_operation(|row, kept| {
            match kept {
                Ok(kept) if kept.is_free(now) => free.extend(id_of(row).map(|id| (kept.waits_since(), id))),
                Ok(_) => {}
                Err(error) => unreadable = Some(error),
            }
            true
        })
        .await?;
        free.sort_unstable();
        for (_, id) in free {
            let taken = self
                .change_operation(id, |kept| {
                    let is_taken = kept.is_free(now);
                    if is_taken {
                        kept.epoch += 1;
                        kept.lease_until = Timestamp::from_micros(now).saturating_add(lease).as_micros();
                    }
                    is_taken
                })
                .await?;
            if let Some(taken) = taken {
                return Ok(taken.operation(id));
            }
        }
        // Nothing that can be read waits for it to be reported.
        unreadable.map_or(Ok(None), Err)
    }

    async fn finish_operation(
        &self,
        id: OperationId,
        epoch: Option<Epoch>,
        state: OperationState,
        error: Option<&str>,
        now: Timestamp,
    ) -> StoreResult<bool> {
        let ended = self
            .change_operation(id, |kept| {
                let ends = kept.runs_under(epoch);
                if ends {
                    kept.state = state.as_str().to_owned();
                    kept.error = error.map(str::to_owned);
                    kept.finished_at = Some(now.as_micros());
                }
                ends
            })
            .await?;
        Ok(ended.is_some())
    }

    async fn purge_operations(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        let mut removals = Vec::new();
        self.each_operation(|row, kept| {
            if kept.is_ok_and(|kept| kept.finished_at.is_some_and(|at| at < before.as_micros())) {
                removals.push(Write {
                    key: row.key.clone(),
                    condition: Condition::Is(row.version),
                    change: Change::Delete,
                    before: Positions::default(),
                });
            }
            removals.len() < limit
        })
        .await?;
        if removals.is_empty() {
            return Ok(0);
        }
        let outcomes = self.database.write(&layout::operations(), removals).await?;
        Ok(outcomes.iter().filter(|outcome| matches!(outcome, crate::Outcome::Applied)).count())
    }
}
