//! Many timers at once, and the operations that change them.

use std::collections::BTreeMap;

use domain::{Event, Span, Status, Timestamp};
use store::{
    BulkAction, BulkChange, BulkCounts, BulkItem, BulkOperation, BulkStep, Epoch, OperationId, OperationState, Progress,
    Standing, StoreError, StoreResult, Terms,
};

use super::tables::Tables;

pub(super) type Operations = BTreeMap<OperationId, Kept>;

/// An operation, and until when it is its owner's.
pub(super) struct Kept {
    pub(super) operation: BulkOperation,
    lease_until: Timestamp,
    is_spoiled: bool,
}

impl Kept {
    fn is_running(&self) -> bool {
        self.operation.state == OperationState::Running
    }

    /// Since when it waits for a node that goes on with it.
    fn waits_since(&self) -> Timestamp {
        self.lease_until.max(self.operation.started_at)
    }
}

impl Tables {
    pub(super) fn change_all(
        &mut self,
        action: &BulkAction,
        items: &[BulkItem],
        progress: Option<&Progress>,
        now: Timestamp,
        clock: Timestamp,
    ) -> Option<Vec<BulkChange>> {
        if progress.is_some_and(|progress| self.running(progress.operation, Some(progress.epoch)).is_none()) {
            return None;
        }
        let changes: Vec<BulkChange> = items.iter().map(|item| self.change_one(action, item, now)).collect();
        if let Some(progress) = progress
            && let Some(kept) = self.running(progress.operation, Some(progress.epoch))
        {
            let counts = BulkCounts::of(&changes);
            kept.operation.changed += counts.changed;
            kept.operation.skipped += counts.skipped;
            kept.operation.errors += progress.errors + counts.unreadable;
            kept.operation.matched = progress.matched.unwrap_or(kept.operation.matched);
            kept.operation.cursor = progress.cursor;
            kept.lease_until = clock.saturating_add(progress.lease);
        }
        Some(changes)
    }

    fn change_one(&mut self, action: &BulkAction, item: &BulkItem, now: Timestamp) -> BulkChange {
        let Some(row) = self.timers.get_mut(&item.id) else { return BulkChange::Skipped };
        let status = row.timer.status;
        let standing = Standing {
            status,
            revision: row.timer.revision,
            at: (!status.is_finished()).then_some(row.at),
            execute_at: row.timer.execute_at,
            terms: (!row.are_options_spoiled).then(|| Terms::of(&row.timer.definition.options)),
        };
        let Some(step) = action.step(item, &standing, now) else { return action.passed_by(item, &standing, now) };
        match step {
            BulkStep::End { status, error } => {
                row.timer.status = status;
                row.timer.pause = None;
                row.timer.updated_at = now;
                row.timer.last_error = error.map(str::to_owned).or(row.timer.last_error.take());
                self.journal.finished(&row.timer);
                return BulkChange::Changed;
            }
            BulkStep::LetExpire { at, error } => row.let_expire(at, error, now),
            BulkStep::Move { to } => row.change(row.timer.definition.clone(), to, now),
            BulkStep::Pause => row.pause(action.note(), now),
            BulkStep::Resume { at } => row.go_on(at, now),
            BulkStep::Reopen { at } => {
                self.journal.ended(&row.timer);
                row.timer.status = status.after(Event::Reopen).unwrap_or(status);
                row.reopen(at, now);
            }
            BulkStep::Remove => {
                self.timers.remove(&item.id);
                return BulkChange::Changed;
            }
        }
        self.journal.changed(&row.timer);
        if row.timer.status == Status::Pending { BulkChange::Due(row.entry()) } else { BulkChange::Changed }
    }

    pub(super) fn add_operation(&mut self, operation: &BulkOperation, running_max: usize) -> bool {
        let is_running = |kept: &&Kept| kept.is_running() && kept.operation.key == operation.key;
        let is_allowed = self.operations.values().filter(is_running).count() < running_max;
        if is_allowed {
            let kept = Kept { operation: operation.clone(), lease_until: Timestamp::MIN, is_spoiled: false };
            self.operations.insert(operation.id, kept);
        }
        is_allowed
    }

    pub(super) fn operations(&self, before: Option<OperationId>, limit: usize) -> Vec<BulkOperation> {
        let earlier = self.operations.values().rev().map(|kept| &kept.operation);
        earlier.filter(|operation| before.is_none_or(|before| operation.id < before)).take(limit).cloned().collect()
    }

    pub(super) fn spoil_operation(&mut self, id: OperationId) {
        if let Some(kept) = self.operations.get_mut(&id) {
            kept.is_spoiled = true;
        }
    }

    pub(super) fn take_operation(&mut self, lease: Span, clock: Timestamp) -> StoreResult<Option<BulkOperation>> {
        let free = self.operations.values_mut().filter(|kept| kept.is_running() && kept.lease_until <= clock);
        let Some(kept) = free.min_by_key(|kept| (kept.waits_since(), kept.operation.id)) else { return Ok(None) };
        kept.operation.epoch = Epoch(kept.operation.epoch.0 + 1);
        kept.lease_until = clock.saturating_add(lease);
        if kept.is_spoiled {
            return Err(StoreError::Corrupt("the operation was spoiled".into()));
        }
        Ok(Some(kept.operation.clone()))
    }

    pub(super) fn finish_operation(
        &mut self,
        id: OperationId,
        epoch: Option<Epoch>,
        state: OperationState,
        error: Option<&str>,
        now: Timestamp,
    ) -> bool {
        let Some(kept) = self.running(id, epoch) else { return false };
        kept.operation.state = state;
        kept.operation.error = error.map(str::to_owned);
        kept.operation.finished_at = Some(now);
        true
    }

    pub(super) fn purge_operations(&mut self, before: Timestamp, limit: usize) -> usize {
        let is_old = |kept: &&Kept| kept.operation.finished_at.is_some_and(|at| at < before);
        let old: Vec<OperationId> = self.operations.values().filter(is_old).map(|kept| kept.operation.id).take(limit).collect();
        for id in &old {
            self.operations.remove(id);
        }
        old.len()
    }

    fn running(&mut self, id: OperationId, epoch: Option<Epoch>) -> Option<&mut Kept> {
        let is_under = |kept: &&mut Kept| epoch.is_none_or(|epoch| kept.operation.epoch == epoch);
        self.operations.get_mut(&id).filter(|kept| kept.is_running()).filter(is_under)
    }
}
