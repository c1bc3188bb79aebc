//! Statistics: what is pending, and what nodes have written down of their work.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use domain::{Namespace, Status, TenantId, Timestamp};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use store::{
    Digest, DueCounts, DueQuery, NAMESPACES_LISTED_MAX, NamespaceCount, NamespaceCounts, NodeDigest, NodeId, NodeReceiver,
    NodeStats, RECEIVERS_READ_MAX, ReceiverReport, StatsStore, StoreResult,
};

use crate::{
    Change, Columns, Condition, Consistency, PartitionedStore, Positions, Range, Row, Write, after,
    columns::Head,
    json::{corrupt, from_json, to_json},
    layout,
};

const DIGESTS: u8 = 1;
const RECEIVERS: u8 = 2;
/// How many rows are read at once.
const PAGE: usize = 1_000;

#[derive(Serialize, Deserialize)]
struct StoredDigest {
    node: u128,
    namespace: Option<String>,
    digest: Digest,
}

#[derive(Serialize, Deserialize)]
struct StoredReceiver {
    node: u128,
    namespace: String,
    destination: String,
    written_at: i64,
    report: ReceiverReport,
}

/// A name as a part of a key, whatever its length.
fn name_hash(parts: &[&str]) -> [u8; 16] {
    layout::group(parts.first().copied().unwrap_or_default(), parts.last().copied().unwrap_or_default())
}

fn digest_key(digest: &NodeDigest) -> Vec<u8> {
    let namespace = digest.namespace.as_ref().map(|namespace| name_hash(&[namespace.as_str(), ""])).unwrap_or_default();
    [&[DIGESTS][..], &layout::ordered(digest.minute), &layout::node_key(digest.node), &namespace].concat()
}

fn receiver_key(receiver: &NodeReceiver) -> Vec<u8> {
    let name = name_hash(&[receiver.namespace.as_str(), &receiver.destination]);
    [&[RECEIVERS][..], &layout::node_key(receiver.node), &name].concat()
}

fn removal(key: Vec<u8>) -> Write {
    Write { key, condition: Condition::Any, change: Change::Delete, before: Positions::default() }
}

impl PartitionedStore {
    /// The rows of a range of the statistics.
    async fn stats_rows(&self, mut from: Vec<u8>, to: Vec<u8>) -> StoreResult<Vec<Row>> {
        let mut found = Vec::new();
        loop {
            let range = Range { from, to: Some(to.clone()), ..Range::all(PAGE) };
            let rows = self.database.range(&layout::stats(), &range, Columns::HEAD, Consistency::Committed).await?;
            let last = rows.last().filter(|_| rows.len() == PAGE).map(|row| row.key.clone());
            found.extend(rows);
            match last {
                Some(last) => from = after(last),
                None => return Ok(found),
            }
        }
    }

    async fn old_stats(&self, before: Timestamp) -> StoreResult<Vec<Write>> {
        let minute = [&[DIGESTS][..], &layout::ordered(before.minute())].concat();
        let mut old = self.stats_rows(vec![DIGESTS], minute).await?;
        let receivers = self.stats_rows(vec![RECEIVERS], vec![RECEIVERS + 1]).await?;
        let is_old =
            |row: &Row| from_json::<StoredReceiver>(&row.head).map_or(true, |stored| stored.written_at < before.as_micros());
        old.extend(receivers.into_iter().filter(is_old));
        Ok(old.into_iter().map(|row| removal(row.key)).collect())
    }

    /// When the oldest pending timer was due, if one is overdue.
    pub(crate) async fn oldest_overdue(&self, now: Timestamp) -> StoreResult<Option<Timestamp>> {
        let mut work: Vec<BoxFuture<'_, StoreResult<Option<Timestamp>>>> = Vec::new();
        for shard in self.all_shards() {
            work.push(Box::pin(async move {
                let (from, to) = layout::pending_range(None, now);
                let range = Range::of(layout::STANDING, from, Some(to), 1);
                let rows = self.database.range(&layout::timers(shard), &range, Columns::NONE, Consistency::Committed).await?;
                Ok(rows.first().and_then(|row| layout::pending_entry(&row.position)).map(|entry| entry.at))
            }));
        }
        let oldest: StoreResult<Vec<Option<Timestamp>>> = Self::on_all(work).await.into_iter().collect();
        Ok(oldest?.into_iter().flatten().min())
    }
}

#[async_trait]
impl StatsStore for PartitionedStore {
    async fn due_counts(&self, query: &DueQuery) -> StoreResult<DueCounts> {
        let began = self.clock.monotonic();
        let is_over = || self.clock.monotonic().saturating_sub(began) >= query.budget;
        let minute = |minute: i64| layout::pending_from(minute.saturating_mul(60_000_000));
        let tenants: Vec<TenantId> = query.namespaces.iter().map(TenantId::of).collect();
        let mut pending = vec![0_u64; query.buckets()];
        let (mut shards, mut counted) = (0_u64, 0_u64);
        for shard in self.all_shards() {
            shards += 1;
            if counted > 0 && is_over() {
                continue;
            }
            let mut from = minute(query.from);
            loop {
                let range = Range::of(layout::STANDING, from, Some(minute(query.to)), PAGE);
                let rows = self.database.range(&layout::timers(shard), &range, Columns::NONE, Consistency::Committed).await?;
                for entry in rows.iter().filter_map(|row| layout::pending_entry(&row.position)) {
                    let is_meant = tenants.is_empty() || tenants.contains(&entry.destination.tenant());
                    if let Some(bucket) = query.bucket(entry.at.minute()).filter(|_| is_meant) {
                        pending[bucket] += 1;
                    }
                }
                match rows.last() {
                    Some(last) if rows.len() == PAGE => from = after(last.position.clone()),
                    _ => break,
                }
            }
            counted += 1;
        }
        let is_estimate = counted < shards;
        if is_estimate {
            // Ids are spread evenly: what the rest has is inferred from the shards that were counted.
            pending.iter_mut().for_each(|count| *count = *count * shards / counted.max(1));
        }
        Ok(DueCounts { pending, is_estimate })
    }

