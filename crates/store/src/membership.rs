use domain::{Shard, Span, Timestamp};

use crate::{Epoch, NodeId, ShardLease};

/// How long a node whose lease ran out is still shown, and its shard leases remembered.
pub const DEAD_MEMBERS_KEPT: Span = Span::from_secs(3600);

/// A process that shares the work, as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub node: NodeId,
    /// What people call it: its host and port.
    pub name: String,
    pub version: String,
    pub started_at: Timestamp,
    /// Whether it wants shards: not while it stops, and not while its clock is wrong.
    pub takes_shards: bool,
    /// How far its clock is ahead of the database's, in microseconds.
    pub skew_micros: i64,
}

/// How things stand for one node, by the database's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeartbeatReply {
    /// What the database's clock says.
    pub now: Timestamp,
    /// The nodes whose lease has not run out, the node itself included, by node id.
    pub members: Vec<Member>,
    /// What the node holds, by shard.
    pub held: Vec<ShardLease>,
}

/// The whole cluster, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    pub now: Timestamp,
    /// Sorted by node id, each with the end of its lease. Those whose lease ran out [`DEAD_MEMBERS_KEPT`] ago are left out.
    pub members: Vec<(Member, Timestamp)>,
    /// Every shard, in order.
    pub shards: Vec<ShardState>,
    /// When the oldest pending timer was due, if one is overdue.
    pub oldest_overdue: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardState {
    pub shard: Shard,
    /// 0 if no node ever had it.
    pub epoch: Epoch,
    /// The last node that took it and has not given it back. It may be dead.
    pub owner: Option<NodeId>,
}

impl Member {
    /// One that wants shards and has nothing else to say.
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            name: String::new(),
            version: String::new(),
            started_at: Timestamp::from_micros(0),
            takes_shards: true,
            skew_micros: 0,
        }
    }
}
