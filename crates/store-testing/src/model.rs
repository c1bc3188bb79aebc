//! The contract as a program: one lock, one map, nothing clever. What it answers is what every store must answer.
//!
//! It keeps nothing when the process ends, so it serves tests: as the measure for the real stores, and as the store under
//! everything that is tested without a database.

mod bulk;
mod journal;
mod ownership;
mod row;
mod stats;
mod tables;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use domain::{
    AccessKey, AccessKeyId, Attempt, Cause, Clock, Group, Missed, Namespace, NewTimer, Shard, Span, Timer, TimerId, Timestamp,
};
use store::{BulkAction, BulkChange, BulkItem, BulkOperation, BulkStore, Epoch, OperationId, OperationState, Progress};
use store::{
    Changed, Claim, Claimed, Cluster, Count, Created, DueEntry, DueStore, EventPage, EventStore, Filter, GroupCount, HealthStore,
    HeartbeatReply, KeyStore, ListQuery, Member, MembershipStore, NodeId, Page, Settlement, ShardCursor, ShardLease, Sharded,
    StoreError, StoreResult, TimerStore, Watermark,
};
use tokio::sync::broadcast::{self, error::RecvError};

use self::tables::Tables;

/// The in-memory store.
pub struct Model {
    /// The database's clock: leases run by it, and by nothing else.
    clock: Arc<dyn Clock>,
    shards: u16,
    tables: Arc<Mutex<Tables>>,
    process: u32,
    processes: Arc<AtomicU32>,
    nudges: broadcast::Sender<Nudge>,
    inbox: tokio::sync::Mutex<broadcast::Receiver<Nudge>>,
}

/// Which process tells, and of what.
type Nudge = (u32, Vec<DueEntry>);

/// How many nudges may wait for a process before it loses the oldest.
const NUDGES_MAX: usize = 1024;

impl Model {
    pub fn new(clock: Arc<dyn Clock>, shards: u16) -> Self {
        let (nudges, inbox) = broadcast::channel(NUDGES_MAX);
        Self {
            clock,
            shards: shards.max(1),
            tables: Arc::default(),
            process: 0,
            processes: Arc::new(AtomicU32::new(1)),
            nudges,
            inbox: tokio::sync::Mutex::new(inbox),
        }
    }

    /// The same database, as another process sees it.
    pub fn another_process(&self) -> Self {
        Self {
            clock: Arc::clone(&self.clock),
            shards: self.shards,
            tables: Arc::clone(&self.tables),
            process: self.processes.fetch_add(1, Ordering::Relaxed),
            processes: Arc::clone(&self.processes),
            nudges: self.nudges.clone(),
            inbox: tokio::sync::Mutex::new(self.nudges.subscribe()),
        }
    }

    /// Makes a stored timer impossible to read, as a damaged row would be.
    pub fn spoil(&self, id: TimerId) {
        if let Some(row) = self.tables().timers.get_mut(&id) {
            row.is_spoiled = true;
        }
    }

    /// Makes a stored timer impossible to read in lists as well.
    pub fn spoil_summary(&self, id: TimerId) {
        if let Some(row) = self.tables().timers.get_mut(&id) {
            (row.is_spoiled, row.is_summary_spoiled) = (true, true);
        }
    }

    /// Makes the options of a stored timer impossible to read.
    pub fn spoil_options(&self, id: TimerId) {
        if let Some(row) = self.tables().timers.get_mut(&id) {
            (row.is_spoiled, row.are_options_spoiled) = (true, true);
        }
    }

    /// Makes a stored operation impossible to read.
    pub fn spoil_operation(&self, id: OperationId) {
        self.tables().spoil_operation(id);
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // Nothing in here panics half-way, so a poisoned lock still guards whole tables.
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.journal.now = self.clock.now();
        tables
    }
}

#[async_trait]
impl TimerStore for Model {
    async fn create(&self, batch: Vec<NewTimer>) -> StoreResult<Vec<Created>> {
        let mut tables = self.tables();
        Ok(batch.into_iter().map(|new| tables.create(new)).collect())
    }

    async fn get(&self, id: TimerId) -> StoreResult<Option<Timer>> {
        match self.tables().timers.get(&id) {
            Some(row) => row.read().map(Some).map_err(|unreadable| StoreError::Corrupt(Cause::of(unreadable))),
            None => Ok(None),
        }
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        Ok(self.tables().list(query))
    }

    async fn count(&self, filter: &Filter, _budget: Duration) -> StoreResult<Count> {
        Ok(Count::exactly(self.tables().matching(filter).count() as u64))
    }

