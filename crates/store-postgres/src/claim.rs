//! Taking due timers for delivery.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

use domain::{Cause, Shard, Span, Status};
use sqlx::{
    Connection, PgConnection, Postgres, Row,
    postgres::{PgArguments, PgRow},
    query::Query,
    types::Uuid,
};
use store::{Claim, ClaimToken, Claimed, DueEntry, Epoch, OnLocked, ShardLease, StoreError, StoreResult};
use store_sql::{Call, Standing, portions, sql};

use crate::{
    connector::{Bulkhead, Connector},
    due::entry,
    failure::{Failure, Step, Verdict},
    rows::{Fields, shard_column},
};

pub(crate) const CLAIM_AND_READ: &str = sql!("sql/claim_and_read.sql");
pub(crate) const CLAIM: &str = sql!("sql/claim.sql");
pub(crate) const CLAIM_UNHELD: &str = sql!("sql/claim_unheld.sql");
pub(crate) const READ_CLAIMED: &str = sql!("sql/read_claimed.sql");

/// Shard leases as two arrays.
#[derive(Debug, Clone, Default)]
pub struct ShardLeaseColumns {
    pub shards: Vec<i16>,
    pub epochs: Vec<i64>,
}

impl ShardLeaseColumns {
    pub fn new(shard_leases: impl IntoIterator<Item = ShardLease>) -> Self {
        let (shards, epochs) =
            shard_leases.into_iter().map(|shard_lease| (shard_lease.shard.0.cast_signed(), shard_lease.epoch.0)).unzip();
        Self { shards, epochs }
    }
}

/// Longer leases are cut: added to the time of day they must still be a number that can be stored.
const LEASE_MICROS_MAX: i64 = 100 * 365 * 86_400 * 1_000_000;

pub fn lease_column(lease: Span) -> i64 {
    lease.as_micros().min(LEASE_MICROS_MAX)
}

/// Takes the timers and reads them, nearly always in one statement. What that left, because it is large, was being changed, or
/// was claimed before, is taken and read one after the other. Repeated with the same token, it finds nothing more to take, and
/// reads the same.
pub async fn claim(bulkhead: &Bulkhead, claim: &Claim, entries: &[DueEntry], shards: u16) -> StoreResult<Vec<Claimed>> {
    let wanted = Arc::new(Wanted::new(claim, entries, shards));
    if wanted.keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut claimed = match bulkhead.attempt(TakeAndRead(Arc::clone(&wanted))).await {
        Err(failure) if failure.verdict == Verdict::Locked && claim.on_locked == OnLocked::Skip => {
            metrics::counter!("timer_postgres_contention_total").increment(1);
            Vec::new()
        }
        claimed => claimed.map_err(|failure| failure.error)?,
    };
    let rest = Arc::new(wanted.without(&claimed));
    if rest.keys.is_empty() {
        return Ok(claimed);
    }
    let read = |portion| Claiming::Read(Arc::clone(&rest), portion);
    let steps = std::iter::once(Claiming::Take(Arc::clone(&rest))).chain(portions(rest.keys.len()).map(read));
    // Large ones have been taken, too, and are not among those that were read.
    let partly_done = |error: StoreError| StoreError::Unknown(Cause::of(error));
    claimed.extend(bulkhead.run_all(steps.collect()).await.map_err(partly_done)?.into_iter().flatten());
    Ok(claimed)
}

/// Where an entry of a claim is: shard, time, id; and the epoch under which it is wanted.
type WantedKey = (i16, i64, Uuid, i64);

/// The entries of a claim, in the order of the key: neighbours are read together, and two claims of the same timers cannot wait
/// in a circle.
struct Wanted {
    token: ClaimToken,
    lease_micros: i64,
    /// Whether a row that another session holds may be passed over.
    passes_over: bool,
    keys: Vec<WantedKey>,
}

impl Wanted {
    fn new(claim: &Claim, entries: &[DueEntry], shards: u16) -> Self {
        let epochs: HashMap<Shard, Epoch> =
            claim.shard_leases.iter().map(|shard_lease| (shard_lease.shard, shard_lease.epoch)).collect();
        let mut keys: Vec<_> = entries
            .iter()
            .filter_map(|entry| {
                let epoch = epochs.get(&entry.id.shard(shards))?;
                Some((shard_column(entry.id, shards), entry.at.as_micros(), entry.id.as_uuid(), epoch.0))
            })
            .collect();
        keys.sort_unstable();
        keys.dedup();
        Self { token: claim.token, lease_micros: lease_column(claim.lease), passes_over: claim.on_locked == OnLocked::Skip, keys }
    }

    /// What is left to be taken or read.
    fn without(&self, claimed: &[Claimed]) -> Self {
        let mut keys = Vec::new();
        if claimed.len() < self.keys.len() {
            let read: HashSet<Uuid> = claimed.iter().map(|claimed| claimed.entry.id.as_uuid()).collect();
            keys.extend(self.keys.iter().filter(|key| !read.contains(&key.2)));
        }
        Self { keys, ..*self }
    }

