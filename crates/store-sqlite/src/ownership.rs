//! Who works on a shard. One file has one process, but the promises are those of every store.
//!
//! A process that opens the file knows that every process before it is gone. So who lives, and who held what before, is kept in
//! memory: a heartbeat several times a second must not cost a write to the disk each. Only the epochs, which must never fall, and
//! their owners are in the file.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::{Shard, Span, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};
use store::{Cluster, DEAD_MEMBERS_KEPT, Epoch, Member, NodeId, ShardLease, ShardState};
use store_sql::{column, sql};

use crate::{failure::Failure, rows::Id, tally::Tally, writer::Write};

pub const EPOCH: &str = sql!("sql/epoch.sql");
pub const HOLDING: &str = sql!("sql/holding.sql");
pub const TAKE: &str = sql!("sql/take_shard.sql");
pub const RELEASE: &str = sql!("sql/release_shard.sql");
const LEAVE: &str = sql!("sql/leave.sql");
const HELD: &str = sql!("sql/held.sql");
const SHARDS: &str = sql!("sql/shards.sql");
pub const OVERDUE: &str = sql!("sql/overdue.sql");

/// Whether no node has taken the shard since.
pub fn is_current(connection: &Connection, shard_lease: ShardLease) -> Result<bool, Failure> {
    let epoch: Option<i64> =
        connection.prepare_cached(EPOCH)?.query_row([shard_lease.shard.0], |row| row.get(column!(EPOCH, "epoch"))).optional()?;
    Ok(epoch == Some(shard_lease.epoch.0))
}

/// The smallest read there is that needs the file.
pub fn look(connection: &Connection) -> Result<(), Failure> {
    Ok(connection.prepare_cached(EPOCH)?.query_row([0], |_| Ok(()))?)
}

/// Every node that ever lived in this process, and what it held.
#[derive(Clone, Default)]
pub struct Nodes(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    members: BTreeMap<NodeId, (Member, Timestamp)>,
    /// Who took a shard, by the epoch that began with it. An entry that was made by a transaction that then failed does no harm:
    /// nothing was claimed in its epoch, and the node that takes the shard next makes it anew.
    history: BTreeMap<(Shard, Epoch), NodeId>,
}

impl Nodes {
    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing in here panics half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every node that lives, once this heartbeat has been noted.
    pub fn heartbeat(&self, member: &Member, now: Timestamp, lease: Span) -> Vec<Member> {
        let mut known = self.known();
        known.members.insert(member.node, (member.clone(), now.saturating_add(lease)));
        known.members.values().filter(|(_, lease_until)| *lease_until > now).map(|(member, _)| member.clone()).collect()
    }

    pub fn is_alive(&self, node: NodeId, now: Timestamp) -> bool {
        self.known().is_alive(node, now)
    }

    /// Whether the node that began this shard lease still lives.
    pub fn is_alive_who_held(&self, shard_lease: ShardLease, now: Timestamp) -> bool {
        let known = self.known();
        known.history.get(&(shard_lease.shard, shard_lease.epoch)).is_some_and(|node| known.is_alive(*node, now))
    }

    /// Nodes that are long dead are forgotten at the same time, with all they held.
    fn remember(&self, shard_lease: ShardLease, node: NodeId, now: Timestamp) {
        let mut known = self.known();
        let Known { members, history } = &mut *known;
        members.retain(|_, (_, lease_until)| is_remembered(*lease_until, now));
        history.retain(|_, holder| members.contains_key(holder));
        history.insert((shard_lease.shard, shard_lease.epoch), node);
    }

    fn forget(&self, node: NodeId) {
        let mut known = self.known();
        known.members.remove(&node);
        known.history.retain(|_, holder| *holder != node);
    }

    fn members(&self, now: Timestamp) -> Vec<(Member, Timestamp)> {
        let known = self.known();
        known.members.values().filter(|(_, lease_until)| is_remembered(*lease_until, now)).cloned().collect()
    }
}

impl Known {
    fn is_alive(&self, node: NodeId, now: Timestamp) -> bool {
        self.members.get(&node).is_some_and(|(_, lease_until)| *lease_until > now)
    }
}

fn is_remembered(lease_until: Timestamp, now: Timestamp) -> bool {
    lease_until.saturating_add(DEAD_MEMBERS_KEPT) > now
}

pub struct Acquire {
    pub node: NodeId,
    pub shards: Vec<Shard>,
    pub now: Timestamp,
    pub nodes: Nodes,
}

impl Write for Acquire {
    type Answer = Vec<ShardLease>;
    const NAME: &'static str = "acquire";