    async fn update(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed> {
        Ok(self.tables().update(changed, now))
    }

    async fn cancel(&self, id: TimerId, expected: Option<u32>, now: Timestamp) -> StoreResult<Changed> {
        Ok(self.tables().cancel(id, expected, now))
    }

    async fn cancel_all(&self, ids: &[TimerId], now: Timestamp) -> StoreResult<Vec<bool>> {
        let mut tables = self.tables();
        Ok(ids.iter().map(|id| matches!(tables.cancel(*id, None, now), Changed::Done(_))).collect())
    }

    async fn reopen(&self, id: TimerId, expected: Option<u32>, now: Timestamp) -> StoreResult<Changed> {
        Ok(self.tables().reopen(id, expected, now))
    }

    async fn revive(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed> {
        Ok(self.tables().revive(changed, now))
    }

    async fn count_group(&self, namespace: &Namespace, group: &Group) -> StoreResult<GroupCount> {
        let mut count = GroupCount::default();
        for timer in self.tables().of_group(namespace, group) {
            *count.by_status.entry(timer.status).or_default() += 1;
        }
        Ok(count)
    }

    async fn group_members(
        &self,
        namespace: &Namespace,
        group: &Group,
        after: Option<TimerId>,
        limit: usize,
    ) -> StoreResult<Vec<TimerId>> {
        let tables = self.tables();
        let open = tables.of_group(namespace, group).filter(|timer| !timer.status.is_finished());
        Ok(open.map(Timer::id).filter(|id| after.is_none_or(|after| *id > after)).take(limit).collect())
    }

    async fn pause(&self, id: TimerId, expected: Option<u32>, note: Option<&str>, now: Timestamp) -> StoreResult<Changed> {
        Ok(self.tables().pause(id, expected, note, now))
    }

    async fn resume(&self, id: TimerId, expected: Option<u32>, missed: Missed, now: Timestamp) -> StoreResult<Changed> {
        Ok(self.tables().resume(id, expected, missed, now))
    }

    async fn attempts(&self, id: TimerId) -> StoreResult<Vec<Attempt>> {
        Ok(self.tables().timers.get(&id).map(|row| row.attempts.iter().cloned().collect()).unwrap_or_default())
    }
}

#[async_trait]
impl BulkStore for Model {
    async fn change_all(
        &self,
        action: &BulkAction,
        items: &[BulkItem],
        progress: Option<&Progress>,
        now: Timestamp,
    ) -> StoreResult<Option<Vec<BulkChange>>> {
        let (clock, mut tables) = (self.clock.now(), self.tables());
        Ok(tables.change_all(action, items, progress, now, clock))
    }

    async fn add_operation(&self, operation: &BulkOperation, running_max: usize) -> StoreResult<bool> {
        Ok(self.tables().add_operation(operation, running_max))
    }

    async fn operation(&self, id: OperationId) -> StoreResult<Option<BulkOperation>> {
        Ok(self.tables().operations.get(&id).map(|kept| kept.operation.clone()))
    }

    async fn operations(&self, before: Option<OperationId>, limit: usize) -> StoreResult<Vec<BulkOperation>> {
        Ok(self.tables().operations(before, limit))
    }

    async fn take_operation(&self, lease: Span) -> StoreResult<Option<BulkOperation>> {
        let (clock, mut tables) = (self.clock.now(), self.tables());
        tables.take_operation(lease, clock)
    }

    async fn finish_operation(
        &self,
        id: OperationId,
        epoch: Option<Epoch>,
        state: OperationState,
        error: Option<&str>,
        now: Timestamp,
    ) -> StoreResult<bool> {
        Ok(self.tables().finish_operation(id, epoch, state, error, now))
    }

    async fn purge_operations(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        Ok(self.tables().purge_operations(before, limit))
    }
}

#[async_trait]
impl DueStore for Model {
    async fn due(&self, from: &[ShardCursor], until: Timestamp, limit: usize) -> StoreResult<Vec<DueEntry>> {
        let tables = self.tables();
        Ok(from.iter().flat_map(|cursor| tables.due(*cursor, until, limit, self.shards)).collect())
    }

    async fn claim(&self, claim: &Claim, entries: &[DueEntry]) -> StoreResult<Vec<Claimed>> {
        let (now, mut tables) = (self.clock.now(), self.tables());
        let mut given = BTreeSet::new();
        let claimed = entries.iter().filter_map(|entry| tables.claim(claim, *entry, entry.id.shard(self.shards), now));
        Ok(claimed.filter(|claimed| given.insert(claimed.entry.id)).collect())
    }

    async fn settle(&self, batch: &[Settlement]) -> StoreResult<Vec<bool>> {
        let mut tables = self.tables();
        Ok(batch.iter().map(|settlement| tables.settle(settlement)).collect())
    }

    async fn expired_claims(&self, shard_leases: &[ShardLease], limit: usize) -> StoreResult<Vec<Claimed>> {
        Ok(self.tables().expired_claims(shard_leases, limit, self.shards, self.clock.now()))
    }

    async fn purge(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        Ok(self.tables().purge(before, limit))
    }
}

#[async_trait]
impl EventStore for Model {
    /// Every call is a write of its own under the lock, and none is under way while this one is made.
    async fn watermark(&self) -> StoreResult<Watermark> {
        Ok(Watermark { at: self.tables().journal.now, open: 0, next: 0 })
    }

    async fn events(&self, after: Timestamp, until: Timestamp, limit: usize) -> StoreResult<EventPage> {
        Ok(self.tables().events(after, until, limit))
    }

    async fn timers(&self, ids: &[TimerId]) -> StoreResult<Vec<Timer>> {
        let tables = self.tables();
        Ok(ids.iter().filter_map(|id| tables.timers.get(id)?.read().ok()).collect())
    }

    async fn attempts_at(&self, of: &[(TimerId, i64)]) -> StoreResult<Vec<Option<Attempt>>> {
        let tables = self.tables();
        Ok(of.iter().map(|(id, seq)| tables.timers.get(id)?.attempt_at(*seq)).collect())
    }

    async fn forget_events(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        Ok(self.tables().journal.forget(before, limit))
    }
}

#[async_trait]
impl KeyStore for Model {
    async fn add_key(&self, key: &AccessKey) -> StoreResult<bool> {
        let keys = &mut self.tables().keys;
        let is_new = keys.iter().all(|kept| kept.id != key.id && kept.hash != key.hash);
        if is_new {
            keys.push(key.clone());
            keys.sort_by_key(|key| (key.created_at, key.id));
        }
        Ok(is_new)
    }

    async fn keys(&self) -> StoreResult<Vec<AccessKey>> {
        Ok(self.tables().keys.clone())
    }

    async fn revoke_key(&self, id: AccessKeyId, now: Timestamp) -> StoreResult<bool> {
        match self.tables().keys.iter_mut().find(|key| key.id == id && key.is_valid()) {
            Some(key) => {
                key.revoked_at = Some(now);
                Ok(true)
            }
            None => Ok(false),
        }
    }
}

#[async_trait]
impl MembershipStore for Model {
    async fn heartbeat(&self, member: &Member, lease: Span) -> StoreResult<HeartbeatReply> {
        Ok(self.tables().ownership.heartbeat(member, self.clock.now(), lease))
    }

    async fn acquire(&self, node: NodeId, shards: &[Shard]) -> StoreResult<Vec<ShardLease>> {
        let (now, mut tables) = (self.clock.now(), self.tables());
        let existing = shards.iter().filter(|shard| shard.0 < self.shards);
        Ok(existing.filter_map(|shard| tables.ownership.acquire(node, *shard, now)).collect())
    }

    async fn release(&self, node: NodeId, shard_leases: &[ShardLease]) -> StoreResult<()> {
        self.tables().ownership.release(node, shard_leases);
        Ok(())
    }

    async fn leave(&self, node: NodeId) -> StoreResult<()> {
        self.tables().ownership.leave(node);
        Ok(())
    }

    async fn nudge(&self, entries: &[DueEntry]) -> StoreResult<()> {
        if !entries.is_empty() {
            // There is no listener if there is no other process.
            let _ = self.nudges.send((self.process, entries.to_vec()));
        }
        Ok(())
    }

    async fn nudged(&self) -> StoreResult<Vec<DueEntry>> {
        let mut inbox = self.inbox.lock().await;
        loop {
            match inbox.recv().await {
                Ok((process, entries)) if process != self.process => return Ok(entries),
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                // Cannot be: this very store could still send.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

#[async_trait]
impl HealthStore for Model {
    async fn ping(&self) -> StoreResult<()> {
        Ok(())
    }

    async fn cluster(&self) -> StoreResult<Cluster> {
        let (now, tables) = (self.clock.now(), self.tables());
        let pending = tables.timers.values().filter(|row| row.timer.status == domain::Status::Pending && row.at <= now);
        Ok(Cluster {
            now,
            members: tables.ownership.members(now),
            shards: (0..self.shards).map(|shard| tables.ownership.state(Shard(shard))).collect(),
            oldest_overdue: pending.map(|row| row.at).min(),
        })
    }
}

impl Sharded for Model {
    fn shards(&self) -> u16 {
        self.shards
    }
}
