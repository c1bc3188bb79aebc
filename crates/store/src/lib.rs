//! What every database must promise, so that nothing above needs to know which one it is.
//!
//! ```text
//!   what                 when                      what happened
//!   definition ──┬────── due (shard, minute, id) ─────▶ outcome
//!                │        unclaimed = pending           completed,
//!                │        claimed   = executing         failed, canceled
//!                └─ changed only by an update
//! ```
//!
//! A timer is in `due` from its creation to its end, then in `outcome`: where it stands is its status.
//! The contract is [`Store`]; `store-conformance` holds every implementation to it.

mod calls;
mod claim;
mod decorator;
mod error;
mod measured;
mod membership;
mod operation;
mod query;
mod stored;
mod writable;

use async_trait::async_trait;
use domain::{AccessKey, AccessKeyId, Attempt, JsonText, NewTimer, Shard, Span, Timer, TimerId, Timestamp};

pub use claim::{Claim, ClaimToken, Claimed, DueEntry, Epoch, NodeId, OnLocked, Settlement, ShardCursor, ShardLease, Unreadable};
pub use decorator::Decorator;
pub use error::{StoreError, StoreResult};
pub use measured::{METRICS, Measured};
pub use membership::{Cluster, DEAD_MEMBERS_KEPT, HeartbeatReply, Member, ShardState};
pub use operation::Operation;
pub use query::{COUNTED_MAX, Count, Cursor, Filter, ListQuery, Order, Page, Sort, Summary};
pub use stored::StoredTimer;
pub use writable::Writable;

/// The contract. Every method is one round trip and, where it writes, one commit.
///
/// When a writing call answers `Ok`, what it says is on disk. An error says whether nothing was done
/// ([`StoreError::is_not_done`]) or whether that is unknown ([`StoreError::Unknown`]); an unknown outcome must be
/// read back before anybody is told anything.
///
/// A timer's revision rises with every change of its definition or of its due time (`execute_at`), whoever makes it, and
/// never falls: two readings with the same revision differ at most in how far the delivery got. A lease has run out
/// at the very moment it ends.
#[async_trait]
pub trait Store: Send + Sync {
    // ── For callers ────────────────────────────────────────────────────────────────────────────────────────

    /// Registers timers, each by itself: one that is refused does not hinder its neighbours. Answers in the order
    /// of the batch. An id that is taken is resolved by [`domain::resolve`]; ids may repeat within a batch, and then
    /// count in its order. A moved or overwritten timer keeps `created_at`, gets `updated_at`, and starts its attempts
    /// over; a revived one starts its life anew. All of them take the revision that follows the old one.
    async fn create(&self, batch: Vec<NewTimer>) -> StoreResult<Vec<Created>>;

    /// The timer as it stands, or `None`.
    async fn get(&self, id: TimerId) -> StoreResult<Option<Timer>>;

    /// One page of the timers that match, without their payloads. Sorted by the wanted time, then by id, both in the
    /// wanted direction, so that pages by cursor neither repeat nor miss a timer that stays where it is.
    async fn list(&self, query: &ListQuery) -> StoreResult<Page>;

    /// How many timers match: exactly as long as they are no more than [`COUNTED_MAX`].
    async fn count(&self, filter: &Filter) -> StoreResult<Count>;