    fn rows(&self) -> usize {
        self.shards.len()
    }

    fn run(&self, connection: &Connection, _: &mut Tally) -> Result<Vec<ShardLease>, Failure> {
        if !self.nodes.is_alive(self.node, self.now) {
            return Ok(Vec::new());
        }
        let mut holding = connection.prepare_cached(HOLDING)?;
        let mut take = connection.prepare_cached(TAKE)?;
        let mut shard_leases = Vec::new();
        for shard in &self.shards {
            let found = holding
                .query_row([shard.0], |row| {
                    Ok((row.get::<_, i64>(column!(HOLDING, "epoch"))?, row.get::<_, Option<Id>>(column!(HOLDING, "owner"))?))
                })
                .optional()?;
            let Some((epoch, owner)) = found else { continue };
            let owner = owner.map(node);
            if owner == Some(self.node) {
                shard_leases.push(ShardLease { shard: *shard, epoch: Epoch(epoch) });
            } else if owner.is_none_or(|owner| !self.nodes.is_alive(owner, self.now)) {
                let shard_lease = ShardLease { shard: *shard, epoch: Epoch(epoch + 1) };
                take.execute(params![shard.0, shard_lease.epoch.0, column(self.node)])?;
                self.nodes.remember(shard_lease, self.node, self.now);
                shard_leases.push(shard_lease);
            }
        }
        Ok(shard_leases)
    }
}

pub struct Release {
    pub node: NodeId,
    pub shard_leases: Vec<ShardLease>,
}

impl Write for Release {
    type Answer = ();
    const NAME: &'static str = "release";

    fn rows(&self) -> usize {
        self.shard_leases.len()
    }

    fn run(&self, connection: &Connection, _: &mut Tally) -> Result<(), Failure> {
        let mut release = connection.prepare_cached(RELEASE)?;
        for shard_lease in &self.shard_leases {
            release.execute(params![shard_lease.shard.0, shard_lease.epoch.0, column(self.node)])?;
        }
        Ok(())
    }
}

pub struct Leave {
    pub node: NodeId,
    pub nodes: Nodes,
}

impl Write for Leave {
    type Answer = ();
    const NAME: &'static str = "leave";

    fn rows(&self) -> usize {
        1
    }

    fn run(&self, connection: &Connection, _: &mut Tally) -> Result<(), Failure> {
        self.nodes.forget(self.node);
        connection.prepare_cached(LEAVE)?.execute([column(self.node)])?;
        Ok(())
    }
}

/// What a node holds, by shard.
pub fn held(connection: &Connection, node: NodeId) -> Result<Vec<ShardLease>, Failure> {
    let mut statement = connection.prepare_cached(HELD)?;
    let shard_leases = statement.query_map([column(node)], |row| {
        Ok(ShardLease { shard: Shard(row.get(column!(HELD, "shard"))?), epoch: Epoch(row.get(column!(HELD, "epoch"))?) })
    })?;
    Ok(shard_leases.collect::<rusqlite::Result<_>>()?)
}

/// All nodes and shards, as the file and this process know it.
pub fn cluster(connection: &Connection, nodes: &Nodes, now: Timestamp) -> Result<Cluster, Failure> {
    let snapshot = connection.unchecked_transaction()?;
    let state = |row: &rusqlite::Row<'_>| {
        let owner = row.get::<_, Option<Id>>(column!(SHARDS, "owner"))?.map(node);
        Ok(ShardState {
            shard: Shard(row.get(column!(SHARDS, "shard"))?),
            epoch: Epoch(row.get(column!(SHARDS, "epoch"))?),
            owner,
        })
    };
    let shards: Vec<_> = snapshot.prepare_cached(SHARDS)?.query_map([], state)?.collect::<rusqlite::Result<_>>()?;
    let mut overdue = snapshot.prepare_cached(OVERDUE)?;
    let mut oldest_overdue: Option<Timestamp> = None;
    for state in &shards {
        let first = overdue
            .query_row(params![state.shard.0, now.minute(), now.as_micros()], |row| row.get(column!(OVERDUE, "at")))
            .optional()?
            .map(Timestamp::from_micros);
        oldest_overdue = [oldest_overdue, first].into_iter().flatten().min();
    }
    Ok(Cluster { now, members: nodes.members(now), shards, oldest_overdue })
}

const fn column(node: NodeId) -> [u8; 16] {
    node.0.to_be_bytes()
}

const fn node(id: Id) -> NodeId {
    NodeId(u128::from_be_bytes(id.bytes()))
}
