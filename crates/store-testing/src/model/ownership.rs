use std::collections::BTreeMap;

use domain::{Shard, Span, Timestamp};
use store::{DEAD_MEMBERS_KEPT, Epoch, HeartbeatReply, Member, NodeId, ShardLease, ShardState};

/// Which nodes live, which shards they hold, and which they held before.
#[derive(Default)]
pub(super) struct Ownership {
    members: BTreeMap<NodeId, (Member, Timestamp)>,
    shards: BTreeMap<Shard, Holding>,
    /// Every node that ever took a shard, by the epoch that began with it.
    history: BTreeMap<(Shard, Epoch), NodeId>,
}

/// The last acquisition of a shard.
#[derive(Clone, Copy)]
struct Holding {
    epoch: Epoch,
    /// `None` once it was given back.
    owner: Option<NodeId>,
}

impl Ownership {
    pub(super) fn is_current(&self, shard_lease: ShardLease) -> bool {
        self.shards.get(&shard_lease.shard).is_some_and(|holding| holding.epoch == shard_lease.epoch)
    }

    /// Whether the node that began this shard lease still lives.
    pub(super) fn is_alive_who_held(&self, shard_lease: ShardLease, now: Timestamp) -> bool {
        self.history.get(&(shard_lease.shard, shard_lease.epoch)).is_some_and(|node| self.is_alive(*node, now))
    }

    fn is_alive(&self, node: NodeId, now: Timestamp) -> bool {
        self.members.get(&node).is_some_and(|(_, lease_until)| *lease_until > now)
    }

    pub(super) fn heartbeat(&mut self, member: &Member, now: Timestamp, lease: Span) -> HeartbeatReply {
        self.members.insert(member.node, (member.clone(), now.saturating_add(lease)));
        let alive = self.members.values().filter(|(_, lease_until)| *lease_until > now);
        let held = self.shards.iter().filter(|(_, holding)| holding.owner == Some(member.node));
        HeartbeatReply {
            now,
            members: alive.map(|(member, _)| member.clone()).collect(),
            held: held.map(|(shard, holding)| ShardLease { shard: *shard, epoch: holding.epoch }).collect(),
        }
    }

    pub(super) fn acquire(&mut self, node: NodeId, shard: Shard, now: Timestamp) -> Option<ShardLease> {
        if !self.is_alive(node, now) {
            return None;
        }
        let epoch = match self.shards.get(&shard).copied() {
            None => Epoch(1),
            Some(Holding { epoch, owner }) => match owner {
                Some(owner) if owner == node => epoch,
                Some(owner) if self.is_alive(owner, now) => return None,
                _ => Epoch(epoch.0 + 1),
            },
        };
        self.shards.insert(shard, Holding { epoch, owner: Some(node) });
        self.history.insert((shard, epoch), node);
        Some(ShardLease { shard, epoch })
    }

    pub(super) fn release(&mut self, node: NodeId, shard_leases: &[ShardLease]) {
        for shard_lease in shard_leases {
            let holding = self.shards.get_mut(&shard_lease.shard);
            if let Some(holding) = holding.filter(|holding| holding.epoch == shard_lease.epoch && holding.owner == Some(node)) {
                holding.owner = None;
            }
        }
    }

    pub(super) fn leave(&mut self, node: NodeId) {
        self.members.remove(&node);
        self.history.retain(|_, holder| *holder != node);
        self.shards.values_mut().filter(|holding| holding.owner == Some(node)).for_each(|holding| holding.owner = None);
    }

    pub(super) fn members(&self, now: Timestamp) -> Vec<(Member, Timestamp)> {
        let is_remembered = |lease_until: Timestamp| lease_until.saturating_add(DEAD_MEMBERS_KEPT) > now;
        self.members.values().filter(|(_, lease_until)| is_remembered(*lease_until)).cloned().collect()
    }

    pub(super) fn state(&self, shard: Shard) -> ShardState {
        let holding = self.shards.get(&shard);
        ShardState {
            shard,
            epoch: holding.map_or(Epoch(0), |holding| holding.epoch),
            owner: holding.and_then(|holding| holding.owner),
        }
    }
}
