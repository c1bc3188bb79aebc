//! The store in one SQLite file: nothing to install, nothing to run beside it.
//!
//! ```text
//!   create, claim, settle … ─▶ queue ─▶ writer ── one commit for all that waited ──▶ file
//!   due, expired claims     ─▶ readers of the scheduler ───────────────────────────▶  │
//!   get, list, count …      ─▶ readers of callers ─────────────────────────────────▶  │
//!                               checkpoint thread ── log into database ────────────▶  ▼
//! ```
//!
//! Writing is one thread's work, so that every commit carries all that has gathered and no request waits for a lock.
//! An answer means that the commit is on disk. One process at a time may have the file open, so that who lives is known in memory
//! alone.

mod access;
mod attempts;
mod backup;
mod bulk;
mod change;
mod checkpoint;
mod claim;
mod connection;
mod create;
mod default_index;
mod due;
mod events;
mod failure;
mod files;
mod groups;
mod journal;
mod lock;
mod metrics;
mod migrate;
mod open;
mod open_error;
mod operation;
mod ownership;
mod pause;
mod presence;
mod probe;
mod purge;
mod read;
mod readers;
mod restore;
mod rows;
mod search;
mod settle;
mod stamp;
mod statements;
mod stats;
mod step;
mod tally;
#[cfg(test)]
mod tests;
mod writer;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use async_trait::async_trait;
use domain::{
    AccessKey, AccessKeyId, Attempt, Clock, Group, Missed, Namespace, NewTimer, Shard, Span, Timer, TimerId, Timestamp,
};
use rusqlite::Connection;
use store::{BulkAction, BulkChange, BulkItem, BulkOperation, BulkStore, Epoch, OperationId, OperationState, Progress};
use store::{
    Changed, Claim, Claimed, Cluster, Count, Created, DueEntry, DueStore, EventPage, EventStore, Filter, GroupCount, HealthStore,
    HeartbeatReply, KeyStore, ListQuery, Member, MembershipStore, NodeId, Page, SCANS_MAX, Settlement, ShardCursor, ShardLease,
    Sharded, StoreError, StoreResult, TimerStore, Watermark,
};
use tokio::sync::Semaphore;

use crate::{
    access::{AddKey, RevokeKey},
    bulk::CancelAll,
    change::{Cancel, Reopen, Update},
    checkpoint::Limits,
    claim::{Take, Taken},
    connection::Role,
    create::{Create, Revive},
    failure::Failure,
    lock::Lock,
    open::Opened,
    operation::{AddOperation, ChangeAll, FinishOperation, PurgeOperations, TakeOperation},
    ownership::{Acquire, Leave, Nodes, Release},
    pause::{Pause, Resume},
    presence::Presence,
    probe::Probe,
    purge::Purge,
    readers::{Readers, StartError},
    settle::Settle,
    writer::Writer,
};

pub use backup::{BackupError, backup};
pub use metrics::METRICS;
pub use open_error::OpenError;
pub use presence::NOT_IN_PLACE;
pub use restore::{RestoreError, restore};

const SCHEDULER_READERS: usize = 2;
/// Lists and counts can take long; one reader is always left for requests for a single timer.
const CALLER_READERS: usize = SCANS_MAX + 1;

/// An open database. Dropping it finishes what is queued and gives the file back.
pub struct SqliteStore {
    // Fields are dropped in this order: the readers first, so that the writer's last checkpoint meets no reader, and
    // the lock once nothing has the file open any more.
    for_scheduler: Readers,
    for_callers: Readers,
    scans: Arc<Semaphore>,
    writer: Writer,
    _checkpoint: Joined,
    clock: Arc<dyn Clock>,
    nodes: Nodes,
    path: PathBuf,
    presence: Arc<Presence>,
    /// Whether it was built, or has to wait for the next start.
    has_default_index: AtomicBool,
    _lock: Lock,
}

/// A thread that is waited for.
struct Joined(Option<JoinHandle<()>>);

impl Drop for Joined {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take()
            && thread.join().is_err()
        {
            tracing::error!("a SQLite thread ended by a panic");
        }
    }
}

