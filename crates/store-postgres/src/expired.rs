//! Finding claims that their makers will not settle.

use std::{
    collections::HashMap,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use sqlx::{PgConnection, Row, postgres::PgRow, types::Uuid};
use store::{Claimed, ShardLease, StoreResult};
use store_sql::{Call, portions, sql};

use crate::{
    claim::{ShardLeaseColumns, claimed},
    connector::{Bulkhead, Connector},
    due::BEGINNING,
    failure::{Failure, Step},
};

/// How many rows of a shard one call looks at. Behind a destination that hangs there may be millions that are due and not
/// claimed.
const LOOKED_AT_MAX: i64 = 1_024;

/// How often one call looks on where it found nothing.
const PAGES_MAX: usize = 16;

pub(crate) const EXPIRED: &str = sql!("sql/expired.sql");
pub(crate) const READ_EXPIRED: &str = sql!("sql/read_expired.sql");

/// How far each shard has been looked through. Where little is overdue, everything is looked at each time.
#[derive(Debug, Default)]
pub struct Search(Mutex<HashMap<i16, Position>>);

/// The last row that was looked at: when it is due, and its id.
type Position = (i64, Uuid);

impl Search {
    /// Finds the claims first, then reads the timers they hold.
    pub async fn find(&self, bulkhead: &Bulkhead, shard_leases: &[ShardLease], limit: usize) -> StoreResult<Vec<Claimed>> {
        let mut found = Vec::new();
        for _ in 0..PAGES_MAX {
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
        let positions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (ats, ids) = shard_leases.shards.iter().map(|shard| positions.get(shard).copied().unwrap_or(BEGINNING)).unzip();
        FindExpired { shard_leases, ats, ids }
    }

    /// What was looked at to its end begins anew; so does everything as long as there are more claims than are wanted.
    /// Of shards that are held no more nothing is remembered. Says whether something is left to look at.
    fn go_on(&self, found: &[Found], shard_leases: &[ShardLease], limit: usize) -> bool {
        let mut positions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        positions.clear();
        let is_held = |shard: i16| shard_leases.iter().any(|shard_lease| shard_lease.shard.0.cast_signed() == shard);
        if found.iter().filter(|found| found.is_left).count() <= limit {
            let last = found.iter().filter(|found| found.is_last && is_held(found.shard));
            positions.extend(last.map(|found| (found.shard, (found.at, found.id))));
        }
        !positions.is_empty()
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
