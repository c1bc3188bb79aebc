//! Finding claims that their makers will not settle.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

use serde::Serialize;
use sqlx::{Row, mysql::MySqlRow};
use store::{Claimed, ShardLease, StoreResult};
use store_sql::{Call, ShardSearch, portions, sql};

use crate::{
    claim::claimed,
    connector::{Bulkhead, Connector},
    due::{BEGINNING, OfShards, Position},
    failure::{Failure, Step},
    rows::{DueKey, Hex},
    session::Session,
    transaction::{Holds, Transaction},
};

/// A claimed row was due, so it lies in the past; one minute more allows for a node whose clock runs ahead.
const AHEAD_MICROS: i64 = 60_000_000;

/// How many rows of a shard one call looks at. Behind a destination that hangs there may be millions that are due and not
/// claimed.
const LOOKED_AT_MAX: i64 = 1_024;

pub(crate) const EXPIRED_OF_SHARD: &str = sql!("sql/expired_of_shard.sql");
pub(crate) const SHARD_LEASES: &str = sql!("sql/shard_leases.sql");
pub(crate) const READ_EXPIRED: &str = sql!("sql/read_expired.sql");

#[derive(Debug, Default)]
pub struct Search(ShardSearch<Position>);

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
        let from = |shard_lease: &ShardLease| {
            let shard = shard_lease.shard.0.cast_signed();
            (shard, shard_lease.epoch.0, self.0.place(shard).unwrap_or(BEGINNING))
        };
        FindExpired(shard_leases.iter().map(from).collect())
    }

    /// Says whether something is left to look at.
    fn go_on(&self, found: &[Found], shard_leases: &[ShardLease], limit: usize) -> bool {
        if found.iter().filter(|found| found.is_left).count() > limit {
            self.0.begin_anew();
            return false;
        }
        self.0.go_on(
            shard_leases,
            found.iter().filter(|found| found.is_last).map(|found| (found.key.shard, (found.key.at, found.key.id.0))),
        )
    }
}

/// Shards with the epochs under which they are held, and where each begins.
struct FindExpired(Vec<(i16, i64, Position)>);

/// A row that was found.
#[derive(Debug, Clone, Copy, Serialize)]
struct Found {
    #[serde(flatten)]
    key: DueKey,
    token: i64,
    /// Under which it may be settled.
    epoch: i64,
    /// It is the last that was looked at, and there may be more behind it.
    #[serde(skip)]
    is_last: bool,
    /// Its maker will not settle it.
    #[serde(skip)]
    is_left: bool,
}

/// What decides whether a claim is left.
struct Leases {
    now: i64,
    current: HashMap<i16, i64>,
    kept: HashSet<(i16, i64)>,
}

impl Leases {
    async fn read(session: &mut Session) -> Result<Self, Failure> {
        let mut transaction = Transaction::begin(session, Holds::default()).await?;
        let now = transaction.now;
        let rows = sqlx::query(SHARD_LEASES).bind(now).fetch_all(transaction.session()).await.or_not_done()?;
        transaction.commit().await?;
        let mut leases = Self { now, current: HashMap::new(), kept: HashSet::new() };
        for row in rows {
            let (shard, epoch) = (row.try_get("shard").or_not_done()?, row.try_get("epoch").or_not_done()?);
            if row.try_get::<i64, _>("is_current").or_not_done()? == 1 {
                leases.current.insert(shard, epoch);
            } else {
                leases.kept.insert((shard, epoch));
            }
        }
        Ok(leases)
    }

    /// The row, with whether its claim is left, where its shard is held under `epoch`.
    fn look_at(&self, row: &MySqlRow, epoch: i64) -> Result<Found, sqlx::Error> {
        let shard: i16 = row.try_get("shard")?;
        let token: Option<i64> = row.try_get("claim")?;
        let claimed_under: Option<i64> = row.try_get("epoch")?;
        let lease_until: Option<i64> = row.try_get("lease_until")?;
        let is_over = lease_until.is_none_or(|end| end <= self.now);
        let is_of_the_dead = claimed_under.is_some_and(|claimed| claimed < epoch && !self.kept.contains(&(shard, claimed)));
        Ok(Found {
            key: DueKey { shard, at: row.try_get("at")?, id: Hex(row.try_get("id")?) },
            token: token.unwrap_or_default(),
            epoch,
            is_last: row.try_get::<i64, _>("number")? == LOOKED_AT_MAX,
            is_left: token.is_some() && (is_over || is_of_the_dead),
        })
    }
}

impl Call<Connector> for FindExpired {
    type Answer = Vec<Found>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut Session) -> Result<Vec<Found>, Failure> {
        let leases = Leases::read(session).await?;
        let held: HashMap<i16, i64> = self.0.iter().map(|(shard, epoch, _)| (*shard, *epoch)).collect();
        let is_current = |(shard, epoch, _): &&(i16, i64, Position)| leases.current.get(shard) == Some(epoch);
        let from: Vec<_> = self.0.iter().filter(is_current).map(|(shard, _, position)| (*shard, *position)).collect();
        if from.is_empty() {
            return Ok(Vec::new());
        }
        let until = leases.now.saturating_add(AHEAD_MICROS);
        let rows = OfShards { part: EXPIRED_OF_SHARD, from, until, limit: LOOKED_AT_MAX, limits: 2 }.fetch(session).await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            let shard: i16 = row.try_get("shard").or_not_done()?;
            if let Some(epoch) = held.get(&shard) {
                found.push(leases.look_at(&row, *epoch).or_not_done()?);
            }
        }
        found.retain(|found| found.is_last || found.is_left);
        Ok(found)
    }
}

struct ReadExpired(Arc<Vec<Found>>, Range<usize>);

impl Call<Connector> for ReadExpired {
    type Answer = Vec<Claimed>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut Session) -> Result<Vec<Claimed>, Failure> {
        let found = &self.0[self.1.clone()];
        let rows = sqlx::query(READ_EXPIRED).bind(session.given(found).await?).fetch_all(session).await.or_not_done()?;
        rows.iter().map(claimed).collect::<Result<_, _>>().or_not_done()
    }
}
