//! Statistics for operators: counted shard by shard within a budget, or as nodes wrote them down.

mod counts;
mod namespaces;
mod reports;

use std::time::Duration;

use async_trait::async_trait;
use domain::{Namespace, Timestamp};
use store::{DueCounts, DueQuery, NamespaceCounts, NodeDigest, NodeReceiver, NodeStats, Sharded, StatsStore, StoreResult};

use crate::PostgresStore;

#[async_trait]
impl StatsStore for PostgresStore {
    async fn due_counts(&self, query: &DueQuery) -> StoreResult<DueCounts> {
        self.lists.run(counts::Counts { query: query.clone(), shards: self.shards() }).await
    }

    async fn record_stats(&self, stats: &NodeStats) -> StoreResult<()> {
        self.callers.run(reports::Record::new(stats)).await
    }

    async fn digests(&self, namespaces: &[Namespace], from: i64, to: i64) -> StoreResult<Vec<NodeDigest>> {
        self.lists.run(reports::Digests::new(namespaces, from, to)).await
    }

    async fn receivers(&self, namespaces: &[Namespace]) -> StoreResult<Vec<NodeReceiver>> {
        self.lists.run(reports::Receivers::new(namespaces)).await
    }

    async fn namespace_counts(&self, only: &[Namespace], now: Timestamp, budget: Duration) -> StoreResult<NamespaceCounts> {
        self.lists.run(namespaces::Namespaces { only: only.to_vec(), now, budget, shards: self.shards() }).await
    }
}
