//! Finding claims that their makers will not settle.

use std::{ops::Range, sync::Arc};

use sqlx::{PgConnection, Row, postgres::PgRow, types::Uuid};
use store::{Claimed, ShardLease, StoreResult};
use store_sql::{Call, ShardSearch, portions, sql};

use crate::{
    claim::{ShardLeaseColumns, claimed},
    connector::{Bulkhead, Connector},
    due::BEGINNING,
    failure::{Failure, Step},
};

/// How many rows of a shard one call looks at. Behind a destination that hangs there may be millions that are due and not
/// claimed.
const LOOKED_AT_MAX: i64 = 1_024;

pub(crate) const EXPIRED: &str = sql!("sql/expired.sql");
pub(crate) const READ_EXPIRED: &str = sql!("sql/read_expired.sql");

#[derive(Debug, Default)]
pub struct Search(ShardSearch<Position>);

/// The last row that was looked at: when it is due, and its id.
type Position = (i64, Uuid);

impl Search {
    /// Finds the claims first, then reads the timers they hold.
    pub async fn find(&self, bulkhead: &Bulkhead, shard_leases: &[ShardLease], limit: usize) -> StoreResult<Vec<Claimed>> {
        let mut found = Vec::new();
        for _ in 0..self.0.pages_max(shard_leases) {
            found = bulkhead.run(self.next(shard_leases)).await?;
            let is_more_to_look_at = self.go_on(&found, shard_leases, limit);
            found.retain(|found| found.is_left);
            found.truncate(limit);
            if !found.is_empty() || !is_more_to_look_at {
                break;
            }
        }
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let found = Arc::new(found);
        let portions = portions(found.len()).map(|portion| ReadExpired(Arc::clone(&found), portion)).collect();
        Ok(bulkhead.run_all(portions).await?.into_iter().flatten().collect())
    }

    fn next(&self, shard_leases: &[ShardLease]) -> FindExpired {
        let shard_leases = ShardLeaseColumns::new(shard_leases.iter().copied());
        let (ats, ids) = shard_leases.shards.iter().map(|shard| self.0.place(*shard).unwrap_or(BEGINNING)).unzip();
        FindExpired { shard_leases, ats, ids }
    }

    /// Says whether something is left to look at.
    fn go_on(&self, found: &[Found], shard_leases: &[ShardLease], limit: usize) -> bool {
        if found.iter().filter(|found| found.is_left).count() > limit {
            self.0.begin_anew();
            return false;
        }
        self.0.go_on(shard_leases, found.iter().filter(|found| found.is_last).map(|found| (found.shard, (found.at, found.id))))
    }
}

struct FindExpired {
    shard_leases: ShardLeaseColumns,
    ats: Vec<i64>,
    ids: Vec<Uuid>,
}

/// A row that was found.
#[derive(Debug)]
struct Found {
    shard: i16,
    at: i64,
    id: Uuid,
    claim: Option<i64>,
    /// Under which it may be settled.
    epoch: i64,
    /// It is the last that was looked at, and there may be more behind it.
    is_last: bool,
    /// Its maker will not settle it.
    is_left: bool,
}

impl Found {
    fn of(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            shard: row.try_get("shard")?,
            at: row.try_get("at")?,
            id: row.try_get("id")?,
            claim: row.try_get("claim")?,
            epoch: row.try_get("epoch")?,
            is_last: row.try_get("is_last")?,
            is_left: row.try_get("is_left")?,
        })
    }
}

impl Call<Connector> for FindExpired {
    type Answer = Vec<Found>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<Vec<Found>, Failure> {
        let rows = sqlx::query(EXPIRED)
            .bind(&self.shard_leases.shards)
            .bind(&self.shard_leases.epochs)
            .bind(&self.ats)
            .bind(&self.ids)
            .bind(LOOKED_AT_MAX)
            .fetch_all(session)
            .await
            .or_not_done()?;
        rows.iter().map(Found::of).collect::<Result<_, _>>().or_not_done()
    }
}

struct ReadExpired(Arc<Vec<Found>>, Range<usize>);

impl Call<Connector> for ReadExpired {
    type Answer = Vec<Claimed>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<Vec<Claimed>, Failure> {
        let found = &self.0[self.1.clone()];
        let rows = sqlx::query(READ_EXPIRED)
            .bind(found.iter().map(|found| found.shard).collect::<Vec<_>>())
            .bind(found.iter().map(|found| found.at).collect::<Vec<_>>())
            .bind(found.iter().map(|found| found.id).collect::<Vec<_>>())
            .bind(found.iter().map(|found| found.claim).collect::<Vec<_>>())
            .bind(found.iter().map(|found| found.epoch).collect::<Vec<_>>())
            .fetch_all(session)
            .await
            .or_not_done()?;
        rows.iter().map(claimed).collect::<Result<_, _>>().or_not_done()
    }
}
