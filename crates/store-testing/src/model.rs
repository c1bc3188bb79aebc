//! The contract as a program: one lock, one map, nothing clever. What it answers is what every store must answer.
//!
//! It keeps nothing when the process ends, so it serves tests: as the measure for the real stores, and as the store under
//! everything that is tested without a database.

mod ownership;
mod row;
mod tables;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use async_trait::async_trait;
use domain::{
    AccessKey, AccessKeyId, Attempt, Cause, Clock, Group, JsonText, Namespace, NewTimer, Shard, Span, Timer, TimerId, Timestamp,
};
use store::{
    Changed, Claim, Claimed, Cluster, Count, Created, DueEntry, DueStore, Filter, GroupCount, HealthStore, HeartbeatReply,
    KeyStore, ListQuery, Member, MembershipStore, NodeId, Page, Settlement, ShardCursor, ShardLease, Sharded, StoreError,
    StoreResult, TimerStore,
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

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // Nothing in here panics half-way, so a poisoned lock still guards whole tables.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
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

    async fn count(&self, filter: &Filter) -> StoreResult<Count> {
        Ok(Count::exactly(self.tables().matching(filter).count() as u64))
    }

    async fn update(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed> {
        Ok(self.tables().update(changed, now))
    }

    async fn cancel(&self, id: TimerId, now: Timestamp) -> StoreResult<Changed> {
        Ok(self.tables().cancel(id, now))
    }

    async fn cancel_all(&self, ids: &[TimerId], now: Timestamp) -> StoreResult<Vec<bool>> {
        let mut tables = self.tables();
        Ok(ids.iter().map(|id| matches!(tables.cancel(*id, now), Changed::Done(_))).collect())
    }

    async fn reopen(&self, id: TimerId, now: Timestamp) -> StoreResult<Changed> {
        Ok(self.tables().reopen(id, now))
    }

    async fn revive(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed> {
        Ok(self.tables().revive(changed, now))
    }

    async fn matching(&self, filter: &Filter, after: Option<TimerId>, limit: usize) -> StoreResult<Vec<TimerId>> {
        let tables = self.tables();
        let behind = tables.matching(filter).filter(|timer| after.is_none_or(|after| timer.id() > after));
        Ok(behind.take(limit).map(Timer::id).collect())
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

    async fn metadata(&self, ids: &[TimerId], bytes_max: usize) -> StoreResult<Vec<Option<JsonText>>> {
        let tables = self.tables();
        let mut found = Vec::new();
        let mut bytes = 0;
        for id in ids {
            let metadata = tables.timers.get(id).and_then(|row| row.timer.definition.metadata.clone());
            bytes += metadata.as_ref().map_or(0, |metadata| metadata.as_str().len());
            if bytes > bytes_max && !found.is_empty() {
                break;
            }
            found.push(metadata);
        }
        Ok(found)
    }

    async fn attempts(&self, id: TimerId) -> StoreResult<Vec<Attempt>> {
        Ok(self.tables().timers.get(&id).map(|row| row.attempts.iter().cloned().collect()).unwrap_or_default())
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