    async fn record_stats(&self, stats: &NodeStats) -> StoreResult<()> {
        let mut writes = Vec::with_capacity(stats.digests.len() + stats.receivers.len());
        for digest in &stats.digests {
            let stored = StoredDigest {
                node: digest.node.0,
                namespace: digest.namespace.as_ref().map(ToString::to_string),
                digest: digest.digest.clone(),
            };
            writes.push(self.put(digest_key(digest), Condition::Any, to_json(&stored)));
        }
        for receiver in &stats.receivers {
            let stored = StoredReceiver {
                node: receiver.node.0,
                namespace: receiver.namespace.to_string(),
                destination: receiver.destination.clone(),
                written_at: receiver.written_at.as_micros(),
                report: receiver.report.clone(),
            };
            writes.push(self.put(receiver_key(receiver), Condition::Any, to_json(&stored)));
        }
        writes.extend(self.old_stats(stats.forget_before).await?);
        if !writes.is_empty() {
            self.database.write(&layout::stats(), writes).await?;
        }
        Ok(())
    }

    async fn digests(&self, namespaces: &[Namespace], from: i64, to: i64) -> StoreResult<Vec<NodeDigest>> {
        let minute = |minute: i64| [&[DIGESTS][..], &layout::ordered(minute)].concat();
        let mut found = Vec::new();
        for row in self.stats_rows(minute(from), minute(to)).await? {
            let stored: StoredDigest = from_json(&row.head).map_err(corrupt)?;
            let is_meant = match &stored.namespace {
                None => namespaces.is_empty(),
                Some(name) => namespaces.iter().any(|namespace| namespace.as_str() == name),
            };
            let Some(minute) = row.key.get(1..9).and_then(layout::number).filter(|_| is_meant) else { continue };
            let namespace = stored.namespace.as_deref().map(Namespace::parse).transpose().ok().flatten();
            found.push(NodeDigest { node: NodeId(stored.node), minute, namespace, digest: stored.digest });
        }
        Ok(found)
    }

    async fn receivers(&self, namespaces: &[Namespace]) -> StoreResult<Vec<NodeReceiver>> {
        let mut found = Vec::new();
        for row in self.stats_rows(vec![RECEIVERS], vec![RECEIVERS + 1]).await? {
            let stored: StoredReceiver = from_json(&row.head).map_err(corrupt)?;
            let Ok(namespace) = Namespace::parse(&stored.namespace) else { continue };
            if namespaces.is_empty() || namespaces.contains(&namespace) {
                found.push(NodeReceiver {
                    node: NodeId(stored.node),
                    namespace,
                    destination: stored.destination,
                    written_at: Timestamp::from_micros(stored.written_at),
                    report: stored.report,
                });
            }
        }
        found.sort_by_key(|receiver| std::cmp::Reverse(receiver.written_at));
        found.truncate(RECEIVERS_READ_MAX);
        Ok(found)
    }

    async fn namespace_counts(&self, only: &[Namespace], now: Timestamp, budget: Duration) -> StoreResult<NamespaceCounts> {
        let began = self.clock.monotonic();
        let nothing = |namespace: Namespace| NamespaceCount { namespace, pending: 0, failed: 0, oldest_overdue: None };
        let named = if only.is_empty() { vec![Namespace::default()] } else { only.to_vec() };
        let mut counts: BTreeMap<Namespace, NamespaceCount> =
            named.into_iter().map(|namespace| (namespace.clone(), nothing(namespace))).collect();
        let mut is_whole = true;
        'shards: for shard in self.all_shards() {
            let mut from = Vec::new();
            loop {
                let range = Range::of(layout::CREATED, from, None, PAGE);
                let rows = self.database.range(&layout::timers(shard), &range, Columns::HEAD, Consistency::Committed).await?;
                for row in &rows {
                    let head: Head = from_json(&row.head).map_err(corrupt)?;
                    let Ok(namespace) = Namespace::parse(&head.namespace) else { continue };
                    if !only.is_empty() && !only.contains(&namespace) {
                        continue;
                    }
                    add(counts.entry(namespace.clone()).or_insert_with(|| nothing(namespace)), &head, now);
                }
                match rows.last() {
                    Some(last) if rows.len() == PAGE => from = after(last.position.clone()),
                    _ => break,
                }
                if self.clock.monotonic().saturating_sub(began) >= budget {
                    is_whole = false;
                    break 'shards;
                }
            }
        }
        let is_complete = is_whole && counts.len() <= NAMESPACES_LISTED_MAX;
        let namespaces = counts.into_values().take(NAMESPACES_LISTED_MAX).collect();
        Ok(NamespaceCounts { namespaces, pending_is_estimate: !is_whole, failed_is_estimate: !is_whole, is_complete })
    }
}

fn add(count: &mut NamespaceCount, head: &Head, now: Timestamp) {
    match head.status {
        Status::Pending => {
            count.pending += 1;
            let at = Timestamp::from_micros(head.at);
            count.oldest_overdue = [count.oldest_overdue, (at <= now).then_some(at)].into_iter().flatten().min();
        }
        Status::Failed => count.failed += 1,
        _ => {}
    }
}