    async fn take(&self, session: &mut PgConnection) -> Result<(), Failure> {
        let statement = if self.passes_over { CLAIM_UNHELD } else { CLAIM };
        self.bind(statement).execute(session).await.or_unknown().map(|_| ())
    }

    async fn take_and_read(&self, session: &mut PgConnection) -> Result<Vec<Claimed>, Failure> {
        let rows = self.bind(CLAIM_AND_READ).fetch_all(session).await.or_unknown()?;
        let mut claimed_timers = Vec::with_capacity(rows.len());
        for row in &rows {
            if row.try_get("is_small").or_unknown()? {
                claimed_timers.push(claimed(row).or_unknown()?);
            }
        }
        Ok(claimed_timers)
    }

    fn bind(&self, statement: &'static str) -> Query<'static, Postgres, PgArguments> {
        sqlx::query(statement)
            .bind(self.column(|key| key.0))
            .bind(self.column(|key| key.1))
            .bind(self.column(|key| key.2))
            .bind(self.column(|key| key.3))
            .bind(self.token.0)
            .bind(self.lease_micros)
    }

    fn column<T>(&self, of: impl Fn(&WantedKey) -> T) -> Vec<T> {
        self.keys.iter().map(of).collect()
    }

    async fn read(&self, portion: &Range<usize>, session: &mut PgConnection) -> Result<Vec<Claimed>, Failure> {
        let keys = &self.keys[portion.clone()];
        let rows = sqlx::query(READ_CLAIMED)
            .bind(keys.iter().map(|key| key.0).collect::<Vec<_>>())
            .bind(keys.iter().map(|key| key.1).collect::<Vec<_>>())
            .bind(keys.iter().map(|key| key.2).collect::<Vec<_>>())
            .bind(keys.iter().map(|key| key.3).collect::<Vec<_>>())
            .bind(self.token.0)
            .fetch_all(session)
            .await
            .or_not_done()
            .map_err(Failure::after_a_commit)?;
        rows.iter().map(claimed).collect::<Result<_, _>>().or_unknown()
    }
}

/// The short way: see [`CLAIM_AND_READ`].
struct TakeAndRead(Arc<Wanted>);

impl Call<Connector> for TakeAndRead {
    type Answer = Vec<Claimed>;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Vec<Claimed>, Failure> {
        let claimed = self.0.take_and_read(session).await;
        if matches!(&claimed, Err(failure) if failure.verdict == Verdict::Locked) {
            // The server tells of an error before it rolls back. Until then the rows that it had reached are held as well, and would be passed
            // over by what follows. Should this fail, they are.
            drop(session.ping().await);
        }
        claimed
    }
}

/// A step of the long way. Taking and reading are two, and the order matters. The first may have to wait for an update that holds
/// the row in `due`, and goes on with the row as that left it; but everything else it sees as it was before. A definition
/// read by the first would be the old one, although the update was acknowledged before the claim. The second one begins
/// after the claim is committed, and a claimed timer cannot be changed any more: what it sees is what was claimed.
///
/// It does not ask whether the shard leases stand, nor whether the claimer lives. What was claimed just before another node took
/// the shard is its maker's until the new owner has recovered it; were it kept from a maker that is dead at this moment and lives
/// again the next, no node would settle it before the claim's own lease runs out. Whether a call may still be made is looked at
/// right before it.
enum Claiming {
    Take(Arc<Wanted>),
    Read(Arc<Wanted>, Range<usize>),
}

impl Call<Connector> for Claiming {
    type Answer = Vec<Claimed>;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Vec<Claimed>, Failure> {
        match self {
            Self::Take(wanted) => wanted.take(session).await.map(|()| Vec::new()),
            Self::Read(wanted, portion) => wanted.read(portion, session).await,
        }
    }
}

/// The row of `due` is ours to rely on; what its definition says may be damaged, and is then told as such.
pub fn claimed(row: &PgRow) -> Result<Claimed, sqlx::Error> {
    let entry = entry(row)?;
    let attempt: i32 = row.try_get("attempt")?;
    let standing = Standing {
        status: Status::Executing,
        attempt: i64::from(attempt),
        last_error: row.try_get("last_error")?,
        executed_at: None,
        finished_at: None,
        pause: None,
    };
    Ok(Claimed {
        entry,
        shard_lease: ShardLease {
            shard: Shard(row.try_get::<i16, _>("shard")?.cast_unsigned()),
            epoch: Epoch(row.try_get("epoch")?),
        },
        token: ClaimToken(row.try_get("claim")?),
        attempt: u32::try_from(attempt).unwrap_or(0),
        timer: store_sql::timer_or_complaint(entry.id, &Fields(row), standing),
    })
}
