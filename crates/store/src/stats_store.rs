use std::time::Duration;

use async_trait::async_trait;
use domain::{Namespace, Timestamp};

use crate::{DueCounts, DueQuery, NamespaceCounts, NodeDigest, NodeReceiver, NodeStats, StoreResult};

/// Statistics for operators: what is pending, and what nodes have written down of their work.
///
/// [`Store`](crate::Store) states what holds for every call. Where a call has a budget it answers soon after, with what it has
/// found until then, and says so.
#[async_trait]
pub trait StatsStore: Send + Sync {
    /// How many timers are pending, by the bucket in which their next attempt is due. Claimed timers are left out.
    async fn due_counts(&self, query: &DueQuery) -> StoreResult<DueCounts>;

    /// Keeps what a node has counted. A digest of the same node, minute and namespace as an earlier one takes its place; so does
    /// a report of the same node about the same receiver of a namespace. What lies before `forget_before` is removed, of every node.
    async fn record_stats(&self, stats: &NodeStats) -> StoreResult<()>;

    /// The digests of all nodes from minute `from` to before `to`, in no particular order: those of `namespaces`, or, where none
    /// is named, those of all namespaces together.
    async fn digests(&self, namespaces: &[Namespace], from: i64, to: i64) -> StoreResult<Vec<NodeDigest>>;

    /// What nodes know of receivers, the last written first, at most [`RECEIVERS_READ_MAX`](crate::RECEIVERS_READ_MAX): those of
    /// `namespaces`, or, where none is named, of all.
    async fn receivers(&self, namespaces: &[Namespace]) -> StoreResult<Vec<NodeReceiver>>;

    /// What namespaces have, by name: those of `only`, whether they have timers or not; where none is named, the default one and
    /// all others that have timers, as far as [`NAMESPACES_LISTED_MAX`](crate::NAMESPACES_LISTED_MAX) allows. Of two names that
    /// collide as tenants ([`TenantId`](domain::TenantId)), each may show what both have pending.
    async fn namespace_counts(&self, only: &[Namespace], now: Timestamp, budget: Duration) -> StoreResult<NamespaceCounts>;
}
