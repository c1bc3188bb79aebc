//! Taking due timers for delivery, and finding claims that nobody will settle.

use std::{collections::HashMap, ops::Range, sync::Arc};

use domain::{Shard, Span, Status};
use sqlx::{PgConnection, Row, postgres::PgRow, types::Uuid};
use store::{Claim, ClaimToken, Claimed, DueEntry, Epoch, StoreResult, Tenure};

use crate::{
    due::entry,
    failure::{Failure, Step},
    lane::{Call, Lane},
    rows::{self, Standing, definition_columns, shard_column},
};

/// The database's clock in microseconds. It runs on within a statement, so it is asked once.
macro_rules! clock {
    () => {
        "clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now)"
    };
}

/// Those of the tenures in `$1` and `$2` that are the current ones of their shards.
macro_rules! held {
    () => {
        "held AS MATERIALIZED (
            SELECT s.shard, s.epoch
            FROM unnest($1::smallint[], $2::bigint[]) AS t (shard, epoch)
            JOIN shard s ON s.shard = t.shard AND s.epoch = t.epoch
        )"
    };
}

pub(crate) use {clock, held};

/// The entries that are asked for, in `$3` to `$6` and `$9`.
macro_rules! wanted {
    () => {
        "unnest($3::smallint[], $4::bigint[], $5::uuid[], $6::bigint[], $9::bigint[]) AS e (shard, minute, id, at, epoch)"
    };
}

/// What a claim writes. It changes no column that an index names, so the row stays on its page.
macro_rules! take {
    () => {
        "UPDATE due d
        SET claim = $7::bigint, epoch = e.epoch, lease_until = (SELECT now FROM clock) + $8::bigint, attempt = d.attempt + 1"
    };
}

/// Which rows a claim may take. `IS TRUE` keeps the subquery a hash table.
macro_rules! may_be_taken {
    () => {
        "d.shard = ANY (ARRAY[e.shard]) AND d.minute = e.minute AND d.id = e.id AND d.at = e.at AND d.claim IS NULL
            AND ((e.shard, e.epoch) IN (SELECT shard, epoch FROM held)) IS TRUE"
    };
}

/// How long a claim waits for a row that somebody else is changing: all its neighbours wait with it.
macro_rules! lock_wait_max {
    () => {
        "200ms"
    };
}

/// Waits for rows that are being changed. The limit is set before the first row is looked at, and ends with the statement.
pub(crate) const CLAIM: &str = concat!(
    "WITH ",
    clock!(),
    ", ",
    held!(),
    " ",
    take!(),
    " FROM ",
    wanted!(),
    " WHERE (SELECT set_config('lock_timeout', '",
    lock_wait_max!(),
    "', true)) IS NOT NULL AND ",
    may_be_taken!()
);

/// Takes what nobody else holds, and waits for nothing.
pub(crate) const CLAIM_UNHELD: &str = concat!(
    "WITH ",
    clock!(),
    ", ",
    held!(),
    ", unheld AS MATERIALIZED (
        SELECT e.shard, e.minute, e.id, e.at, e.epoch FROM ",
    wanted!(),
    " JOIN due d ON ",
    may_be_taken!(),
    " FOR UPDATE OF d SKIP LOCKED
    ) ",
    take!(),
    " FROM unheld e WHERE ",
    may_be_taken!()
);

/// Asks for nothing but the token and the epoch: a claim is its maker's until somebody else has settled it.
pub(crate) const READ_CLAIMED: &str = concat!(
    "SELECT d.shard, d.epoch, d.at, d.id, d.destination, d.attempt, d.last_error, d.claim, ",
    definition_columns!(),
    "
    FROM unnest($1::smallint[], $2::bigint[], $3::uuid[], $4::bigint[], $6::bigint[]) AS e (shard, minute, id, at, epoch)
    JOIN due d ON d.shard = ANY (ARRAY[e.shard]) AND d.minute = e.minute AND d.id = e.id AND d.at = e.at
        AND d.claim = $5::bigint AND d.epoch = e.epoch
    LEFT JOIN definition f ON f.id = ANY (ARRAY[e.id])"
);

/// A claimed row was due, so it lies in the past; one minute more allows for a node whose clock runs ahead.
///
/// `kept` has the earlier tenures whose owners live: what was claimed under those is still theirs.
pub(crate) const EXPIRED: &str = concat!(
    "WITH ",
    clock!(),
    ", ",
    held!(),
    ", kept AS MATERIALIZED (
        SELECT h.shard, h.epoch
        FROM held t
        JOIN tenure h ON h.shard = ANY (ARRAY[t.shard])
        JOIN node n ON n.id = ANY (ARRAY[h.node])
        WHERE n.lease_until > (SELECT now FROM clock)
    )
    SELECT d.shard, d.minute, d.id, d.claim, t.epoch
    FROM held t
    CROSS JOIN LATERAL (
        SELECT due.shard, due.minute, due.id, due.claim
        FROM due
        WHERE due.shard = t.shard AND due.minute <= (SELECT now / 60000000 + 1 FROM clock) AND due.claim IS NOT NULL
            AND (due.lease_until <= (SELECT now FROM clock)
                OR (due.epoch < t.epoch AND ((due.shard, due.epoch) IN (SELECT shard, epoch FROM kept)) IS NOT TRUE))
        LIMIT $3::bigint
    ) d
    LIMIT $3::bigint"
);

