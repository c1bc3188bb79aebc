//! `GET /cluster`: the processes that share the work.

use std::collections::HashMap;

use commands::{Cluster, Member, NodeId, NodeLoad, ShardMove};
use domain::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    auth::Permitted,
    envelope::{Answer, Envelope},
    error::ApiError,
};

/// Who shares the work, by the database's clock.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Cluster)]
pub(crate) struct ClusterView {
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T10:30:00Z")]
    now: Timestamp,
    nodes: Vec<NodeView>,
    shards: Vec<ShardView>,
    /// How late the oldest timer is that should have fired and waits; 0 when there is none.
    #[schema(minimum = 0, example = 0.0)]
    oldest_overdue_seconds: f64,
    /// The latest acquisitions of shards, the latest first, as far as the answering process has seen them: it looks every ten seconds
    /// and at each such request.
    #[schema(max_items = 50)]
    moves: Vec<ShardMoveView>,
}

/// A process.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Node)]
struct NodeView {
    /// A new one for every start.
    #[schema(value_type = String, format = "uuid", example = "5f0c9a3e-7e58-4f1e-9f0e-2f1f3a6b8c11")]
    id: String,
    #[schema(example = "timer-1:8080")]
    name: String,
    #[schema(example = "0.1.0")]
    version: String,
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T10:30:00Z")]
    started_at: Timestamp,
    /// Whether its lease has not run out.
    alive: bool,
    /// Whether it wants shards: not while it stops, and not while its clock is wrong.
    takes_shards: bool,
    /// Seconds until it counts as dead unless it is heard of; 0 once it does.
    #[schema(minimum = 0, example = 3.4)]
    lease_seconds_left: f64,
    /// How far its clock is ahead of the database's. Beyond half a second, either way, it takes no shards.
    #[schema(example = 0.002)]
    clock_skew_seconds: f64,
    /// How many shards it holds.
    #[schema(minimum = 0, example = 22)]
    shards: usize,
    /// Calls under way, as it last wrote it down.
    #[schema(minimum = 0, example = 3)]
    in_flight: u32,
    /// Calls that it began in the last whole minute, per second.
    #[schema(minimum = 0, example = 41.5)]
    fires_per_second: f64,
}

/// A part of the timers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Shard)]
struct ShardView {
    #[schema(minimum = 0, example = 0)]
    shard: u16,
    /// How many owners it has had.
    #[schema(minimum = 0, example = 1)]
    epoch: i64,
    /// The node that holds it, if one does.
    #[schema(value_type = Option<String>, required = true, format = "uuid")]
    owner: Option<String>,
}

/// A shard that a node has acquired.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ShardMove)]
struct ShardMoveView {
    /// When it was seen.
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T10:30:00Z")]
    at: Timestamp,
    #[schema(minimum = 0, example = 0)]
    shard: u16,
    #[schema(minimum = 1, example = 2)]
    epoch: i64,
    /// The name of the former owner, if there is one.
    #[schema(required = true, example = "timer-1:8080")]
    from: Option<String>,
    /// The name of the new owner.
    #[schema(example = "timer-2:8080")]
    to: String,
}

/// Cluster
///
/// The processes on this database, what each holds, and how late the oldest waiting timer is. For the administrator's key only.
#[utoipa::path(
    get, path = "/cluster", tag = "service", operation_id = "cluster", security(("ApiKey" = [])),
    responses((status = 200, description = "How things stand: `success`.", body = Envelope<ClusterView>))
)]
pub(crate) async fn cluster(Permitted(commands): Permitted) -> Result<Answer<ClusterView>, ApiError> {
    Ok(Answer::ok("success", view(commands.cluster().await?, commands.shard_moves()?, &commands.node_loads().await?)))
}

fn name_of(node: NodeId) -> String {
    Uuid::from_u128(node.0).to_string()
}

fn view(cluster: Cluster, moves: Vec<ShardMove>, loads: &HashMap<NodeId, NodeLoad>) -> ClusterView {
    let Cluster { now, members, shards, oldest_overdue } = cluster;
    let seconds_until = |at: Timestamp| at.since(now).as_duration().as_secs_f64();
    let load = |node: NodeId| loads.get(&node).copied().unwrap_or_default();
    let node = |(member, lease_until): (Member, Timestamp)| NodeView {
        id: name_of(member.node),
        name: member.name,
        version: member.version,
        started_at: member.started_at,
        alive: lease_until > now,
        takes_shards: member.takes_shards,
        lease_seconds_left: seconds_until(lease_until),
        clock_skew_seconds: member.skew_micros as f64 / 1e6,
        shards: shards.iter().filter(|state| state.owner == Some(member.node)).count(),
        in_flight: load(member.node).in_flight,
        fires_per_second: load(member.node).fires_per_second,
    };
    ClusterView {
        now,
        nodes: members.into_iter().map(node).collect(),
        oldest_overdue_seconds: oldest_overdue.map_or(0.0, |at| now.since(at).as_duration().as_secs_f64()),
        shards: shards
            .into_iter()
            .map(|state| ShardView { shard: state.shard.0, epoch: state.epoch.0, owner: state.owner.map(name_of) })
            .collect(),
        moves: moves
            .into_iter()
            .map(|ShardMove { at, shard, epoch, from, to }| ShardMoveView { at, shard: shard.0, epoch: epoch.0, from, to })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::rig::Rig;

    #[tokio::test]
    async fn the_administrator_sees_nodes_shards_and_what_is_late() {
        let rig = Rig::new();
        rig.created(r#"{"seconds":90,"url":"http://a"}"#).await;
        assert_eq!(
            rig.get("/cluster").await.json()["data"],
            json!({"now": "2030-01-01T00:00:00Z", "nodes": [], "shards": [{"shard": 0, "epoch": 0, "owner": null}],
                "oldest_overdue_seconds": 0.0, "moves": []})
        );
        rig.claim_all().await;
        rig.created(r#"{"seconds":10,"url":"http://a"}"#).await;
        rig.clock.advance(domain::Span::from_millis(12_500));
        let seen = rig.get("/cluster").await.json()["data"].clone();
        let node = "00000000-0000-0000-0000-000000000001";
        assert_eq!(seen["shards"], json!([{"shard": 0, "epoch": 1, "owner": node}]));
        assert_eq!((&seen["oldest_overdue_seconds"], &seen["nodes"][0]["lease_seconds_left"]), (&json!(2.5), &json!(47.5)));
        assert_eq!((&seen["nodes"][0]["in_flight"], &seen["nodes"][0]["fires_per_second"]), (&json!(0), &json!(0.0)));
        assert_eq!((&seen["nodes"][0]["id"], &seen["nodes"][0]["shards"]), (&json!(node), &json!(1)));
        let tenant = rig.issued("null", "write").await;
        assert_eq!(rig.call_with(&tenant, "GET", "/cluster", "").await.refused(403, 4), "this takes the administrator's key");
    }
}
