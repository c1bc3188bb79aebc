//! Timers in PostgreSQL, shared by any number of nodes.
//!
//! ```text
//!   create ────────────────▶ batch: what is queued, ─┐
//!   get, update, cancel ───▶ one statement           ├─▶ callers' bulkhead ────┐
//!   pause, reopen, attempts, … ──────────────────────┘                         │
//!   list, count, statistics ───────────────────────────▶ lists' bulkhead ──────┼─▶ PostgreSQL
//!   bulk changes, operations ──────────────────────────▶ bulk's bulkhead ──────┤
//!   due, claim, settle, expired, purge ────────────────▶ scheduler's bulkhead ─┤
//!   heartbeat, acquire, release, leave ────────────────▶ ownership's bulkhead ─┤
//!   watermark, events, timers … ───────────────────────▶ events' bulkhead ─────┤
//!   nudge ─────────────────────────────────────────────▶ nudges' bulkhead ─────┘
//!   nudged ◀──────────────────────────────────────────── a session that listens
//! ```
//!
//! Each bulkhead has sessions of its own, so that no list and no flood of requests keeps a due timer waiting, and no flood of due
//! timers costs this node its shards. Every call is one or
//! a few statements over whole arrays; one statement is one commit. The statements run at READ COMMITTED and are
//! written for it: a row that another session holds is waited for, then looked at again as it is now. The database's clock alone
//! decides about leases.

mod access;
mod attempts;
mod bulk;
mod change;
mod change_all;
mod claim;
mod conflict;
mod connector;
mod create;
mod due;
mod events;
mod expired;
mod failure;
mod gather;
mod groups;
mod indexes;
mod membership;
mod migrate;
mod namespace_indexes;
mod nudge;
mod open;
mod open_error;
mod operation;
mod options;
mod ownership;
mod pause;
mod purge;
mod read;
mod rows;
mod search;
mod settle;
#[doc(hidden)]
pub mod statements;
mod stats;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use domain::{
    AccessKey, AccessKeyId, Attempt, Group, Metric, Missed, Namespace, NewTimer, Shard, Span, Timer, TimerId, Timestamp,
};
use sqlx::postgres::PgConnectOptions;
use store::{BulkAction, BulkChange, BulkItem, BulkOperation, BulkStore, Epoch, OperationId, OperationState, Progress};
use store::{
    Changed, Claim, Claimed, Cluster, Created, DueEntry, DueStore, EventPage, EventStore, Filter, GroupCount, HealthStore,
    HeartbeatReply, KeyStore, ListQuery, Member, MembershipStore, NodeId, Page, SCANS_MAX, Settlement, ShardCursor, ShardLease,
    Sharded, StoreResult, TimerStore, Watermark,
};
use store_sql::{Count, List};

use crate::{
    connector::{Bulkhead, BulkheadConfig, Planning},
    create::Creates,
    gather::Gathered,
    namespace_indexes::NamespaceIndexes,
    nudge::{Inbox, Nudge, Sender},
    search::Finder,
};
pub use crate::{open::Durability, open_error::OpenError, options::PostgresOptions};

/// Until the database says otherwise.
const SHARDS: u16 = 64;

const CALLERS: BulkheadConfig = BulkheadConfig {
    name: "callers",
    sessions_max: 4,
    statement_timeout: Duration::from_secs(4),
    deadline: Duration::from_secs(5),
    planning: Planning::Keyed,
};
const LISTS: BulkheadConfig = BulkheadConfig {
    name: "lists",
    sessions_max: SCANS_MAX,
    statement_timeout: Duration::from_secs(4),
    deadline: Duration::from_secs(8),
    planning: Planning::Ordered,
};
/// Bulk changes hold many rows for a while: they take no session from those that ask for one timer.
const BULK: BulkheadConfig = BulkheadConfig {
    name: "bulk",
    sessions_max: 2,
    statement_timeout: Duration::from_secs(8),
    deadline: Duration::from_secs(9),
    planning: Planning::Keyed,
};
const SCHEDULER: BulkheadConfig = BulkheadConfig {
    name: "scheduler",
    sessions_max: 4,
    statement_timeout: Duration::from_secs(4),
    deadline: Duration::from_secs(5),
    planning: Planning::Keyed,
};
/// Shorter than a node's lease: a session that hangs must leave time for another try before the shards are lost.
const OWNERSHIP: BulkheadConfig = BulkheadConfig {
    name: "ownership",
    sessions_max: 2,
    statement_timeout: Duration::from_millis(1_500),
    deadline: Duration::from_secs(2),
    planning: Planning::Keyed,
};