/// Those of the claims that were found that nobody has settled since.
pub(crate) const READ_EXPIRED: &str = concat!(
    "SELECT d.shard, e.epoch, d.at, d.id, d.destination, d.attempt, d.last_error, d.claim, ",
    definition_columns!(),
    "
    FROM unnest($1::smallint[], $2::bigint[], $3::uuid[], $4::bigint[], $5::bigint[]) AS e (shard, minute, id, token, epoch)
    JOIN due d ON d.shard = ANY (ARRAY[e.shard]) AND d.minute = e.minute AND d.id = e.id AND d.claim = e.token
    LEFT JOIN definition f ON f.id = ANY (ARRAY[e.id])"
);

/// How many whole timers are read by one statement. With the largest payloads that is 40 MiB, which a slow wire still
/// carries before the deadline; small ones cost a round trip more for each portion.
const PORTION: usize = 128;

fn portions(count: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(PORTION).map(move |start| start..count.min(start + PORTION))
}

/// Tenures as two arrays.
#[derive(Debug, Default)]
pub struct TenureColumns {
    pub shards: Vec<i16>,
    pub epochs: Vec<i64>,
}

impl TenureColumns {
    pub fn new(tenures: impl IntoIterator<Item = Tenure>) -> Self {
        let (shards, epochs) = tenures.into_iter().map(|tenure| (tenure.shard.0.cast_signed(), tenure.epoch.0)).unzip();
        Self { shards, epochs }
    }
}

/// Longer leases are cut: added to the time of day they must still be a number that can be stored.
const LEASE_MICROS_MAX: i64 = 100 * 365 * 86_400 * 1_000_000;

pub fn lease_column(lease: Span) -> i64 {
    lease.as_micros().min(LEASE_MICROS_MAX)
}

/// Takes the timers, then reads them. Repeated with the same token, it finds nothing more to take, and reads the same.
pub async fn claim(lane: &Lane, claim: &Claim, entries: &[DueEntry], shards: u16) -> StoreResult<Vec<Claimed>> {
    let wanted = Arc::new(Wanted::new(claim, entries, shards));
    if wanted.ids.is_empty() {
        return Ok(Vec::new());
    }
    let read = |portion| Claiming::Read(Arc::clone(&wanted), portion);
    let steps = std::iter::once(Claiming::Take(Arc::clone(&wanted))).chain(portions(wanted.ids.len()).map(read));
    Ok(lane.run_all(steps.collect()).await?.into_iter().flatten().collect())
}

/// The entries of a claim, as arrays of columns.
struct Wanted {
    token: ClaimToken,
    lease_micros: i64,
    tenures: TenureColumns,
    shards: Vec<i16>,
    minutes: Vec<i64>,
    ids: Vec<Uuid>,
    ats: Vec<i64>,
    epochs: Vec<i64>,
}

impl Wanted {
    fn new(claim: &Claim, entries: &[DueEntry], shards: u16) -> Self {
        let epochs: HashMap<Shard, Epoch> = claim.tenures.iter().map(|tenure| (tenure.shard, tenure.epoch)).collect();
        let mut keys: Vec<_> = entries
            .iter()
            .filter_map(|entry| {
                let epoch = epochs.get(&entry.id.shard(shards))?;
                let (minute, at) = (entry.at.minute(), entry.at.as_micros());
                Some((shard_column(entry.id, shards), minute, entry.id.as_uuid(), at, epoch.0))
            })
            .collect();
        // In the order of the key: neighbours are read together, and two claims of the same timers cannot wait in a circle.
        keys.sort_unstable();
        keys.dedup();
        Self {
            token: claim.token,
            lease_micros: lease_column(claim.lease),
            tenures: TenureColumns::new(claim.tenures.iter().copied()),
            shards: keys.iter().map(|key| key.0).collect(),
            minutes: keys.iter().map(|key| key.1).collect(),
            ids: keys.iter().map(|key| key.2).collect(),
            ats: keys.iter().map(|key| key.3).collect(),
            epochs: keys.iter().map(|key| key.4).collect(),
        }
    }

    async fn take(&self, session: &mut PgConnection) -> Result<(), Failure> {
        match self.execute(CLAIM, session).await {
            Err(failure) if failure.met_a_lock => {
                metrics::counter!("timer_postgres_contention_total").increment(1);
                self.execute(CLAIM_UNHELD, session).await
            }
            taken => taken,
        }
    }

