//! Which nodes live and which shards they hold.

use std::collections::BTreeSet;

use async_trait::async_trait;
use domain::{Shard, Span, Timestamp};
use serde::{Deserialize, Serialize};
use store::{
    Cluster, DEAD_MEMBERS_KEPT, DueEntry, Epoch, HealthStore, HeartbeatReply, Member, MembershipStore, NodeId, ShardLease,
    ShardState, Sharded, StoreResult,
};

use crate::{
    Change, Columns, Condition, Consistency, Outcome, PartitionedStore, Positions, Range, Version, Write,
    json::{corrupt, from_json, to_json},
    layout,
    liveness::{Liveness, Reading, Sighting},
};

/// How many nodes and shards are read at once: more than there are.
const ALL: usize = 100_000;
/// How many former owners of a shard are remembered.
const FORMER_MAX: usize = 256;
/// How often a shard is tried again that other nodes change at the same time.
const LOST_RACES_MAX: usize = 20;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredMember {
    name: String,
    version: String,
    started_at: i64,
    takes_shards: bool,
    skew_micros: i64,
    lease: i64,
    /// When the row was written, by the clock of the node.
    written_at: i64,
}

/// A shard: its last acquisition, and the nodes that had it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Holding {
    pub epoch: i64,
    owner: Option<u128>,
    /// Epochs and the nodes with which they began, the current one included.
    former: Vec<(i64, u128)>,
}

impl Holding {
    /// The node that began this epoch.
    pub fn holder(&self, epoch: i64) -> Option<NodeId> {
        self.former.iter().find(|(began, _)| *began == epoch).map(|(_, node)| NodeId(*node))
    }

    fn take(&mut self, node: NodeId, known: &BTreeSet<NodeId>) {
        self.epoch += 1;
        self.owner = Some(node.0);
        // Of a node that left or is long dead nothing is awaited any more.
        self.former.retain(|(_, former)| known.contains(&NodeId(*former)));
        self.former.push((self.epoch, node.0));
        let excess = self.former.len().saturating_sub(FORMER_MAX);
        self.former.drain(..excess);
    }
}

pub struct ShardRow {
    version: Version,
    pub holding: Holding,
}

/// All nodes, as one reading shows them.
struct Nodes {
    members: Vec<(Member, Timestamp)>,
    known: BTreeSet<NodeId>,
    living: BTreeSet<NodeId>,
    ahead_micros: i64,
}

impl PartitionedStore {
    /// The shards as they are stored, in the order of `shards`.
    pub(crate) async fn shard_rows(&self, shards: &[Shard], consistency: Consistency) -> StoreResult<Vec<Option<ShardRow>>> {
        let keys: Vec<Vec<u8>> = shards.iter().map(|shard| layout::shard_key(*shard)).collect();
        let rows = self.database.read(&layout::shards(), &keys, Columns::HEAD, consistency).await?;
        let read = |row: Option<crate::Row>| {
            row.map(|row| Ok(ShardRow { version: row.version, holding: from_json(&row.head).map_err(corrupt)? })).transpose()
        };
        rows.into_iter().map(read).collect()
    }

    async fn all_holdings(&self) -> StoreResult<Vec<(Shard, Holding)>> {
        let rows = self.database.range(&layout::shards(), &Range::all(ALL), Columns::HEAD, Consistency::Committed).await?;
        let holding = |row: crate::Row| {
            let shard = Shard(u16::from_be_bytes(row.key.as_slice().try_into().ok()?));
            Some(from_json(&row.head).map_err(corrupt).map(|holding| (shard, holding)))
        };
        rows.into_iter().filter_map(holding).collect()
    }

