//! Taking due timers for delivery.
//!
//! ```text
//!   lock the shard leases ──▶ lock what is still pending       in one round trip
//!   claim it ──▶ commit ──▶ read what carries the token        in one round trip, and one more for each further portion
//! ```

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
    time::Duration,
};

use domain::{Cause, Shard, Span, Status};
use serde::Serialize;
use sqlx::{Row, mysql::MySqlRow, types::Uuid};
use store::{Claim, ClaimToken, Claimed, DueEntry, Epoch, OnLocked, ShardLease, StoreError, StoreResult};
use store_sql::{Call, Standing, portions, sql};
use tokio::time::{Instant, sleep};

use crate::{
    connector::{Bulkhead, Connector},
    due::entry,
    failure::{Failure, Step},
    literal,
    rows::{DueKey, Fields, json, shard_column},
    session::Session,
    shard_gate::ShardGate,
    transaction::{Holds, Transaction},
};

pub(crate) const LOCK_CLAIMABLE: &str = sql!("sql/lock_claimable.sql");
pub(crate) const LOCK_CLAIMABLE_OR_FAIL: &str = sql!("sql/lock_claimable_or_fail.sql");
pub(crate) const CLAIM: &str = sql!("sql/claim.sql");
pub(crate) const READ_CLAIMED: &str = sql!("sql/read_claimed.sql");

pub(crate) const STILL_PENDING: &str = sql!("sql/still_pending.sql");

/// How long a claim waits for rows that other sessions are changing: all its other timers wait with it.
const LOCKED_WAIT_MAX: Duration = Duration::from_millis(200);
const LOCKED_PAUSE: Duration = Duration::from_millis(5);

/// Longer leases are cut: added to the time of day they must still be a number that can be stored.
const LEASE_MICROS_MAX: i64 = 100 * 365 * 86_400 * 1_000_000;

pub fn lease_column(lease: Span) -> i64 {
    lease.as_micros().min(LEASE_MICROS_MAX)
}

/// Takes the timers, then reads them. Repeated with the same token, it finds nothing more to take, and reads the same.
///
/// Taking and reading are two, and the order matters: a claimed timer cannot be changed any more, so what is read after the claim is what
/// was claimed. The reading asks neither whether the shard leases stand nor whether the claimer lives. What was claimed just before
/// another node took the shard is its maker's until the new owner has recovered it; were it kept from a maker that is dead at this moment
/// and lives again the next, no node would settle it before the claim's own lease runs out. Whether a call may still be made is looked at
/// right before it.
pub async fn claim(
    bulkhead: &Bulkhead,
    gate: &ShardGate,
    claim: &Claim,
    entries: &[DueEntry],
    shards: u16,
) -> StoreResult<Vec<Claimed>> {
    let wanted = Arc::new(Wanted::new(claim, entries, shards));
    if wanted.keys.is_empty() {
        return Ok(Vec::new());
    }
    let first = take(bulkhead, gate, &wanted).await?;
    let unread = portions(wanted.keys.len()).skip(usize::from(first.is_some()));
    let unread: Vec<_> = unread.map(|portion| ReadClaimed(Arc::clone(&wanted), portion)).collect();
    let mut claimed = first.unwrap_or_default();
    if !unread.is_empty() {
        let partly_done = |error: StoreError| StoreError::Unknown(Cause::of(error));
        claimed.extend(bulkhead.run_all(unread).await.map_err(partly_done)?.into_iter().flatten());
    }
    Ok(claimed)
}

/// Takes what is pending. What another session is changing at this moment is waited for, a little: it may be an earlier call with the same
/// token. Answers with the first portion, if it was read along.
async fn take(bulkhead: &Bulkhead, gate: &ShardGate, wanted: &Arc<Wanted>) -> StoreResult<Option<Vec<Claimed>>> {
    let _through = gate.claim().await;
    let give_up = Instant::now() + LOCKED_WAIT_MAX;
    let mut is_partly_done = false;
    loop {
        let partly_done = |error| if is_partly_done { StoreError::Unknown(Cause::of(error)) } else { error };
        let taken = bulkhead.run(Take(Arc::clone(wanted))).await.map_err(partly_done)?;
        is_partly_done = true;
        if taken.passed_over == 0 || Instant::now() >= give_up {
            return Ok(taken.first);
        }
        metrics::counter!("timer_mysql_contention_total").increment(1);
        sleep(LOCKED_PAUSE).await;
    }
}

/// Where an entry of a claim is, and the epoch under which it is wanted.
#[derive(Debug, Clone, Copy, Serialize)]
struct WantedKey {
    #[serde(flatten)]
    key: DueKey,
    epoch: i64,
}

/// The entries of a claim, in the order of the key: neighbours are read together, and two claims of the same timers cannot wait
/// in a circle.
struct Wanted {
    token: ClaimToken,
    lease_micros: i64,
    on_locked: OnLocked,
    keys: Vec<WantedKey>,
}

