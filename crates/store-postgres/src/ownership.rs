//! Who lives, by the database's clock, and who holds which shard.
//!
//! ```text
//!   node   ── heartbeat ──▶ lease_until        one small row, written in its place
//!   shard  ── acquire ────▶ epoch + 1, owner   held for as long as the owner's node lives
//!   shard lease ── acquire ────▶ (shard, epoch) was this node's
//! ```

use domain::Shard;
use sqlx::{PgConnection, Row, postgres::PgRow, types::Uuid};
use store::{DEAD_MEMBERS_KEPT, Epoch, NodeId, ShardLease};
use store_sql::{Call, sql};

use crate::{
    claim::ShardLeaseColumns,
    connector::Connector,
    failure::{Failure, Step},
};

pub(crate) const ACQUIRE: &str = sql!("sql/acquire.sql");
pub(crate) const RELEASE: &str = sql!("sql/release.sql");
pub(crate) const LEAVE: &str = sql!("sql/leave.sql");

pub struct Acquire {
    node: NodeId,
    shards: Vec<i16>,
}

impl Acquire {
    /// Sorted: two nodes that want the same shards take them in the same order.
    pub fn new(node: NodeId, shards: &[Shard]) -> Self {
        let mut shards: Vec<i16> = shards.iter().map(|shard| shard.0.cast_signed()).collect();
        shards.sort_unstable();
        Self { node, shards }
    }
}

impl Call<Connector> for Acquire {
    type Answer = Vec<ShardLease>;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Vec<ShardLease>, Failure> {
        let rows = sqlx::query(ACQUIRE)
            .bind(uuid(self.node))
            .bind(&self.shards)
            .bind(DEAD_MEMBERS_KEPT.as_micros())
            .fetch_all(session)
            .await
            .or_unknown()?;
        let mut shard_leases = rows.iter().map(shard_lease).collect::<Result<Vec<_>, sqlx::Error>>().or_unknown()?;
        shard_leases.sort_unstable_by_key(|shard_lease| shard_lease.shard);
        Ok(shard_leases)
    }
}

pub struct Release {
    node: NodeId,
    shard_leases: ShardLeaseColumns,
}

impl Release {
    /// Sorted, as acquisitions are.
    pub fn new(node: NodeId, shard_leases: &[ShardLease]) -> Self {
        let mut shard_leases = shard_leases.to_vec();
        shard_leases.sort_unstable_by_key(|shard_lease| shard_lease.shard);
        Self { node, shard_leases: ShardLeaseColumns::new(shard_leases) }
    }
}

impl Call<Connector> for Release {
    type Answer = ();
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<(), Failure> {
        sqlx::query(RELEASE)
            .bind(uuid(self.node))
            .bind(&self.shard_leases.shards)
            .bind(&self.shard_leases.epochs)
            .execute(session)
            .await
            .or_unknown()?;
        Ok(())
    }
}

pub struct Leave(pub NodeId);

impl Call<Connector> for Leave {
    type Answer = ();
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<(), Failure> {
        sqlx::query(LEAVE).bind(uuid(self.0)).execute(session).await.or_unknown()?;
        Ok(())
    }
}

pub const fn uuid(node: NodeId) -> Uuid {
    Uuid::from_u128(node.0)
}

/// The shard lease in a row with `shard` and `epoch`.
pub fn shard_lease(row: &PgRow) -> Result<ShardLease, sqlx::Error> {
    let shard = Shard(row.try_get::<i16, _>("shard")?.cast_unsigned());
    Ok(ShardLease { shard, epoch: Epoch(row.try_get("epoch")?) })
}