/// The bulkhead of streams of events. It is opened with the first of them.
const EVENTS: BulkheadConfig = BulkheadConfig {
    name: "events",
    sessions_max: 2,
    statement_timeout: Duration::from_secs(4),
    deadline: Duration::from_secs(5),
    planning: Planning::Keyed,
};

/// No call waits for these, and a late one is worth nothing.
const NUDGES: BulkheadConfig = BulkheadConfig {
    name: "nudges",
    sessions_max: 1,
    statement_timeout: Duration::from_millis(1_500),
    deadline: Duration::from_secs(2),
    planning: Planning::Keyed,
};
/// A notification makes its transaction one that commits, and with this it does not wait for the disk.
const NUDGES_SESSION: [(&str, &str); 1] = [("synchronous_commit", "off")];

/// A database that is shared with other nodes.
#[derive(Debug)]
pub struct PostgresStore {
    options: PgConnectOptions,
    durability: Durability,
    shards: Arc<AtomicU16>,
    callers: Bulkhead,
    lists: Bulkhead,
    bulk: Bulkhead,
    scheduler: Bulkhead,
    ownership: Bulkhead,
    events: Bulkhead,
    nudges: Bulkhead,
    inbox: Inbox,
    sender: Sender,
    creates: Creates,
    gathered: Gathered,
    expired: expired::Search,
    namespace_indexes: Arc<NamespaceIndexes>,
}

impl PostgresStore {
    /// Looks at the database and warns about settings that could lose timers. Must be called inside a Tokio runtime.
    pub async fn connect(options: &PostgresOptions) -> Result<Self, OpenError> {
        let options = options.connect_options()?;
        let found = open::look(&options).await?;
        let shards = Arc::new(AtomicU16::new(found.setup.map_or(SHARDS, |setup| setup.shards)));
        let callers = CALLERS.bulkhead(&options);
        let namespace_indexes = Arc::new(NamespaceIndexes::of(&options));
        Ok(Self {
            durability: found.durability,
            lists: LISTS.bulkhead(&options),
            bulk: BULK.bulkhead(&options),
            scheduler: SCHEDULER.bulkhead(&options),
            ownership: OWNERSHIP.bulkhead(&options),
            events: EVENTS.bulkhead(&options),
            nudges: NUDGES.bulkhead(&options.clone().options(NUDGES_SESSION)),
            inbox: Inbox::new(&options),
            sender: Sender::random(),
            creates: Creates::start(create::Statements {
                bulkhead: callers.clone(),
                shards: Arc::clone(&shards),
                namespace_indexes: Arc::clone(&namespace_indexes),
            }),
            gathered: Gathered::start(&callers, &shards),
            expired: expired::Search::default(),
            namespace_indexes,
            options,
            shards,
            callers,
        })
    }

    /// Sets an empty database up, or brings an older one up to date. Harmless when there is nothing to do, and when several
    /// processes do it at once.
    pub async fn migrate(&self) -> Result<(), OpenError> {
        let setup = migrate::migrate(&self.options).await?;
        self.shards.store(setup.shards, Ordering::Relaxed);
        Ok(())
    }

    fn finder(&self) -> Finder {
        Finder { shards: self.shards(), namespace_indexes: Arc::clone(&self.namespace_indexes) }
    }

    /// Whether the server keeps what it acknowledges.
    pub const fn durability(&self) -> &Durability {
        &self.durability
    }

    /// Ends all sessions. Calls that come later fail.
    pub async fn close(&self) {
        tokio::join!(
            self.callers.close(),
            self.lists.close(),
            self.bulk.close(),
            self.scheduler.close(),
            self.ownership.close(),
            self.events.close(),
            self.nudges.close(),
            self.inbox.close()
        );
    }
}

/// The metrics of this crate.
pub const METRICS: &[Metric] = &[
    Metric::histogram("timer_postgres_create_batch_timers", "Timers written by one statement."),
    Metric::counter(
        "timer_postgres_sessions_discarded_total",
        "Sessions with PostgreSQL that broke or did not answer in time, by bulkhead.",
    )
    .by(&[("lane", &["callers", "lists", "bulk", "scheduler", "ownership", "events", "nudges"])]),
    Metric::counter(
        "timer_postgres_nudges_unreadable_total",
        "Notifications on this database's channel that made no sense and were passed over.",
    ),
    Metric::counter("timer_postgres_contention_total", "Statements made again because of contention with other transactions."),
];