impl SqliteStore {
    /// Opens the database at `path`, or sets one up where nothing is. `clock` is the database's clock.
    pub fn open(path: impl AsRef<Path>, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let Opened { path, writer, commit, lock, has_default_index } = open::open(path.as_ref(), clock.now())?;
        let refused = |cause: rusqlite::Error| OpenError::refused(&path, &cause);
        let failed = |cause: std::io::Error| OpenError::Failed { path: path.clone(), cause: cause.to_string() };
        let not_started = |error: StartError| match error {
            StartError::Sqlite(cause) => refused(cause),
            StartError::Thread(cause) => failed(cause),
        };
        let presence = Arc::new(lock.presence(&path, commit).map_err(failed)?);
        let checkpointer = connection::open(&path, Role::Checkpointer).map_err(refused)?;
        let (log, checkpoint) = checkpoint::start(checkpointer, Limits::default()).map_err(failed)?;
        Ok(Self {
            for_scheduler: Readers::start(&path, "due", SCHEDULER_READERS).map_err(not_started)?,
            for_callers: Readers::start(&path, "read", CALLER_READERS).map_err(not_started)?,
            scans: Arc::new(Semaphore::new(SCANS_MAX)),
            writer: Writer::start(writer, commit, log, Arc::clone(&presence), Arc::clone(&clock)).map_err(failed)?,
            _checkpoint: Joined(Some(checkpoint)),
            clock,
            nodes: Nodes::default(),
            path: path.clone(),
            presence,
            has_default_index: AtomicBool::new(has_default_index),
            _lock: lock,
        })
    }
}

#[async_trait]
impl TimerStore for SqliteStore {
    async fn create(&self, batch: Vec<NewTimer>) -> StoreResult<Vec<Created>> {
        let is_other = |new: &NewTimer| new.definition.namespace.as_str() != Namespace::DEFAULT;
        if !self.has_default_index.load(Ordering::Relaxed) && batch.iter().any(is_other) {
            self.writer.write(default_index::Build).await?;
            self.has_default_index.store(true, Ordering::Relaxed);
        }
        let (work, done) = self.writer.write(Create::new(batch)).await?;
        Ok(work.answer(done))
    }

    async fn get(&self, id: TimerId) -> StoreResult<Option<Timer>> {
        self.for_callers.read(move |connection| read::get(connection, id)).await
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        let query = query.clone();
        self.scan(move |connection| search::list(connection, &query)).await
    }

    async fn count(&self, filter: &Filter, budget: Duration) -> StoreResult<Count> {
        let filter = filter.clone();
        self.scan(move |connection| search::count(connection, &filter, budget)).await
    }