    async fn execute(&self, statement: &'static str, session: &mut PgConnection) -> Result<(), Failure> {
        sqlx::query(statement)
            .bind(&self.tenures.shards)
            .bind(&self.tenures.epochs)
            .bind(&self.shards)
            .bind(&self.minutes)
            .bind(&self.ids)
            .bind(&self.ats)
            .bind(self.token.0)
            .bind(self.lease_micros)
            .bind(&self.epochs)
            .execute(session)
            .await
            .or_unknown()?;
        Ok(())
    }

    async fn read(&self, portion: &Range<usize>, session: &mut PgConnection) -> Result<Vec<Claimed>, Failure> {
        let rows = sqlx::query(READ_CLAIMED)
            .bind(&self.shards[portion.clone()])
            .bind(&self.minutes[portion.clone()])
            .bind(&self.ids[portion.clone()])
            .bind(&self.ats[portion.clone()])
            .bind(self.token.0)
            .bind(&self.epochs[portion.clone()])
            .fetch_all(session)
            .await
            .or_not_done()
            .map_err(Failure::after_a_commit)?;
        rows.iter().map(claimed).collect::<Result<_, _>>().or_unknown()
    }
}

/// A step of a claim. Taking and reading are two, and the order matters. The first may have to wait for an update that holds
/// the row in `due`, and goes on with the row as that left it; but everything else it sees as it was before. A definition
/// read by the first would be the old one, although the update was acknowledged before the claim. The second one begins
/// after the claim is committed, and a claimed timer cannot be changed any more: what it sees is what was claimed.
///
/// It does not ask whether the tenures stand, nor whether the claimer lives. What was claimed just before somebody took the shard is
/// its maker's until the new owner has recovered it; were it kept from a maker that is dead at this moment and lives again the
/// next, nobody would settle it before the claim's own lease runs out. Whether a call may still be made is looked at right before it.
enum Claiming {
    Take(Arc<Wanted>),
    Read(Arc<Wanted>, Range<usize>),
}

impl Call for Claiming {
    type Answer = Vec<Claimed>;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Vec<Claimed>, Failure> {
        match self {
            Self::Take(wanted) => wanted.take(session).await.map(|()| Vec::new()),
            Self::Read(wanted, portion) => wanted.read(portion, session).await,
        }
    }
}

/// Finds the claims first, then reads the timers they hold.
pub async fn expired(lane: &Lane, tenures: &[Tenure], limit: usize) -> StoreResult<Vec<Claimed>> {
    let (tenures, limit) = (TenureColumns::new(tenures.iter().copied()), i64::try_from(limit).unwrap_or(i64::MAX));
    let found = Arc::new(lane.run(FindExpired { tenures, limit }).await?);
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let portions = portions(found.len()).map(|portion| ReadExpired(Arc::clone(&found), portion)).collect();
    Ok(lane.run_all(portions).await?.into_iter().flatten().collect())
}

struct FindExpired {
    tenures: TenureColumns,
    limit: i64,
}

/// A claim that was found: shard, minute, id, token, and the epoch under which it may be settled.
type FoundClaim = (i16, i64, Uuid, i64, i64);

impl Call for FindExpired {
    type Answer = Vec<FoundClaim>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<Vec<FoundClaim>, Failure> {
        sqlx::query_as(EXPIRED)
            .bind(&self.tenures.shards)
            .bind(&self.tenures.epochs)
            .bind(self.limit)
            .fetch_all(session)
            .await
            .or_not_done()
    }
}

struct ReadExpired(Arc<Vec<FoundClaim>>, Range<usize>);

impl Call for ReadExpired {
    type Answer = Vec<Claimed>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<Vec<Claimed>, Failure> {
        let found = &self.0[self.1.clone()];
        let rows = sqlx::query(READ_EXPIRED)
            .bind(found.iter().map(|claim| claim.0).collect::<Vec<_>>())
            .bind(found.iter().map(|claim| claim.1).collect::<Vec<_>>())
            .bind(found.iter().map(|claim| claim.2).collect::<Vec<_>>())
            .bind(found.iter().map(|claim| claim.3).collect::<Vec<_>>())
            .bind(found.iter().map(|claim| claim.4).collect::<Vec<_>>())
            .fetch_all(session)
            .await
            .or_not_done()?;
        rows.iter().map(claimed).collect::<Result<_, _>>().or_not_done()
    }
}

/// The row of `due` is ours to rely on; what its definition says may be damaged, and is then told as such.
fn claimed(row: &PgRow) -> Result<Claimed, sqlx::Error> {
    let entry = entry(row)?;
    let attempt: i32 = row.try_get("attempt")?;
    let standing = Standing {
        status: Status::Executing,
        attempt: i64::from(attempt),
        last_error: row.try_get("last_error")?,
        executed_at: None,
        finished_at: None,
    };
    Ok(Claimed {
        entry,
        tenure: Tenure { shard: Shard(row.try_get::<i16, _>("shard")?.cast_unsigned()), epoch: Epoch(row.try_get("epoch")?) },
        token: ClaimToken(row.try_get("claim")?),
        attempt: u32::try_from(attempt).unwrap_or(0),
        timer: rows::timer_or_complaint(entry.id, row, standing),
    })
}
