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

use crate::{
    bulkhead::Call,
    claim::{ShardLeaseColumns, clock},
    failure::{Failure, Step},
};

/// Decides by one snapshot who is dead, then takes only what nobody has taken since: a row that had to be waited for is looked at
/// again as it is now, but its new owner may have begun to live after the snapshot, and would look dead. The epoch tells.
///
/// A node that was dead in the snapshot may live again when its shards are taken, and be told by that heartbeat that it
/// still holds them. For what it claims from then on that is harmless. Until this commits, its shard leases are current, and what it claims
/// under them stays its own, for it lives. Afterwards it claims nothing, because the epoch has risen, and its next heartbeat tells it
/// so. But what it had claimed before may be recovered until that heartbeat commits: whoever was dead believes only a second one.
///
/// Nodes that are long dead are forgotten here, because this is rare. Those that somebody else is at are left to them, so
/// that nobody waits for a node while holding a shard; and those that still hold one are not forgotten, for they may live again and
/// go on under a shard lease that must be known.
pub(crate) const ACQUIRE: &str = concat!(
    "WITH ",
    clock!(),
    ", alive AS MATERIALIZED (
        SELECT n.id FROM node n WHERE n.lease_until > (SELECT now FROM clock)
    ), free AS MATERIALIZED (
        SELECT s.shard, s.epoch, s.owner
        FROM shard s
        WHERE s.shard = ANY ($2::smallint[]) AND ($1::uuid IN (SELECT id FROM alive)) IS TRUE
            AND (s.owner IS NULL OR s.owner = $1::uuid OR (s.owner IN (SELECT id FROM alive)) IS NOT TRUE)
    ), taken AS (
        UPDATE shard s
        SET epoch = s.epoch + (s.owner IS DISTINCT FROM $1::uuid)::integer, owner = $1::uuid
        FROM free f
        WHERE s.shard = ANY (ARRAY[f.shard]) AND s.epoch = f.epoch AND (s.owner IS NULL OR s.owner IS NOT DISTINCT FROM f.owner)
        RETURNING s.shard, s.epoch
    ), remembered AS (
        INSERT INTO tenure (shard, epoch, node) SELECT shard, epoch, $1::uuid FROM taken ON CONFLICT (shard, epoch) DO NOTHING
    ), dead AS MATERIALIZED (
        SELECT n.id
        FROM node n
        WHERE n.lease_until <= (SELECT now FROM clock) - $3::bigint AND NOT EXISTS (
            SELECT FROM shard s WHERE s.owner = n.id AND (s.shard IN (SELECT shard FROM taken)) IS NOT TRUE
        )
        FOR UPDATE OF n SKIP LOCKED
    ), gone AS (
        DELETE FROM node n USING dead WHERE n.id = ANY (ARRAY[dead.id]) RETURNING n.id
    ), forgotten AS (
        DELETE FROM tenure h USING gone WHERE h.node = ANY (ARRAY[gone.id])
    )
    SELECT shard, epoch FROM taken"
);

pub(crate) const RELEASE: &str = "
    UPDATE shard s
    SET owner = NULL
    FROM unnest($2::smallint[], $3::bigint[]) AS t (shard, epoch)
    WHERE s.shard = ANY (ARRAY[t.shard]) AND s.epoch = t.epoch AND s.owner = $1::uuid";

/// What an acquisition that is still under way takes afterwards belongs to a node that is not there, and so to nobody.
pub(crate) const LEAVE: &str = "
    WITH gone AS (
        DELETE FROM node WHERE id = $1::uuid
    ), forgotten AS (
        DELETE FROM tenure WHERE node = $1::uuid
    )
    UPDATE shard SET owner = NULL WHERE owner = $1::uuid";

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

impl Call for Acquire {
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

impl Call for Release {
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

impl Call for Leave {
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