    async fn update(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed> {
        Ok(self.writer.write(Update::new(changed, now)).await?.1)
    }

    async fn cancel(&self, id: TimerId, expected: Option<u32>, now: Timestamp) -> StoreResult<Changed> {
        Ok(self.writer.write(Cancel { id, expected, now }).await?.1)
    }

    async fn cancel_all(&self, ids: &[TimerId], now: Timestamp) -> StoreResult<Vec<bool>> {
        Ok(self.writer.write(CancelAll { ids: ids.to_vec(), now }).await?.1)
    }

    async fn reopen(&self, id: TimerId, expected: Option<u32>, now: Timestamp) -> StoreResult<Changed> {
        Ok(self.writer.write(Reopen { id, expected, now }).await?.1)
    }

    async fn revive(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed> {
        Ok(self.writer.write(Revive::new(changed, now)).await?.1)
    }

    async fn count_group(&self, namespace: &Namespace, group: &Group) -> StoreResult<GroupCount> {
        let (namespace, group) = (namespace.clone(), group.clone());
        self.scan(move |connection| groups::count(connection, &namespace, &group)).await
    }

    async fn group_members(
        &self,
        namespace: &Namespace,
        group: &Group,
        after: Option<TimerId>,
        limit: usize,
    ) -> StoreResult<Vec<TimerId>> {
        let (namespace, group) = (namespace.clone(), group.clone());
        self.scan(move |connection| groups::members(connection, &namespace, &group, after, limit)).await
    }

    async fn pause(&self, id: TimerId, expected: Option<u32>, note: Option<&str>, now: Timestamp) -> StoreResult<Changed> {
        Ok(self.writer.write(Pause { id, expected, note: note.map(str::to_owned), now }).await?.1)
    }

    async fn resume(&self, id: TimerId, expected: Option<u32>, missed: Missed, now: Timestamp) -> StoreResult<Changed> {
        Ok(self.writer.write(Resume { id, expected, missed, now }).await?.1)
    }

    async fn attempts(&self, id: TimerId) -> StoreResult<Vec<Attempt>> {
        self.for_callers.read(move |connection| attempts::attempts(connection, id)).await
    }
}

#[async_trait]
impl BulkStore for SqliteStore {
    async fn change_all(
        &self,
        action: &BulkAction,
        items: &[BulkItem],
        progress: Option<&Progress>,
        now: Timestamp,
    ) -> StoreResult<Option<Vec<BulkChange>>> {
        let (items, progress, clock) = (items.to_vec(), progress.copied(), self.clock.now());
        Ok(self.writer.write(ChangeAll { action: action.clone(), items, progress, now, clock }).await?.1)
    }

    async fn add_operation(&self, operation: &BulkOperation, running_max: usize) -> StoreResult<bool> {
        Ok(self.writer.write(AddOperation { operation: operation.clone(), running_max }).await?.1)
    }

    async fn operation(&self, id: OperationId) -> StoreResult<Option<BulkOperation>> {
        self.for_callers.read(move |connection| operation::operation(connection, id)).await
    }

    async fn operations(&self, before: Option<OperationId>, limit: usize) -> StoreResult<Vec<BulkOperation>> {
        self.for_callers.read(move |connection| operation::operations(connection, before, limit)).await
    }

    async fn take_operation(&self, lease: Span) -> StoreResult<Option<BulkOperation>> {
        self.writer.write(TakeOperation { lease, clock: self.clock.now() }).await?.1.transpose()
    }

    async fn finish_operation(
        &self,
        id: OperationId,
        epoch: Option<Epoch>,
        state: OperationState,
        error: Option<&str>,
        now: Timestamp,
    ) -> StoreResult<bool> {
        let error = error.map(str::to_owned);
        Ok(self.writer.write(FinishOperation { id, epoch, state, error, now }).await?.1)
    }

    async fn purge_operations(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        Ok(self.writer.write(PurgeOperations { before, limit }).await?.1)
    }
}

#[async_trait]
impl DueStore for SqliteStore {
    async fn due(&self, from: &[ShardCursor], until: Timestamp, limit: usize) -> StoreResult<Vec<DueEntry>> {
        let from = from.to_vec();
        self.for_scheduler.read(move |connection| due::due(connection, &from, until, limit)).await
    }

    async fn claim(&self, claim: &Claim, entries: &[DueEntry]) -> StoreResult<Vec<Claimed>> {
        let take = Take { claim: claim.clone(), entries: entries.to_vec(), now: self.clock.now() };
        let (_, taken) = self.writer.write(take).await?;
        Ok(taken.into_iter().map(Taken::into_claimed).collect())
    }

    async fn settle(&self, batch: &[Settlement]) -> StoreResult<Vec<bool>> {
        Ok(self.writer.write(Settle { batch: batch.to_vec() }).await?.1)
    }

    async fn expired_claims(&self, shard_leases: &[ShardLease], limit: usize) -> StoreResult<Vec<Claimed>> {
        let (shard_leases, nodes, now) = (shard_leases.to_vec(), self.nodes.clone(), self.clock.now());
        let expired =
            self.for_scheduler.read(move |connection| claim::expired(connection, &shard_leases, &nodes, now, limit)).await?;
        Ok(expired.into_iter().map(Taken::into_claimed).collect())
    }

    async fn purge(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        Ok(self.writer.write(Purge { before, limit }).await?.1)
    }
}

#[async_trait]
impl EventStore for SqliteStore {
    async fn watermark(&self) -> StoreResult<Watermark> {
        Ok(self.writer.watermark(self.clock.as_ref()))
    }

    async fn events(&self, after: Timestamp, until: Timestamp, limit: usize) -> StoreResult<EventPage> {
        self.for_callers.read(move |connection| events::events(connection, after, until, limit)).await
    }

    async fn timers(&self, ids: &[TimerId]) -> StoreResult<Vec<Timer>> {
        let ids = ids.to_vec();
        self.for_callers.read(move |connection| events::timers(connection, &ids)).await
    }

    async fn attempts_at(&self, of: &[(TimerId, i64)]) -> StoreResult<Vec<Option<Attempt>>> {
        let of = of.to_vec();
        self.for_callers.read(move |connection| events::attempts_at(connection, &of)).await
    }

    async fn forget_events(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        Ok(self.writer.write(events::Forget { before, limit }).await?.1)
    }
}

#[async_trait]
impl KeyStore for SqliteStore {
    async fn add_key(&self, key: &AccessKey) -> StoreResult<bool> {
        Ok(self.writer.write(AddKey { key: key.clone() }).await?.1)
    }

    async fn keys(&self) -> StoreResult<Vec<AccessKey>> {
        self.for_callers.read(access::keys).await
    }

    async fn revoke_key(&self, id: AccessKeyId, now: Timestamp) -> StoreResult<bool> {
        Ok(self.writer.write(RevokeKey { id, now }).await?.1)
    }
}

#[async_trait]
impl MembershipStore for SqliteStore {
    async fn heartbeat(&self, member: &Member, lease: Span) -> StoreResult<HeartbeatReply> {
        let (node, now, presence) = (member.node, self.clock.now(), Arc::clone(&self.presence));
        // No node lives if the file cannot be read, or is not the one that the next start will find.
        let held = self
            .for_scheduler
            .read(move |connection| {
                presence.check()?;
                ownership::held(connection, node)
            })
            .await?;
        Ok(HeartbeatReply { now, members: self.nodes.heartbeat(member, now, lease), held })
    }

    async fn acquire(&self, node: NodeId, shards: &[Shard]) -> StoreResult<Vec<ShardLease>> {
        let acquire = Acquire { node, shards: shards.to_vec(), now: self.clock.now(), nodes: self.nodes.clone() };
        Ok(self.writer.write(acquire).await?.1)
    }

    async fn release(&self, node: NodeId, shard_leases: &[ShardLease]) -> StoreResult<()> {
        self.writer.write(Release { node, shard_leases: shard_leases.to_vec() }).await?;
        Ok(())
    }

    async fn leave(&self, node: NodeId) -> StoreResult<()> {
        self.writer.write(Leave { node, nodes: self.nodes.clone() }).await?;
        Ok(())
    }

    async fn nudge(&self, _entries: &[DueEntry]) -> StoreResult<()> {
        Ok(())
    }

    async fn nudged(&self) -> StoreResult<Vec<DueEntry>> {
        std::future::pending().await
    }
}

#[async_trait]
impl HealthStore for SqliteStore {
    async fn ping(&self) -> StoreResult<()> {
        let presence = Arc::clone(&self.presence);
        self.for_scheduler
            .read(move |connection| {
                presence.check()?;
                ownership::look(connection)
            })
            .await
    }

    async fn probe(&self) -> StoreResult<()> {
        self.writer.write(Probe { database: self.path.clone() }).await?;
        Ok(())
    }

    async fn cluster(&self) -> StoreResult<Cluster> {
        let (nodes, now) = (self.nodes.clone(), self.clock.now());
        self.for_callers.read(move |connection| ownership::cluster(connection, &nodes, now)).await
    }
}

impl Sharded for SqliteStore {
    fn shards(&self) -> u16 {
        migrate::SHARDS
    }

    fn has_one_writer(&self) -> bool {
        true
    }
}

impl SqliteStore {
    /// How many transactions have been committed: far fewer than calls, when many are made at once.
    pub fn commits(&self) -> u64 {
        self.writer.commits()
    }

    /// A read that can take long. It has its permit until the reader is done, also when the client no longer waits.
    async fn scan<T, F>(&self, query: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        let closing = |_| StoreError::Unavailable("the store is closing".into());
        let permit = Arc::clone(&self.scans).acquire_owned().await.map_err(closing)?;
        self.for_callers
            .read(move |connection| {
                let _until_done = permit;
                query(connection)
            })
            .await
    }
}