#[async_trait]
impl TimerStore for PostgresStore {
    async fn create(&self, batch: Vec<NewTimer>) -> StoreResult<Vec<Created>> {
        self.creates.create(batch).await
    }

    async fn get(&self, id: TimerId) -> StoreResult<Option<Timer>> {
        self.gathered.get(id).await
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        self.lists.run(List { finder: self.finder(), query: query.clone() }).await
    }

    async fn count(&self, filter: &Filter, budget: Duration) -> StoreResult<store::Count> {
        self.lists.run(Count { finder: self.finder(), filter: filter.clone(), budget }).await
    }

    async fn update(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed> {
        self.gathered.update(changed.clone(), now).await
    }

    async fn cancel(&self, id: TimerId, expected: Option<u32>, now: Timestamp) -> StoreResult<Changed> {
        match expected {
            None => self.gathered.cancel(id, now).await,
            Some(revision) => {
                let cancel = change::Cancel { id, now, shards: self.shards() };
                self.callers.run(change::CancelRevision { cancel, revision }).await
            }
        }
    }

    async fn cancel_all(&self, ids: &[TimerId], now: Timestamp) -> StoreResult<Vec<bool>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let canceled = self.callers.run(bulk::CancelAll::new(ids, now, self.shards())).await?;
        Ok(bulk::whether_canceled(ids, canceled))
    }

    async fn reopen(&self, id: TimerId, expected: Option<u32>, now: Timestamp) -> StoreResult<Changed> {
        self.callers.run(change::Reopen { id, expected, now, shards: self.shards() }).await
    }

    async fn revive(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed> {
        self.callers.run(change::Revive { changed: changed.clone(), now, shards: self.shards() }).await
    }

    async fn count_group(&self, namespace: &Namespace, group: &Group) -> StoreResult<GroupCount> {
        let (namespace, group) = (namespace.clone(), group.clone());
        self.lists.run(groups::CountGroup { namespace, group, shards: self.shards() }).await
    }

    async fn group_members(
        &self,
        namespace: &Namespace,
        group: &Group,
        after: Option<TimerId>,
        limit: usize,
    ) -> StoreResult<Vec<TimerId>> {
        let (namespace, group) = (namespace.clone(), group.clone());
        self.lists.run(groups::GroupMembers { namespace, group, after, limit }).await
    }

    async fn pause(&self, id: TimerId, expected: Option<u32>, note: Option<&str>, now: Timestamp) -> StoreResult<Changed> {
        let note = note.map(str::to_owned);
        self.callers.run(pause::Pause { id, expected, note, now, shards: self.shards() }).await
    }

    async fn resume(&self, id: TimerId, expected: Option<u32>, missed: Missed, now: Timestamp) -> StoreResult<Changed> {
        self.callers.run(pause::Resume { id, expected, missed, now, shards: self.shards() }).await
    }

    async fn attempts(&self, id: TimerId) -> StoreResult<Vec<Attempt>> {
        self.callers.run(attempts::Attempts { id }).await
    }
}

#[async_trait]
impl BulkStore for PostgresStore {
    async fn change_all(
        &self,
        action: &BulkAction,
        items: &[BulkItem],
        progress: Option<&Progress>,
        now: Timestamp,
    ) -> StoreResult<Option<Vec<BulkChange>>> {
        let (items, progress, shards) = (items.to_vec(), progress.copied(), self.shards());
        self.bulk.run(change_all::ChangeAll { action: action.clone(), items, progress, now, shards }).await
    }

    async fn add_operation(&self, operation: &BulkOperation, running_max: usize) -> StoreResult<bool> {
        self.callers.run(operation::AddOperation { operation: operation.clone(), running_max }).await
    }

    async fn operation(&self, id: OperationId) -> StoreResult<Option<BulkOperation>> {
        let mut found = self.callers.run(operation::Operations { id: Some(id), before: None, limit: 1 }).await?;
        Ok(found.pop())
    }

    async fn operations(&self, before: Option<OperationId>, limit: usize) -> StoreResult<Vec<BulkOperation>> {
        self.callers.run(operation::Operations { id: None, before, limit }).await
    }

    async fn take_operation(&self, lease: Span) -> StoreResult<Option<BulkOperation>> {
        self.bulk.run(operation::TakeOperation(lease)).await
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
        self.callers.run(operation::FinishOperation { id, epoch, state, error, now }).await
    }

