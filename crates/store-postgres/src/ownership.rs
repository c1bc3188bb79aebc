//! Who holds which shard, and until when by the database's clock.

use domain::{Shard, Span};
use sqlx::{PgConnection, Row, postgres::PgRow, types::Uuid};
use store::{Epoch, NodeId, Tenure};

use crate::{
    claim::{TenureColumns, clock, lease_column},
    failure::{Failure, Step},
    lane::Call,
};

pub(crate) const ACQUIRE: &str = concat!(
    "WITH ",
    clock!(),
    "
    UPDATE shard s
    SET epoch = CASE WHEN s.owner = $1::uuid THEN s.epoch ELSE s.epoch + 1 END,
        owner = $1::uuid, lease_until = (SELECT now FROM clock) + $3::bigint
    WHERE s.shard = ANY ($2::smallint[])
        AND (s.owner IS NULL OR s.owner = $1::uuid OR s.lease_until <= (SELECT now FROM clock))
    RETURNING s.shard, s.epoch"
);

pub(crate) const RENEW: &str = concat!(
    "WITH ",
    clock!(),
    "
    UPDATE shard s
    SET lease_until = (SELECT now FROM clock) + $4::bigint
    FROM unnest($2::smallint[], $3::bigint[]) AS t (shard, epoch)
    WHERE s.shard = t.shard AND s.epoch = t.epoch AND s.owner = $1::uuid
    RETURNING s.shard, s.epoch"
);

pub(crate) const RELEASE: &str = "
    UPDATE shard s
    SET owner = NULL, lease_until = 0
    FROM unnest($2::smallint[], $3::bigint[]) AS t (shard, epoch)
    WHERE s.shard = t.shard AND s.epoch = t.epoch AND s.owner = $1::uuid";

pub struct Acquire {
    pub node: NodeId,
    pub shards: Vec<i16>,
    pub lease_micros: i64,
}

impl Acquire {
    /// Sorted: two nodes that want the same shards take them in the same order.
    pub fn new(node: NodeId, shards: &[Shard], lease: Span) -> Self {
        let mut shards: Vec<i16> = shards.iter().map(|shard| shard.0.cast_signed()).collect();
        shards.sort_unstable();
        Self { node, shards, lease_micros: lease_column(lease) }
    }
}

impl Call for Acquire {
    type Answer = Vec<Tenure>;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Vec<Tenure>, Failure> {
        let rows = sqlx::query(ACQUIRE)
            .bind(Uuid::from_u128(self.node.0))
            .bind(&self.shards)
            .bind(self.lease_micros)
            .fetch_all(session)
            .await
            .or_unknown()?;
        tenures(&rows)
    }
}

pub struct Renew {
    pub node: NodeId,
    pub tenures: TenureColumns,
    pub lease_micros: i64,
}

impl Call for Renew {
    type Answer = Vec<Tenure>;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Vec<Tenure>, Failure> {
        let rows = sqlx::query(RENEW)
            .bind(Uuid::from_u128(self.node.0))
            .bind(&self.tenures.shards)
            .bind(&self.tenures.epochs)
            .bind(self.lease_micros)
            .fetch_all(session)
            .await
            .or_unknown()?;
        tenures(&rows)
    }
}

pub struct Release {
    pub node: NodeId,
    pub tenures: TenureColumns,
}

impl Call for Release {
    type Answer = ();
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<(), Failure> {
        sqlx::query(RELEASE)
            .bind(Uuid::from_u128(self.node.0))
            .bind(&self.tenures.shards)
            .bind(&self.tenures.epochs)
            .execute(session)
            .await
            .or_unknown()?;
        Ok(())
    }
}

fn tenures(rows: &[PgRow]) -> Result<Vec<Tenure>, Failure> {
    let tenure = |row: &PgRow| {
        let shard = Shard(row.try_get::<i16, _>("shard")?.cast_unsigned());
        Ok(Tenure { shard, epoch: Epoch(row.try_get("epoch")?) })
    };
    let mut tenures = rows.iter().map(tenure).collect::<Result<Vec<_>, sqlx::Error>>().or_unknown()?;
    tenures.sort_unstable_by_key(|tenure| tenure.shard);
    Ok(tenures)
}
