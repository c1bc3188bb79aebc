//! Heartbeats, and what the database knows of all nodes: statements that answer with rows of two kinds, one for each node and one for
//! each shard.

use domain::{Span, Timestamp};
use sqlx::{Row, mysql::MySqlRow, types::Uuid};
use store::{Cluster, DEAD_MEMBERS_KEPT, HeartbeatReply, Member, NodeId, ShardState};
use store_sql::{Call, sql};

use crate::{
    claim::lease_column,
    connector::Connector,
    failure::{Failure, Step},
    ownership::{shard_lease, uuid},
    session::Session,
    transaction::{Holds, Transaction},
};

pub(crate) const HEARTBEAT: &str = sql!("sql/heartbeat.sql");
pub(crate) const MEMBERSHIP: &str = sql!("sql/membership.sql");
pub(crate) const OLDEST_OVERDUE: &str = sql!("sql/oldest_overdue.sql");
pub(crate) const CLUSTER: &str = sql!("sql/cluster.sql");

pub struct Heartbeat {
    pub member: Member,
    pub lease: Span,
}

impl Call<Connector> for Heartbeat {
    type Answer = HeartbeatReply;
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<HeartbeatReply, Failure> {
        let Member { node, name, version, started_at, takes_shards, skew_micros } = &self.member;
        let mut transaction = Transaction::begin(session, Holds::default()).await?;
        let now = transaction.now;
        sqlx::query(HEARTBEAT)
            .bind(uuid(*node))
            .bind(name)
            .bind(version)
            .bind(started_at.as_micros())
            .bind(takes_shards)
            .bind(skew_micros)
            .bind(now.saturating_add(lease_column(self.lease)))
            .execute(transaction.session())
            .await
            .or_not_done()?;
        let query = sqlx::query(MEMBERSHIP).bind(now).bind(uuid(*node));
        let rows = query.fetch_all(transaction.session()).await.or_not_done()?;
        let reply = reply(now, &rows).or_not_done()?;
        transaction.commit().await?;
        Ok(reply)
    }
}

fn reply(now: i64, rows: &[MySqlRow]) -> Result<HeartbeatReply, sqlx::Error> {
    let mut reply = HeartbeatReply { now: Timestamp::from_micros(now), members: Vec::new(), held: Vec::new() };
    for row in rows {
        match member(row)? {
            Some((member, _)) => reply.members.push(member),
            None => reply.held.push(shard_lease(row)?),
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

    async fn run(&self, session: &mut Session) -> Result<Cluster, Failure> {
        let mut transaction = Transaction::begin(session, Holds::default()).await?;
        let now = transaction.now;
        let shown_from = now.saturating_sub(DEAD_MEMBERS_KEPT.as_micros());
        let rows = sqlx::query(CLUSTER).bind(shown_from).fetch_all(transaction.session()).await.or_not_done()?;
        let mut cluster = cluster(now, &rows).or_not_done()?;
        let overdue: Option<i64> =
            sqlx::query_scalar(OLDEST_OVERDUE).bind(now).fetch_one(transaction.session()).await.or_not_done()?;
        cluster.oldest_overdue = overdue.map(Timestamp::from_micros);
        transaction.rollback().await?;
        Ok(cluster)
    }
}

fn cluster(now: i64, rows: &[MySqlRow]) -> Result<Cluster, sqlx::Error> {
    let now = Timestamp::from_micros(now);
    let mut cluster = Cluster { now, members: Vec::new(), shards: Vec::new(), oldest_overdue: None };
    for row in rows {
        if let Some(member) = member(row)? {
            cluster.members.push(member);
            continue;
        }
        let (shard_lease, owner) = (shard_lease(row)?, row.try_get::<Option<Uuid>, _>("owner")?);
        let owner = owner.map(|owner| NodeId(owner.as_u128()));
        cluster.shards.push(ShardState { shard: shard_lease.shard, epoch: shard_lease.epoch, owner });
    }
    cluster.members.sort_unstable_by_key(|(member, _)| member.node);
    cluster.shards.sort_unstable_by_key(|state| state.shard);
    Ok(cluster)
}

/// The node that a row is about, with the end of its lease; `None` for the row of a shard.
fn member(row: &MySqlRow) -> Result<Option<(Member, Timestamp)>, sqlx::Error> {
    let Some(id) = row.try_get::<Option<Uuid>, _>("id")? else { return Ok(None) };
    let member = Member {
        node: NodeId(id.as_u128()),
        name: row.try_get("name")?,
        version: row.try_get("version")?,
        started_at: Timestamp::from_micros(row.try_get("started_at")?),
        takes_shards: row.try_get("takes_shards")?,
        skew_micros: row.try_get("skew_micros")?,
    };
    Ok(Some((member, Timestamp::from_micros(row.try_get("lease_until")?))))
}