    async fn purge_operations(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        self.bulk.run(operation::PurgeOperations { before, limit }).await
    }
}

#[async_trait]
impl DueStore for PostgresStore {
    async fn due(&self, from: &[ShardCursor], until: Timestamp, limit: usize) -> StoreResult<Vec<DueEntry>> {
        self.scheduler.run(due::Due::new(from, until, limit)).await
    }

    async fn claim(&self, claim: &Claim, entries: &[DueEntry]) -> StoreResult<Vec<Claimed>> {
        claim::claim(&self.scheduler, claim, entries, self.shards()).await
    }

    async fn settle(&self, batch: &[Settlement]) -> StoreResult<Vec<bool>> {
        settle::settle(&self.scheduler, self.shards(), batch).await
    }

    async fn expired_claims(&self, shard_leases: &[ShardLease], limit: usize) -> StoreResult<Vec<Claimed>> {
        self.expired.find(&self.scheduler, shard_leases, limit).await
    }

    async fn purge(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        self.scheduler.run(purge::Purge { before, limit: i64::try_from(limit).unwrap_or(i64::MAX) }).await
    }
}

#[async_trait]
impl EventStore for PostgresStore {
    async fn watermark(&self) -> StoreResult<Watermark> {
        self.events.run(events::ReadWatermark).await
    }

    async fn events(&self, after: Timestamp, until: Timestamp, limit: usize) -> StoreResult<EventPage> {
        self.events.run(events::Events { after, until, limit }).await
    }

    async fn timers(&self, ids: &[TimerId]) -> StoreResult<Vec<Timer>> {
        let found = self.events.run(read::Read::new(ids.to_vec(), self.shards())).await?;
        let readable = |(id, existing): (TimerId, Result<_, store::Unreadable>)| match existing {
            Ok(store_sql::ExistingTimer { timer, .. }) => Some(timer),
            Err(error) => {
                tracing::warn!(timer.id = %id, %error, "a stored timer cannot be shown in an event");
                None
            }
        };
        Ok(found.into_iter().filter_map(readable).collect())
    }

    async fn attempts_at(&self, of: &[(TimerId, i64)]) -> StoreResult<Vec<Option<Attempt>>> {
        if of.is_empty() {
            return Ok(Vec::new());
        }
        self.events.run(events::AttemptsAt::new(of)).await
    }

    async fn forget_events(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        self.events.run(events::Forget { before, limit }).await
    }
}

#[async_trait]
impl KeyStore for PostgresStore {
    async fn add_key(&self, key: &AccessKey) -> StoreResult<bool> {
        self.callers.run(access::AddKey(key.clone())).await
    }

    async fn keys(&self) -> StoreResult<Vec<AccessKey>> {
        self.callers.run(access::Keys).await
    }

    async fn revoke_key(&self, id: AccessKeyId, now: Timestamp) -> StoreResult<bool> {
        self.callers.run(access::RevokeKey { id, now }).await
    }
}

#[async_trait]
impl MembershipStore for PostgresStore {
    async fn heartbeat(&self, member: &Member, lease: Span) -> StoreResult<HeartbeatReply> {
        self.ownership.run(membership::Heartbeat { member: member.clone(), lease }).await
    }

    async fn acquire(&self, node: NodeId, shards: &[Shard]) -> StoreResult<Vec<ShardLease>> {
        self.ownership.run(ownership::Acquire::new(node, shards)).await
    }

    async fn release(&self, node: NodeId, shard_leases: &[ShardLease]) -> StoreResult<()> {
        self.ownership.run(ownership::Release::new(node, shard_leases)).await
    }

    async fn leave(&self, node: NodeId) -> StoreResult<()> {
        self.ownership.run(ownership::Leave(node)).await
    }

    async fn nudge(&self, entries: &[DueEntry]) -> StoreResult<()> {
        if entries.is_empty() {
            return Ok(());
        }
        self.nudges.run(Nudge::new(self.sender, entries)).await
    }

    async fn nudged(&self) -> StoreResult<Vec<DueEntry>> {
        self.inbox.next(self.sender).await
    }
}

#[async_trait]
impl HealthStore for PostgresStore {
    async fn ping(&self) -> StoreResult<()> {
        self.callers.run(read::Ping).await
    }

    async fn probe(&self) -> StoreResult<()> {
        self.callers.run(read::Probe).await
    }

    async fn cluster(&self) -> StoreResult<Cluster> {
        self.callers.run(membership::Look).await
    }
}

impl Sharded for PostgresStore {
    fn shards(&self) -> u16 {
        self.shards.load(Ordering::Relaxed)
    }
}