impl Wanted {
    fn new(claim: &Claim, entries: &[DueEntry], shards: u16) -> Self {
        let epochs: HashMap<Shard, Epoch> =
            claim.shard_leases.iter().map(|shard_lease| (shard_lease.shard, shard_lease.epoch)).collect();
        let key = |entry: &DueEntry| {
            let epoch = epochs.get(&entry.id.shard(shards))?;
            let key = DueKey { shard: shard_column(entry.id, shards), at: entry.at.as_micros(), id: entry.id.into() };
            Some(WantedKey { key, epoch: epoch.0 })
        };
        let mut keys: Vec<WantedKey> = entries.iter().filter_map(key).collect();
        let place = |WantedKey { key, .. }: &WantedKey| (key.shard, key.at, key.id.0);
        keys.sort_unstable_by_key(place);
        keys.dedup_by_key(|key| place(key));
        Self { token: claim.token, lease_micros: lease_column(claim.lease), on_locked: claim.on_locked, keys }
    }

    /// The statement that locks those that are pending, and says which they are.
    fn lock(&self) -> Result<String, Failure> {
        let statement = match self.on_locked {
            OnLocked::Skip => LOCK_CLAIMABLE,
            OnLocked::Fail => LOCK_CLAIMABLE_OR_FAIL,
        };
        Ok(literal::placed(statement, [literal::text(&json(&self.keys)?)]))
    }

    /// The statement that reads the first portion of what carries the token.
    fn read_first(&self) -> Result<String, Failure> {
        let first = portions(self.keys.len()).next().unwrap_or_default();
        Ok(literal::placed(READ_CLAIMED, [literal::text(&json(&self.keys[first])?), literal::number(self.token.0)]))
    }
}

struct Take(Arc<Wanted>);

#[derive(Default)]
struct Taken {
    /// How many are pending still, because another session is changing them.
    passed_over: i64,
    /// What carries the token, of the first portion of the entries; `None` where it has yet to be read.
    first: Option<Vec<Claimed>>,
}

impl Call<Connector> for Take {
    type Answer = Taken;
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<Taken, Failure> {
        let Wanted { token, lease_micros, keys, .. } = &*self.0;
        let holds = Holds { generation: false, shards: keys.iter().map(|wanted| wanted.key.shard).collect() };
        let (mut transaction, locked) = Transaction::begin_with(session, holds, Some(self.0.lock()?)).await?;
        // Those that were locked and are not held are let go with the end of the transaction.
        let is_held = |wanted: &&WantedKey| transaction.epoch(wanted.key.shard) == Some(wanted.epoch);
        let held: Vec<WantedKey> = keys.iter().filter(is_held).copied().collect();
        if held.is_empty() {
            return transaction.rollback().await.map(|()| Taken::default());
        }
        let place = |row: &MySqlRow| Ok((row.try_get("shard")?, row.try_get("at")?, row.try_get("id")?));
        let locked: HashSet<(i16, i64, Uuid)> = locked.iter().map(place).collect::<Result<_, sqlx::Error>>().or_not_done()?;
        let is_locked = |WantedKey { key, .. }: &WantedKey| locked.contains(&(key.shard, key.at, key.id.0));
        let (locked, rest): (Vec<WantedKey>, Vec<WantedKey>) = held.into_iter().partition(is_locked);
        if !locked.is_empty() {
            // The lease counts from the beginning of the transaction, which is a moment ago.
            let lease_until = transaction.now.saturating_add(*lease_micros);
            let values = [literal::text(&json(&locked)?), literal::number(token.0), literal::number(lease_until)];
            transaction.then(literal::placed(CLAIM, values));
        }
        let mut passed_over = 0;
        if !rest.is_empty() {
            let query = sqlx::query_scalar(STILL_PENDING).bind(transaction.session().given(&rest).await?);
            passed_over = query.fetch_one(transaction.session()).await.or_not_done()?;
        }
        let rows = transaction.commit_and_read(self.0.read_first()?).await?;
        let first = rows.iter().map(claimed).collect::<Result<_, _>>().or_not_done().map_err(Failure::after_a_commit)?;
        Ok(Taken { passed_over, first: Some(first) })
    }
}

struct ReadClaimed(Arc<Wanted>, Range<usize>);

impl Call<Connector> for ReadClaimed {
    type Answer = Vec<Claimed>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut Session) -> Result<Vec<Claimed>, Failure> {
        let Wanted { token, keys, .. } = &*self.0;
        let query = sqlx::query(READ_CLAIMED).bind(session.given(&keys[self.1.clone()]).await?).bind(token.0);
        let rows = query.fetch_all(session).await.or_not_done()?;
        rows.iter().map(claimed).collect::<Result<_, _>>().or_not_done()
    }
}

/// The row of `due` is ours to rely on; what its definition says may be damaged, and is then told as such.
pub fn claimed(row: &MySqlRow) -> Result<Claimed, sqlx::Error> {
    let entry = entry(row)?;
    let attempt: i64 = row.try_get("attempt")?;
    let standing = Standing {
        status: Status::Executing,
        attempt,
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