    /// Puts `changed.definition` and `changed.execute_at` in the place of what is there, if the timer is pending and
    /// still has the revision that `changed` carries. The revision rises, `updated_at` becomes `now`, and the destination
    /// follows the callback.
    ///
    /// Another `execute_at` than the stored one is a new due time: that is when the next attempt is due, attempts start
    /// over and the last error is forgotten. The same `execute_at` leaves all of that as it is: what waits for a retry
    /// goes on waiting for it.
    async fn update(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed>;

    /// Cancels a pending timer. Once this has answered [`Changed::Done`], no claim gets it.
    async fn cancel(&self, id: TimerId, now: Timestamp) -> StoreResult<Changed>;

    /// Cancels those of `ids` that are pending, in one commit; says for each whether it was.
    async fn cancel_all(&self, ids: &[TimerId], now: Timestamp) -> StoreResult<Vec<bool>>;

    /// Puts a failed timer back to pending: its next attempt is due at `now`, attempts start over, and the last error is
    /// forgotten. `execute_at` stays, and with it the id that receivers know the call by. The revision rises.
    async fn reopen(&self, id: TimerId, now: Timestamp) -> StoreResult<Changed>;

    /// The ids of the timers that match, in their order: those after `after`, at most `limit`.
    async fn matching(&self, filter: &Filter, after: Option<TimerId>, limit: usize) -> StoreResult<Vec<TimerId>>;

    /// The metadata of these timers, in the order of `ids`, as far as it takes no more than `bytes_max` bytes together; that of the
    /// first is there in any case. An answer that is shorter than `ids` ends where it was full: ask again for the rest. `None` for
    /// a timer that has no metadata, or that is not there.
    async fn metadata(&self, ids: &[TimerId], bytes_max: usize) -> StoreResult<Vec<Option<JsonText>>>;

    /// What is remembered of a timer's attempts: the last [`limits::ATTEMPTS_KEPT`](domain::limits::ATTEMPTS_KEPT) of them,
    /// in the order in which they were recorded. They live as long as the timer, through all its lives.
    async fn attempts(&self, id: TimerId) -> StoreResult<Vec<Attempt>>;

    /// Asks the database for a sign of life.
    async fn ping(&self) -> StoreResult<()>;

    /// Writes something that nobody sees and that leaves nothing behind, to find out whether the store takes writes again after
    /// [`StoreError::Full`].
    async fn probe(&self) -> StoreResult<()> {
        self.ping().await
    }

    // ── For the scheduler ──────────────────────────────────────────────────────────────────────────────────

    /// Pending timers that are due at or before `until`: for each shard those after its cursor, at most `limit` of
    /// them, in the order of `(at, id)`. The shards' pages follow one another in the order of `from`. Claimed timers
    /// are left out. A page that is shorter than `limit` was the last one.
    async fn due(&self, from: &[ShardCursor], until: Timestamp, limit: usize) -> StoreResult<Vec<DueEntry>>;

    /// Takes timers for delivery: of `entries` those that are still pending, still due at exactly the time the entry
    /// says, and in a shard of which `claim.shard_leases` holds the current epoch. They become executing, their attempt
    /// counts one more, and they come back whole, as they stand after the claim: of many claimers exactly one gets each.
    /// A timer comes back at most once, however many of the entries name it. One that somebody else is changing at
    /// this moment may be passed over: it stays pending, and [`due`](Store::due) shows it again.
    ///
    /// Repeating a call with the same token gives the same timers again and counts nothing twice: that is how an
    /// unknown outcome is read back. That holds after the shard was lost, too, and even if the claimer was dead for a while, until
    /// somebody else has settled them: once it lives again nobody else would, so it must never be left in the dark.
    async fn claim(&self, claim: &Claim, entries: &[DueEntry]) -> StoreResult<Vec<Claimed>>;

    /// Records what became of claimed timers. Each settlement counts only while its claim stands, and only under the shard lease under
    /// which it was claimed, or, in the place of an owner that is gone, under the current one of its shard; says for each whether
    /// it counted. Repeating an unknown call is harmless.
    ///
    /// Attempts count deliveries that were started. A claim counts one; a timer that is given up without a call gets it back, and
    /// one that is pending again says how many there were.
    ///
    /// A timer that is due again takes a new due time, so its revision rises. A retry leaves the revision as it is. The
    /// attempt that a settlement carries is remembered if the settlement counts.
    async fn settle(&self, batch: &[Settlement]) -> StoreResult<Vec<bool>>;

    /// Claims that nobody will settle, in those shards of which `shard_leases` holds the current epoch: made in an earlier epoch by a node
    /// that lives no more, or with a lease that has run out by the database's clock. At most `limit`. They are not changed: settle
    /// them, with the token they carry. Where very much is overdue, one call may look at a part of it, and the next ones at the rest.
    async fn expired_claims(&self, shard_leases: &[ShardLease], limit: usize) -> StoreResult<Vec<Claimed>>;

    /// Removes timers that finished before `before`, oldest first, at most `limit`. Says how many.
    async fn purge(&self, before: Timestamp, limit: usize) -> StoreResult<usize>;

    // ── For access ─────────────────────────────────────────────────────────────────────────────────────────

    /// Keeps a key. `false` when one with this id or this hash is there already.
    async fn add_key(&self, key: &AccessKey) -> StoreResult<bool>;

    /// Every key, revoked ones included, the oldest first.
    async fn keys(&self) -> StoreResult<Vec<AccessKey>>;

    /// Revokes a key for good. `false` when there is none, or it was revoked before.
    async fn revoke_key(&self, id: AccessKeyId, now: Timestamp) -> StoreResult<bool>;

    // ── For ownership ──────────────────────────────────────────────────────────────────────────────────────

    /// How many shards there are: fixed when the database was set up.
    fn shards(&self) -> u16;

    /// Says that `member` lives for another `lease` by the database's clock, and tells how things stand. A node whose lease had run
    /// out lives again; what others took from it meanwhile is theirs.
    async fn heartbeat(&self, member: &Member, lease: Span) -> StoreResult<HeartbeatReply>;

    /// Takes those of `shards` that nobody holds: never owned, released, or owned by a node that lives no more. Each comes with an
    /// epoch above all its earlier ones. A shard that `node` itself holds already comes with the epoch it has. A node that does not
    /// live gets nothing.
    async fn acquire(&self, node: NodeId, shards: &[Shard]) -> StoreResult<Vec<ShardLease>>;

    /// Gives shards back at once. A shard lease that no longer stands is passed over.
    ///
    /// A shard lease ends when somebody acquires the shard, for only that raises the epoch. Until then its last owner can still claim
    /// under it. What it has claimed stays its own for as long as it lives, whoever holds the shard: see
    /// [`settle`](Store::settle) and [`expired_claims`](Store::expired_claims).
    async fn release(&self, node: NodeId, shard_leases: &[ShardLease]) -> StoreResult<()>;

    /// The node lives no more: everything it holds is given back, and its claims are left to others.
    async fn leave(&self, node: NodeId) -> StoreResult<()>;

    /// Who lives, who holds what, and whether anything is late.
    async fn cluster(&self) -> StoreResult<Cluster>;

    /// Tells every other process on this database of timers that became due soon. Best effort: nobody may depend on it.
    async fn nudge(&self, entries: &[DueEntry]) -> StoreResult<()>;

    /// Waits until another process tells of such timers. Waits for ever where there can be no other.
    async fn nudged(&self) -> StoreResult<Vec<DueEntry>>;
}

/// What became of one timer of a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum Created {
    /// It is new.
    Created(Timer),
    /// Its id was there, and stays as it is.
    Existing(Timer),
    /// Its id was there, and took the new content or time, or a new life.
    Replaced(Timer),
    /// Its id was there with other content; nothing was changed.
    Conflict(Timer),
}

impl Created {
    pub const fn timer(&self) -> &Timer {
        match self {
            Self::Created(timer) | Self::Existing(timer) | Self::Replaced(timer) | Self::Conflict(timer) => timer,
        }
    }
}

/// What became of an update or a cancel.
#[derive(Debug, Clone, PartialEq)]
pub enum Changed {
    /// It is done; this is the timer now.
    Done(Timer),
    /// The timer is not pending; this is what was met.
    WrongStatus(Timer),
    /// Somebody else changed it since it was read: read it again. Only for updates.
    StaleRevision,
    NotFound,
}
