//! The contract as a program: one lock, one map, nothing clever. What it answers is what every store must answer.
//!
//! It keeps nothing when the process ends, so it serves tests: as the measure for the real stores, and as the store under
//! everything that is tested without a database.

mod ownership;
mod row;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use async_trait::async_trait;
use domain::{
    AccessKey, AccessKeyId, Attempt, Cause, Clock, Event, JsonText, NewTimer, Resolution, Shard, Span, Timer, TimerId, Timestamp,
    resolve,
};

use tokio::sync::broadcast::{self, error::RecvError};

use self::{ownership::Ownership, row::Row};
use store::{
    Changed, Claim, Claimed, Cluster, Count, Created, Cursor, DueEntry, DueStore, Filter, HealthStore, HeartbeatReply, KeyStore,
    ListQuery, Member, MembershipStore, NodeId, Order, Page, Settlement, ShardCursor, ShardLease, Sharded, StoreError,
    StoreResult, Summary, TimerStore,
};

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

#[derive(Default)]
struct Tables {
    timers: BTreeMap<TimerId, Row>,
    ownership: Ownership,
    keys: Vec<AccessKey>,
}

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

impl Tables {
    fn create(&mut self, new: NewTimer) -> Created {
        let NewTimer { definition, execute_at, on_conflict, created_at } = new;
        let id = definition.id;
        let Some(row) = self.timers.get_mut(&id) else {
            let row = Row::new(definition, execute_at, created_at);
            let timer = row.timer.clone();
            self.timers.insert(id, row);
            return Created::Created(timer);
        };
        let existing = &row.timer.definition;
        match resolve(on_conflict, row.timer.status, existing.content(), definition.content()) {
            Resolution::Existing => return Created::Existing(row.timer.clone()),
            Resolution::Conflict => return Created::Conflict(row.timer.clone()),
            Resolution::Overwrite => row.change(definition, execute_at, created_at),
            Resolution::Move => {
                let moved = domain::Definition { asked: definition.asked, ..existing.clone() };
                row.change(moved, execute_at, created_at);
            }
            Resolution::Revive => {
                let (revision, attempts) = (row.timer.revision + 1, std::mem::take(&mut row.attempts));
                *row = Row::new(definition, execute_at, created_at);
                row.timer.revision = revision;
                row.attempts = attempts;
            }
        }
        Created::Replaced(row.timer.clone())
    }

    fn update(&mut self, changed: &Timer, now: Timestamp) -> Changed {
        let Some(row) = self.timers.get_mut(&changed.id()) else {
            return Changed::NotFound;
        };
        if row.timer.status.after(Event::Update).is_none() {
            return Changed::WrongStatus(row.timer.clone());
        }
        if row.timer.revision != changed.revision {
            return Changed::StaleRevision;
        }
        row.update(changed.definition.clone(), changed.execute_at, now);
        Changed::Done(row.timer.clone())
    }

    fn cancel(&mut self, id: TimerId, now: Timestamp) -> Changed {
        let Some(row) = self.timers.get_mut(&id) else {
            return Changed::NotFound;
        };
        let Some(canceled) = row.timer.status.after(Event::Cancel) else {
            return Changed::WrongStatus(row.timer.clone());
        };
        row.timer.status = canceled;
        row.timer.updated_at = now;
        Changed::Done(row.timer.clone())
    }

    fn reopen(&mut self, id: TimerId, now: Timestamp) -> Changed {
        let Some(row) = self.timers.get_mut(&id) else {
            return Changed::NotFound;
        };
        let Some(pending) = row.timer.status.after(Event::Reopen) else {
            return Changed::WrongStatus(row.timer.clone());
        };
        row.timer.status = pending;
        row.reopen(now);
        Changed::Done(row.timer.clone())
    }

    fn matching(&self, filter: &Filter) -> impl Iterator<Item = &Timer> {
        self.timers.values().map(|row| &row.timer).filter(|timer| {
            filter.status.is_none_or(|status| timer.status == status)
                && filter.namespace.as_ref().is_none_or(|namespace| timer.definition.namespace == *namespace)
                && filter.key_prefix.as_deref().is_none_or(|prefix| has_prefix(timer, prefix))
        })
    }

