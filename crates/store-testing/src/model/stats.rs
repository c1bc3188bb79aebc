use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use domain::{Namespace, Status, Timestamp};
use store::{
    Digest, DueCounts, DueQuery, NAMESPACES_LISTED_MAX, NamespaceCount, NamespaceCounts, NodeDigest, NodeId, NodeReceiver,
    NodeStats, RECEIVERS_READ_MAX, StatsStore, StoreResult,
};

use super::Model;

/// What nodes have written down of their work.
#[derive(Default)]
pub(super) struct Written {
    digests: BTreeMap<(Option<Namespace>, i64, NodeId), Digest>,
    receivers: BTreeMap<(NodeId, Namespace, String), NodeReceiver>,
}

fn is_meant(namespaces: &[Namespace], namespace: &Namespace) -> bool {
    namespaces.is_empty() || namespaces.contains(namespace)
}

#[async_trait]
impl StatsStore for Model {
    async fn due_counts(&self, query: &DueQuery) -> StoreResult<DueCounts> {
        let mut pending = vec![0; query.buckets()];
        let tables = self.tables();
        let meant = tables
            .timers
            .values()
            .filter(|row| row.timer.status == Status::Pending && is_meant(&query.namespaces, &row.timer.definition.namespace));
        for bucket in meant.filter_map(|row| query.bucket(row.at.minute())) {
            pending[bucket] += 1;
        }
        Ok(DueCounts { pending, is_estimate: false })
    }

    async fn record_stats(&self, stats: &NodeStats) -> StoreResult<()> {
        let written = &mut self.tables().written;
        for NodeDigest { node, minute, namespace, digest } in &stats.digests {
            written.digests.insert((namespace.clone(), *minute, *node), digest.clone());
        }
        for receiver in &stats.receivers {
            let key = (receiver.node, receiver.namespace.clone(), receiver.destination.clone());
            written.receivers.insert(key, receiver.clone());
        }
        written.digests.retain(|(_, minute, _), _| *minute >= stats.forget_before.minute());
        written.receivers.retain(|_, receiver| receiver.written_at >= stats.forget_before);
        Ok(())
    }

    async fn digests(&self, namespaces: &[Namespace], from: i64, to: i64) -> StoreResult<Vec<NodeDigest>> {
        let wanted = |namespace: &Option<Namespace>| match namespace {
            Some(namespace) => namespaces.contains(namespace),
            None => namespaces.is_empty(),
        };
        let tables = self.tables();
        let found =
            tables.written.digests.iter().filter(|((namespace, minute, _), _)| wanted(namespace) && (from..to).contains(minute));
        let digest = |((namespace, minute, node), digest): (&(Option<Namespace>, i64, NodeId), &Digest)| NodeDigest {
            node: *node,
            minute: *minute,
            namespace: namespace.clone(),
            digest: digest.clone(),
        };
        Ok(found.map(digest).collect())
    }

    async fn receivers(&self, namespaces: &[Namespace]) -> StoreResult<Vec<NodeReceiver>> {
        let tables = self.tables();
        let mut found: Vec<_> =
            tables.written.receivers.values().filter(|receiver| is_meant(namespaces, &receiver.namespace)).cloned().collect();
        found.sort_by_key(|receiver| std::cmp::Reverse(receiver.written_at));
        found.truncate(RECEIVERS_READ_MAX);
        Ok(found)
    }

    async fn namespace_counts(&self, only: &[Namespace], now: Timestamp, _: Duration) -> StoreResult<NamespaceCounts> {
        let nothing = |namespace: &Namespace| {
            let count = NamespaceCount { namespace: namespace.clone(), pending: 0, failed: 0, oldest_overdue: None };
            (namespace.clone(), count)
        };
        let named = if only.is_empty() { vec![Namespace::default()] } else { only.to_vec() };
        let mut counts: BTreeMap<Namespace, NamespaceCount> = named.iter().map(nothing).collect();
        let tables = self.tables();
        for row in tables.timers.values().filter(|row| is_meant(only, &row.timer.definition.namespace)) {
            let namespace = &row.timer.definition.namespace;
            let count = counts.entry(namespace.clone()).or_insert_with(|| nothing(namespace).1);
            match row.timer.status {
                Status::Pending => {
                    count.pending += 1;
                    let oldest = (row.at <= now).then_some(row.at);
                    count.oldest_overdue = [count.oldest_overdue, oldest].into_iter().flatten().min();
                }
                Status::Failed => count.failed += 1,
                _ => {}
            }
        }
        let is_complete = counts.len() <= NAMESPACES_LISTED_MAX;
        let namespaces = counts.into_values().take(NAMESPACES_LISTED_MAX).collect();
        Ok(NamespaceCounts { namespaces, pending_is_estimate: false, failed_is_estimate: false, is_complete })
    }
}