    fn with_liveness<T>(&self, work: impl FnOnce(&mut Liveness) -> T) -> T {
        work(&mut self.liveness.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    async fn nodes(&self) -> StoreResult<Nodes> {
        let (began, began_at) = (self.clock.monotonic(), self.now());
        let rows = self.database.range(&layout::nodes(), &Range::all(ALL), Columns::HEAD, Consistency::Committed).await?;
        let reading = Reading { began_at, ended: self.clock.monotonic(), ended_at: self.now() };
        let (mut members, mut sightings) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        for row in rows {
            let Ok(node) = row.key.as_slice().try_into().map(u128::from_be_bytes).map(NodeId) else { continue };
            let stored: StoredMember = from_json(&row.head).map_err(corrupt)?;
            let (lease, written_at) = (Span::from_micros_clamped(stored.lease), Timestamp::from_micros(stored.written_at));
            sightings.push(Sighting { node, version: row.version, lease, written_at });
            members.push((stored.member(node), written_at.saturating_add(lease)));
        }
        let known = sightings.iter().map(|sighting| sighting.node).collect();
        let (living, ahead_micros) = self.with_liveness(|liveness| {
            liveness.note(&sightings, reading);
            let living = sightings.iter().map(|sighting| sighting.node).filter(|node| liveness.lives(*node, began)).collect();
            (living, liveness.ahead_micros(began))
        });
        Ok(Nodes { members, known, living, ahead_micros })
    }

    /// The nodes that live, as far as this process can tell.
    pub(crate) async fn living(&self) -> StoreResult<BTreeSet<NodeId>> {
        Ok(self.nodes().await?.living)
    }

    /// Changes shards, each by itself: `decide` says how, or that a shard stays as it is. Says which were changed.
    async fn change_shards(
        &self,
        shards: &[Shard],
        decide: impl Fn(Shard, &mut Holding, &Nodes) -> bool + Send + Sync,
    ) -> StoreResult<Vec<(Shard, Holding)>> {
        let (mut open, mut changed) = (shards.to_vec(), Vec::new());
        for _ in 0..LOST_RACES_MAX {
            if open.is_empty() {
                break;
            }
            let rows = self.shard_rows(&open, Consistency::Linearizable).await?;
            // After the shards: every node that took one of them had sent its heartbeat before.
            let nodes = self.nodes().await?;
            let (mut writes, mut tried) = (Vec::new(), Vec::new());
            for (shard, row) in open.iter().zip(rows) {
                let condition = row.as_ref().map_or(Condition::Absent, |row| Condition::Is(row.version));
                let mut holding = row.map(|row| row.holding).unwrap_or_default();
                if decide(*shard, &mut holding, &nodes) {
                    writes.push(self.put(layout::shard_key(*shard), condition, to_json(&holding)));
                    tried.push((*shard, holding));
                }
            }
            if writes.is_empty() {
                break;
            }
            let outcomes = self.database.write(&layout::shards(), writes).await?;
            open.clear();
            for ((shard, holding), outcome) in tried.into_iter().zip(outcomes) {
                match outcome {
                    Outcome::Applied => changed.push((shard, holding)),
                    Outcome::Refused => open.push(shard),
                    Outcome::Failed(error) => return Err(error),
                }
            }
        }
        Ok(changed)
    }

    async fn forget_nodes(&self, nodes: Vec<NodeId>) -> StoreResult<()> {
        let removal = |node: NodeId| Write {
            key: layout::node_key(node),
            condition: Condition::Any,
            change: Change::Delete,
            before: Positions::default(),
        };
        if !nodes.is_empty() {
            self.database.write(&layout::nodes(), nodes.into_iter().map(removal).collect()).await?;
        }
        Ok(())
    }
}

impl StoredMember {
    fn of(member: &Member, lease: Span, written_at: Timestamp) -> Self {
        Self {
            name: member.name.clone(),
            version: member.version.clone(),
            started_at: member.started_at.as_micros(),
            takes_shards: member.takes_shards,
            skew_micros: member.skew_micros,
            lease: lease.as_micros(),
            written_at: written_at.as_micros(),
        }
    }

    fn member(self, node: NodeId) -> Member {
        Member {
            node,
            name: self.name,
            version: self.version,
            started_at: Timestamp::from_micros(self.started_at),
            takes_shards: self.takes_shards,
            skew_micros: self.skew_micros,
        }
    }
}

const fn is_forgotten(lease_until: Timestamp, now: Timestamp) -> bool {
    lease_until.saturating_add(DEAD_MEMBERS_KEPT).as_micros() <= now.as_micros()
}

#[async_trait]
impl MembershipStore for PartitionedStore {
    async fn heartbeat(&self, member: &Member, lease: Span) -> StoreResult<HeartbeatReply> {
        let (began, now) = (self.clock.monotonic(), self.now());
        let write = self.put(layout::node_key(member.node), Condition::Any, to_json(&StoredMember::of(member, lease, now)));
        let version = match &write.change {
            Change::Put { version, .. } => *version,
            Change::Delete => Version::default(),
        };
        self.write_one(&layout::nodes(), write).await?;
        self.with_liveness(|liveness| liveness.sent(member.node, version, began, lease));
        let (nodes, holdings) = tokio::join!(self.nodes(), self.all_holdings());
        let (nodes, holdings) = (nodes?, holdings?);
        let forgotten =
            nodes.members.iter().filter(|(known, until)| !nodes.living.contains(&known.node) && is_forgotten(*until, now));
        self.forget_nodes(forgotten.map(|(known, _)| known.node).collect()).await?;
        let mut held: Vec<ShardLease> = holdings
            .into_iter()
            .filter(|(_, holding)| holding.owner == Some(member.node.0))
            .map(|(shard, holding)| ShardLease { shard, epoch: Epoch(holding.epoch) })
            .collect();
        held.sort_unstable();
        *self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = held.iter().map(|lease| lease.shard).collect();
        let mut members: Vec<Member> = nodes.members.into_iter().map(|(member, _)| member).collect();
        members.retain(|member| nodes.living.contains(&member.node));
        Ok(HeartbeatReply { now: now.saturating_add(Span::from_micros_clamped(nodes.ahead_micros)), members, held })
    }

    async fn acquire(&self, node: NodeId, shards: &[Shard]) -> StoreResult<Vec<ShardLease>> {
        let existing: Vec<Shard> = shards.iter().copied().filter(|shard| shard.0 < self.shards()).collect();
        let own = std::sync::Mutex::new(Vec::new());
        let taken = self
            .change_shards(&existing, |shard, holding, nodes| match holding.owner {
                _ if !nodes.living.contains(&node) => false,
                Some(owner) if owner == node.0 => {
                    let shard_lease = ShardLease { shard, epoch: Epoch(holding.epoch) };
                    own.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(shard_lease);
                    false
                }
                Some(owner) if nodes.living.contains(&NodeId(owner)) => false,
                _ => {
                    holding.take(node, &nodes.known);
                    true
                }
            })
            .await?;
        let mut leases = own.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        leases.extend(taken.into_iter().map(|(shard, holding)| ShardLease { shard, epoch: Epoch(holding.epoch) }));
        leases.sort_unstable();
        leases.dedup();
        Ok(leases)
    }

    async fn release(&self, node: NodeId, shard_leases: &[ShardLease]) -> StoreResult<()> {
        let shards: Vec<Shard> = shard_leases.iter().map(|shard_lease| shard_lease.shard).collect();
        let stands = |shard, holding: &Holding| shard_leases.contains(&ShardLease { shard, epoch: Epoch(holding.epoch) });
        self.change_shards(&shards, |shard, holding, _| {
            let is_given = holding.owner == Some(node.0) && stands(shard, holding);
            if is_given {
                holding.owner = None;
            }
            is_given
        })
        .await?;
        Ok(())
    }

    async fn leave(&self, node: NodeId) -> StoreResult<()> {
        let held = self.all_holdings().await?.into_iter().filter(|(_, holding)| holding.owner == Some(node.0));
        let shards: Vec<Shard> = held.map(|(shard, _)| shard).collect();
        self.change_shards(&shards, |_, holding, _| {
            let is_given = holding.owner == Some(node.0);
            if is_given {
                holding.owner = None;
            }
            is_given
        })
        .await?;
        self.forget_nodes(vec![node]).await
    }

    async fn nudge(&self, entries: &[DueEntry]) -> StoreResult<()> {
        self.send_nudge(entries).await
    }

    async fn nudged(&self) -> StoreResult<Vec<DueEntry>> {
        self.await_nudge().await
    }
}

#[async_trait]
impl HealthStore for PartitionedStore {
    async fn ping(&self) -> StoreResult<()> {
        self.database.ping().await
    }

    async fn probe(&self) -> StoreResult<()> {
        let (partition, key) = (layout::meta(), b"probe".to_vec());
        let put = self.put(key.clone(), Condition::Any, Vec::new());
        self.write_one(&partition, put).await?;
        let removal = Write { key, condition: Condition::Any, change: Change::Delete, before: Positions::default() };
        self.write_one(&partition, removal).await.map(drop)
    }

    async fn cluster(&self) -> StoreResult<Cluster> {
        self.cluster.get(&*self.clock, self.see_cluster()).await
    }
}

impl PartitionedStore {
    async fn see_cluster(&self) -> StoreResult<Cluster> {
        let now = self.now();
        let (nodes, holdings, oldest_overdue) = tokio::join!(self.nodes(), self.all_holdings(), self.oldest_overdue(now));
        let (nodes, holdings) = (nodes?, holdings?);
        let state = |shard: Shard| {
            let holding = holdings.iter().find(|(held, _)| *held == shard).map(|(_, holding)| holding);
            ShardState {
                shard,
                epoch: Epoch(holding.map_or(0, |holding| holding.epoch)),
                owner: holding.and_then(|holding| holding.owner).map(NodeId),
            }
        };
        Ok(Cluster {
            now,
            members: nodes.members.into_iter().filter(|(_, lease_until)| !is_forgotten(*lease_until, now)).collect(),
            shards: self.all_shards().map(state).collect(),
            oldest_overdue: oldest_overdue?,
        })
    }
}