    fn list(&self, query: &ListQuery) -> Page {
        let place = |cursor: Cursor| (cursor.at, cursor.id);
        let mut all: Vec<Summary> = self.matching(&query.filter).map(summary).collect();
        all.sort_by_key(|summary| place(summary.cursor(query.sort)));
        if query.order == Order::Descending {
            all.reverse();
        }
        let is_after = |summary: &Summary| {
            query.after.is_none_or(|after| match query.order {
                Order::Ascending => place(summary.cursor(query.sort)) > place(after),
                Order::Descending => place(summary.cursor(query.sort)) < place(after),
            })
        };
        let offset = usize::try_from(query.offset).unwrap_or(usize::MAX);
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let mut rest = all.into_iter().filter(is_after).skip(offset);
        let timers: Vec<Summary> = rest.by_ref().take(limit).collect();
        let next = timers.last().map(|last| last.cursor(query.sort)).filter(|_| rest.next().is_some());
        Page { timers, next }
    }

    fn due(&self, from: ShardCursor, until: Timestamp, limit: usize, shards: u16) -> Vec<DueEntry> {
        let mut entries: Vec<DueEntry> = self
            .timers
            .values()
            .filter(|row| row.timer.status == domain::Status::Pending && row.timer.id().shard(shards) == from.shard)
            .map(Row::entry)
            .filter(|entry| entry.at <= until && from.after.is_none_or(|after| (entry.at, entry.id) > after))
            .collect();
        entries.sort_unstable();
        entries.truncate(limit);
        entries
    }

    fn claim(&mut self, claim: &Claim, entry: DueEntry, shard: Shard, now: Timestamp) -> Option<Claimed> {
        let shard_lease = *claim.shard_leases.iter().find(|shard_lease| shard_lease.shard == shard)?;
        let is_current = self.ownership.is_current(shard_lease);
        let row = self.timers.get_mut(&entry.id).filter(|row| row.at == entry.at)?;
        ((is_current || row.held.is_some()) && row.claim(claim, shard_lease, now)).then(|| row.claimed(shard_lease)).flatten()
    }

    fn settle(&mut self, settlement: &Settlement) -> bool {
        let is_current = self.ownership.is_current(settlement.shard_lease);
        let Some(row) = self.timers.get_mut(&settlement.entry.id) else { return false };
        (is_current || row.is_claimed_under(settlement.shard_lease)) && row.settle(settlement)
    }

    fn expired_claims(&self, shard_leases: &[ShardLease], limit: usize, shards: u16, now: Timestamp) -> Vec<Claimed> {
        let expired = |row: &Row| {
            let shard = row.timer.id().shard(shards);
            let shard_lease = *shard_leases
                .iter()
                .find(|shard_lease| shard_lease.shard == shard && self.ownership.is_current(**shard_lease))?;
            let is_abandoned = |held: row::Held| {
                let claimed_under = ShardLease { shard, epoch: held.epoch };
                let is_its_own = held.epoch == shard_lease.epoch || self.ownership.is_alive_who_held(claimed_under, now);
                held.lease_until <= now || !is_its_own
            };
            row.held.is_some_and(is_abandoned).then(|| row.claimed(shard_lease)).flatten()
        };
        self.timers.values().filter_map(expired).take(limit).collect()
    }

    fn purge(&mut self, before: Timestamp, limit: usize) -> usize {
        let mut finished: Vec<_> = self
            .timers
            .values()
            .filter(|row| row.timer.status.is_finished() && row.timer.updated_at < before)
            .map(|row| (row.timer.updated_at, row.timer.id()))
            .collect();
        finished.sort_unstable();
        finished.truncate(limit);
        for (_, id) in &finished {
            self.timers.remove(id);
        }
        finished.len()
    }
}

fn has_prefix(timer: &Timer, prefix: &str) -> bool {
    timer.definition.key.as_ref().is_some_and(|key| key.as_str().starts_with(prefix))
}

fn summary(timer: &Timer) -> Summary {
    Summary {
        id: timer.id(),
        namespace: timer.definition.namespace.clone(),
        key: timer.definition.key.clone(),
        callback_kind: timer.definition.callback.kind().to_owned(),
        correlation_id: timer.definition.correlation_id.clone(),
        execute_at: timer.execute_at,
        status: timer.status,
        attempt: timer.attempt,
        last_error: timer.last_error.clone(),
        executed_at: timer.executed_at,
        created_at: timer.created_at,
        updated_at: timer.updated_at,
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

    async fn matching(&self, filter: &Filter, after: Option<TimerId>, limit: usize) -> StoreResult<Vec<TimerId>> {
        let tables = self.tables();
        let behind = tables.matching(filter).filter(|timer| after.is_none_or(|after| timer.id() > after));
        Ok(behind.take(limit).map(Timer::id).collect())
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
