//! Heartbeats, and what the database knows of all nodes. Each is one statement that answers with rows of several kinds:
//! one with the time, one for each node, one for each shard.

use domain::{Span, Timestamp};
use sqlx::{PgConnection, Row, postgres::PgRow, types::Uuid};
use store::{Cluster, DEAD_MEMBERS_KEPT, HeartbeatReply, Member, NodeId, ShardState};
use store_sql::{Call, sql};

use crate::{
    claim::lease_column,
    connector::Connector,
    failure::{Failure, Step},
    ownership::{shard_lease, uuid},
    rows::text_column,
};

pub(crate) const HEARTBEAT: &str = sql!("sql/heartbeat.sql");
pub(crate) const CLUSTER: &str = sql!("sql/cluster.sql");

pub struct Heartbeat {
    pub member: Member,
    pub lease: Span,
}

impl Call<Connector> for Heartbeat {
    type Answer = HeartbeatReply;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<HeartbeatReply, Failure> {
        let Member { node, name, version, started_at, takes_shards, skew_micros } = &self.member;
        let rows = sqlx::query(HEARTBEAT)
            .bind(uuid(*node))
            .bind(text_column(name))
            .bind(text_column(version))
            .bind(started_at.as_micros())
            .bind(takes_shards)
            .bind(skew_micros)
            .bind(lease_column(self.lease))
            .fetch_all(session)
            .await
            .or_unknown()?;
        reply(&rows).or_unknown()
    }
}

fn reply(rows: &[PgRow]) -> Result<HeartbeatReply, sqlx::Error> {
    let mut reply = HeartbeatReply { now: Timestamp::MIN, members: Vec::new(), held: Vec::new() };
    for row in rows {
        match About::of(row)? {
            About::Time(now) => reply.now = now,
            About::Member(member, _) => reply.members.push(member),
            About::Shard => reply.held.push(shard_lease(row)?),
        }
    }
    reply.members.sort_unstable_by_key(|member| member.node);
    reply.held.sort_unstable_by_key(|shard_lease| shard_lease.shard);
    Ok(reply)
}

pub struct Look;

impl Call<Connector> for Look {
    type Answer = Cluster;
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<Cluster, Failure> {
        let rows = sqlx::query(CLUSTER).bind(DEAD_MEMBERS_KEPT.as_micros()).fetch_all(session).await.or_not_done()?;
        cluster(&rows).or_not_done()
    }
}

fn cluster(rows: &[PgRow]) -> Result<Cluster, sqlx::Error> {
    let mut cluster = Cluster { now: Timestamp::MIN, members: Vec::new(), shards: Vec::new(), oldest_overdue: None };
    for row in rows {
        match About::of(row)? {
            About::Time(now) => {
                cluster.now = now;
                cluster.oldest_overdue = row.try_get::<Option<i64>, _>("overdue")?.map(Timestamp::from_micros);
            }
            About::Member(member, lease_until) => cluster.members.push((member, lease_until)),
            About::Shard => {
                let (shard_lease, owner) = (shard_lease(row)?, row.try_get::<Option<Uuid>, _>("owner")?);
                let owner = owner.map(|owner| NodeId(owner.as_u128()));
                cluster.shards.push(ShardState { shard: shard_lease.shard, epoch: shard_lease.epoch, owner });
            }
        }
    }
    cluster.members.sort_unstable_by_key(|(member, _)| member.node);
    cluster.shards.sort_unstable_by_key(|state| state.shard);
    Ok(cluster)
}

/// What a row is about.
enum About {
    Time(Timestamp),
    Member(Member, Timestamp),
    Shard,
}

impl About {
    fn of(row: &PgRow) -> Result<Self, sqlx::Error> {
        if let Some(now) = row.try_get::<Option<i64>, _>("now")? {
            return Ok(Self::Time(Timestamp::from_micros(now)));
        }
        let Some(id) = row.try_get::<Option<Uuid>, _>("id")? else { return Ok(Self::Shard) };
        let member = Member {
            node: NodeId(id.as_u128()),
            name: row.try_get("name")?,
            version: row.try_get("version")?,
            started_at: Timestamp::from_micros(row.try_get("started_at")?),
            takes_shards: row.try_get("takes_shards")?,
            skew_micros: row.try_get("skew_micros")?,
        };
        Ok(Self::Member(member, Timestamp::from_micros(row.try_get("lease_until")?)))
    }
}
