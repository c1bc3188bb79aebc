use async_trait::async_trait;
use domain::Timestamp;

use crate::{Claim, Claimed, DueEntry, Settlement, ShardCursor, ShardLease, Sharded, StoreResult};

/// The due timers, on their way from pending to their end. For the scheduler and the pipeline.
///
/// [`Store`](crate::Store) states what holds for every call.
#[async_trait]
pub trait DueStore: Sharded {
    /// Pending timers that are due at or before `until`: for each shard those after its cursor, at most `limit` of
    /// them, in the order of `(at, id)`. The shards' pages follow one another in the order of `from`. Claimed timers
    /// are left out. A page that is shorter than `limit` was the last one.
    async fn due(&self, from: &[ShardCursor], until: Timestamp, limit: usize) -> StoreResult<Vec<DueEntry>>;

    /// Takes timers for delivery: of `entries` those that are still pending, still due at exactly the time the entry
    /// says, and in a shard of which `claim.shard_leases` holds the current epoch. They become executing, their attempt
    /// counts one more, and they come back whole, as they stand after the claim: of many claimers exactly one gets each.
    /// A timer comes back at most once, however many of the entries name it. One that another transaction is
    /// changing at this moment may be passed over: it stays pending, and [`due`](DueStore::due) shows it again.
    ///
    /// Repeating a call with the same token gives the same timers again and counts nothing twice: that is how an
    /// unknown outcome is read back. That holds after the shard was lost, too, and even if the claimer was dead for a while, until
    /// another node has settled them: once the claimer lives again no other node would, so it must never be left in the dark.
    async fn claim(&self, claim: &Claim, entries: &[DueEntry]) -> StoreResult<Vec<Claimed>>;

    /// Records what became of claimed timers. Each settlement counts only while its claim stands, and only under the shard lease under
    /// which it was claimed, or, for an owner that is gone, under the current one of its shard; says for each whether
    /// it counted. Repeating an unknown call is harmless.
    ///
    /// Attempts count deliveries that were started. A claim counts one; a timer that is given up without a call gets it back, and
    /// one that is pending again says how many there were.
    ///
    /// A timer that is due again takes a new due time, so its revision rises. A retry leaves the revision as it is. The
    /// attempt that a settlement carries is remembered if the settlement counts.
    async fn settle(&self, batch: &[Settlement]) -> StoreResult<Vec<bool>>;

    /// Claims that no living node will settle, in those shards of which `shard_leases` holds the current epoch: made in an earlier epoch by a node
    /// that lives no more, or with a lease that has run out by the database's clock. At most `limit`. They are not changed: settle
    /// them, with the token they carry. Where very much is overdue, one call may look at a part of it, and the next ones at the rest.
    async fn expired_claims(&self, shard_leases: &[ShardLease], limit: usize) -> StoreResult<Vec<Claimed>>;

    /// Removes timers that finished before `before`, oldest first, at most `limit`. Says how many.
    async fn purge(&self, before: Timestamp, limit: usize) -> StoreResult<usize>;
}
