use async_trait::async_trait;
use domain::{Shard, Span};

use crate::{DueEntry, HeartbeatReply, Member, NodeId, ShardLease, Sharded, StoreResult};

/// The nodes that share the work: which of them live, which shards they hold, and what they tell each other.
///
/// [`Store`](crate::Store) states what holds for every call.
#[async_trait]
pub trait MembershipStore: Sharded {
    /// Says that `member` lives for another `lease` by the database's clock, and tells how things stand. A node whose lease had run
    /// out lives again; shards that other nodes took from it meanwhile stay theirs.
    async fn heartbeat(&self, member: &Member, lease: Span) -> StoreResult<HeartbeatReply>;

    /// Takes those of `shards` that no node holds: never owned, released, or owned by a node that lives no more. Each comes with an
    /// epoch above all its earlier ones. A shard that `node` itself holds already comes with the epoch it has. A node that does not
    /// live gets nothing.
    async fn acquire(&self, node: NodeId, shards: &[Shard]) -> StoreResult<Vec<ShardLease>>;

    /// Gives shards back at once. A shard lease that no longer stands is passed over.
    ///
    /// A shard lease ends when a node acquires the shard, for only that raises the epoch. Until then its last owner can still claim
    /// under it. What it has claimed stays its own for as long as it lives, even when another node holds the
    /// shard: see [`settle`](crate::DueStore::settle) and [`expired_claims`](crate::DueStore::expired_claims).
    async fn release(&self, node: NodeId, shard_leases: &[ShardLease]) -> StoreResult<()>;

    /// The node lives no more: everything it holds is given back, and its claims are left to other nodes.
    async fn leave(&self, node: NodeId) -> StoreResult<()>;

    /// Tells every other process on this database of timers that became due soon. Best effort: no caller may depend on it.
    async fn nudge(&self, entries: &[DueEntry]) -> StoreResult<()>;

    /// Waits until another process tells of such timers. Waits for ever where there can be no other.
    async fn nudged(&self) -> StoreResult<Vec<DueEntry>>;
}
