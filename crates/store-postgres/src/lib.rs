//! Timers in PostgreSQL, shared by any number of nodes.
//!
//! ```text
//!   create ──▶ batch: what is queued, one statement ─┐
//!   get, update, cancel, reopen, attempts, keys ─────┴─▶ callers' bulkhead ────┐
//!   list, count ───────────────────────────────────────▶ lists' bulkhead ──────┼─▶ PostgreSQL
//!   due, claim, settle, expired, purge ────────────────▶ scheduler's bulkhead ─┤
//!   heartbeat, acquire, release, leave ────────────────▶ ownership's bulkhead ─┤
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
mod claim;
mod conflict;
mod count;
mod create;
mod due;
mod expired;
mod failure;
mod membership;
mod migrate;
mod nudge;
mod open;
mod options;
mod ownership;
mod purge;
mod read;
mod rows;
mod search;
mod sessions;
mod settle;
#[doc(hidden)]
pub mod statements;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use domain::{AccessKey, AccessKeyId, Attempt, Metric, NewTimer, Shard, Span, Timer, TimerId, Timestamp};
use sqlx::postgres::PgConnectOptions;
use store::{
    Changed, Claim, Claimed, Cluster, Created, DueEntry, DueStore, Filter, HealthStore, HeartbeatReply, KeyStore, ListQuery,
    Member, MembershipStore, NodeId, Page, Settlement, ShardCursor, ShardLease, Sharded, StoreResult, TimerStore,
};

use crate::{
    create::Creates,
    nudge::{Inbox, Nudge, Sender},
    sessions::{Bulkhead, Lane, Planning},
};
pub use crate::{
    open::{Durability, OpenError},
    options::PostgresOptions,
};

/// Until the database says otherwise.
const SHARDS: u16 = 64;

const CALLERS: Lane = Lane {
    name: "callers",
    sessions_max: 4,
    statement_timeout: Duration::from_secs(4),
    deadline: Duration::from_secs(5),
    planning: Planning::Keyed,
};
const LISTS: Lane = Lane {
    name: "lists",
    sessions_max: 2,
    statement_timeout: Duration::from_secs(4),
    deadline: Duration::from_secs(8),
    planning: Planning::Ordered,
};
const SCHEDULER: Lane = Lane {
    name: "scheduler",
    sessions_max: 4,
    statement_timeout: Duration::from_secs(4),
    deadline: Duration::from_secs(5),
    planning: Planning::Keyed,
};
/// Shorter than a node's lease: a session that hangs must leave time for another try before the shards are lost.
const OWNERSHIP: Lane = Lane {
    name: "ownership",
    sessions_max: 2,
    statement_timeout: Duration::from_millis(1_500),
    deadline: Duration::from_secs(2),
    planning: Planning::Keyed,
};

/// No call waits for these, and a late one is worth nothing.
const NUDGES: Lane = Lane {
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
    scheduler: Bulkhead,
    ownership: Bulkhead,
    nudges: Bulkhead,
    inbox: Inbox,
    sender: Sender,
    creates: Creates,
    expired: expired::Search,
}

impl PostgresStore {
    /// Looks at the database and warns about settings that could lose timers. Must be called inside a Tokio runtime.
    pub async fn connect(options: &PostgresOptions) -> Result<Self, OpenError> {
        let options = options.connect_options()?;
        let found = open::look(&options).await?;
        let shards = Arc::new(AtomicU16::new(found.setup.map_or(SHARDS, |setup| setup.shards)));
        let callers = CALLERS.bulkhead(&options);
        Ok(Self {
            durability: found.durability,
            lists: LISTS.bulkhead(&options),
            scheduler: SCHEDULER.bulkhead(&options),
            ownership: OWNERSHIP.bulkhead(&options),
            nudges: NUDGES.bulkhead(&options.clone().options(NUDGES_SESSION)),
            inbox: Inbox::new(&options),
            sender: Sender::random(),
            creates: Creates::start(create::Statements { bulkhead: callers.clone(), shards: Arc::clone(&shards) }),
            expired: expired::Search::default(),
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

    /// Whether the server keeps what it acknowledges.
    pub const fn durability(&self) -> &Durability {
        &self.durability
    }

    /// Ends all sessions. Calls that come later fail.
    pub async fn close(&self) {
        tokio::join!(
            self.callers.close(),
            self.lists.close(),
            self.scheduler.close(),
            self.ownership.close(),
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
        "Sessions with PostgreSQL that broke or did not answer in time, by lane.",
    )
    .by(&[("lane", &["callers", "lists", "scheduler", "ownership", "nudges"])]),
    Metric::counter(
        "timer_postgres_nudges_unreadable_total",
        "Notifications on this database's channel that made no sense and were passed over.",
    ),
    Metric::counter("timer_postgres_contention_total", "Statements made again because others were in their way."),
];

#[async_trait]
impl TimerStore for PostgresStore {
    async fn create(&self, batch: Vec<NewTimer>) -> StoreResult<Vec<Created>> {
        self.creates.create(batch).await
    }

    async fn get(&self, id: TimerId) -> StoreResult<Option<Timer>> {
        let mut found = self.callers.run(read::Read::new(vec![id], self.shards())).await?;
        match found.remove(&id) {
            Some(Ok(met)) => Ok(Some(met.timer)),
            Some(Err(unreadable)) => Err(store::StoreError::Corrupt(domain::Cause::of(unreadable))),
            None => Ok(None),
        }
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        self.lists.run(search::List { query: query.clone(), shards: self.shards() }).await
    }

    async fn count(&self, filter: &Filter, budget: Duration) -> StoreResult<store::Count> {
        self.lists.run(count::Count { filter: filter.clone(), budget, shards: self.shards() }).await
    }

    async fn update(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed> {
        self.callers.run(change::Update { changed: changed.clone(), now, shards: self.shards() }).await
    }

    async fn cancel(&self, id: TimerId, now: Timestamp) -> StoreResult<Changed> {
        self.callers.run(change::Cancel { id, now, shards: self.shards() }).await
    }

    async fn cancel_all(&self, ids: &[TimerId], now: Timestamp) -> StoreResult<Vec<bool>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let canceled = self.callers.run(bulk::CancelAll::new(ids, now, self.shards())).await?;
        Ok(bulk::whether_canceled(ids, canceled))
    }

    async fn reopen(&self, id: TimerId, now: Timestamp) -> StoreResult<Changed> {
        self.callers.run(change::Reopen { id, now, shards: self.shards() }).await
    }

    async fn attempts(&self, id: TimerId) -> StoreResult<Vec<Attempt>> {
        self.callers.run(attempts::Attempts { id }).await
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
