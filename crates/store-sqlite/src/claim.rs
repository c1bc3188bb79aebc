//! Taking timers for delivery, and finding what was taken and never settled.

use std::collections::HashSet;

use domain::{Status, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params, types::ValueRef};
use store::{Claim, ClaimToken, Claimed, DueEntry, Epoch, ShardLease, StoredTimer, Unreadable};
use store_sql::{column, sql};

use crate::{
    failure::Failure,
    migrate::SHARDS,
    ownership::{Nodes, is_current},
    rows::{DEFINITION_BY_ID, Id, definition, from_column, is_senseless},
    tally::Tally,
    writer::Write,
};

pub const STANDING: &str = sql!("sql/standing.sql");
pub const TAKE: &str = sql!("sql/take.sql");
pub const EXPIRED: &str = sql!("sql/expired.sql");

// One statement reads what stands in `due` and the definition: each one that runs costs about as much as a look-up.
const _: () = assert!(store_sql::are_first_columns_of(DEFINITION_BY_ID, STANDING));

/// A claimed timer whose texts are still to be understood, which is the caller's work.
pub struct Taken {
    entry: DueEntry,
    shard_lease: ShardLease,
    token: ClaimToken,
    attempt: i64,
    timer: Result<StoredTimer, Unreadable>,
}

impl Taken {
    pub fn into_claimed(self) -> Claimed {
        let Self { entry, shard_lease, token, attempt, timer } = self;
        let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
        Claimed { entry, shard_lease, token, attempt, timer: timer.and_then(StoredTimer::into_timer) }
    }
}

pub struct Take {
    pub claim: Claim,
    pub entries: Vec<DueEntry>,
    pub now: Timestamp,
}

impl Write for Take {
    type Answer = Vec<Taken>;
    const NAME: &'static str = "claim";

    fn rows(&self) -> usize {
        self.entries.len()
    }

    fn run(&self, connection: &Connection, tally: &mut Tally) -> Result<Vec<Taken>, Failure> {
        // A shard lease that is over takes nothing more, but what was taken under it is given again.
        let mut shard_leases = Vec::with_capacity(self.claim.shard_leases.len());
        for shard_lease in &self.claim.shard_leases {
            shard_leases.push((*shard_lease, is_current(connection, *shard_lease)?));
        }
        let token = self.claim.token;
        let lease_until = self.now.saturating_add(self.claim.lease).as_micros();
        let mut standing = connection.prepare_cached(STANDING)?;
        let mut take = connection.prepare_cached(TAKE)?;
        let mut taken = Vec::with_capacity(self.entries.len());
        // A timer that an entry before got would look as if an earlier call with this token had taken it.
        let mut given = HashSet::with_capacity(self.entries.len());
        for entry in &self.entries {
            let shard = entry.id.shard(SHARDS);
            let found = shard_leases.iter().copied().find(|(shard_lease, _)| shard_lease.shard == shard);
            let Some((shard_lease, is_current)) = found else { continue };
            let (minute, id, epoch) = (entry.at.minute(), Id::of(entry.id), shard_lease.epoch.0);
            // No other write comes between: this transaction is the only one that writes.
            let row = standing
                .query_row(params![minute, id, entry.at.as_micros(), token.0, epoch], |row| {
                    Ok((
                        row.get::<_, i64>(column!(STANDING, "attempt"))?,
                        row.get(column!(STANDING, "last_error"))?,
                        row.get(column!(STANDING, "destination"))?,
                        row.get::<_, Option<i64>>(column!(STANDING, "claim"))?,
                        row.get::<_, Option<String>>(column!(STANDING, "due_namespace"))?,
                        definition_if_any(row),
                    ))
                })
                .optional()?;
            let Some((mut attempt, last_error, destination, claim, namespace, found)) = row else { continue };
            if (claim.is_none() && !is_current) || !given.insert(entry.id) {
                continue;
            }
            if claim.is_none() {
                attempt = attempt.saturating_add(1);
                take.execute(params![minute, id, token.0, epoch, lease_until, attempt])?;
                tally.turn(namespace.as_deref(), Status::Pending, Status::Executing);
            }
            let entry = DueEntry { destination: from_column(destination), ..*entry };
            let timer = executing(found, attempt, last_error)?;
            taken.push(Taken { entry, shard_lease, token, attempt, timer });
        }
        Ok(taken)
    }
}

/// The definition in a row of [`STANDING`], which may be missing.
fn definition_if_any(row: &Row<'_>) -> rusqlite::Result<StoredTimer> {
    match row.get_ref(column!(STANDING, "id"))? {
        ValueRef::Null => Err(rusqlite::Error::QueryReturnedNoRows),
        _ => definition(row),
    }
}

/// The whole of a claimed timer. A row that makes no sense is the timer's trouble, not that of its neighbours.
fn executing(
    found: rusqlite::Result<StoredTimer>,
    attempt: i64,
    last_error: Option<String>,
) -> Result<Result<StoredTimer, Unreadable>, Failure> {
    match found {
        Ok(stored) => Ok(Ok(StoredTimer { status: Status::Executing, attempt, last_error, ..stored })),
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(Err(Unreadable("its definition is missing".to_owned()))),
        Err(error) if is_senseless(&error) => Ok(Err(Unreadable(error.to_string()))),
        Err(error) => Err(error.into()),
    }
}

pub fn expired(
    connection: &Connection,
    shard_leases: &[ShardLease],
    nodes: &Nodes,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Taken>, Failure> {
    let mut expired = Vec::new();
    // All statements of one look must see the same state, or a claim could end between its row and its definition.
    let snapshot = connection.unchecked_transaction()?;
    let mut whole = snapshot.prepare_cached(DEFINITION_BY_ID)?;
    for shard_lease in shard_leases {
        if !is_current(&snapshot, *shard_lease)? {
            continue;
        }
        let mut statement = snapshot.prepare_cached(EXPIRED)?;
        let mut rows = statement.query(params![shard_lease.shard.0, shard_lease.epoch.0, now.as_micros()])?;
        while expired.len() < limit
            && let Some(row) = rows.next()?
        {
            let claimed_under = ShardLease { shard: shard_lease.shard, epoch: Epoch(row.get(column!(EXPIRED, "epoch"))?) };
            // What an earlier owner has claimed is its own for as long as it lives.
            if row.get::<_, i64>(column!(EXPIRED, "lease_until"))? > now.as_micros()
                && nodes.is_alive_who_held(claimed_under, now)
            {
                continue;
            }
            let id: Id = row.get(column!(EXPIRED, "id"))?;
            let entry = DueEntry {
                at: Timestamp::from_micros(row.get(column!(EXPIRED, "at"))?),
                id: id.timer(),
                destination: from_column(row.get(column!(EXPIRED, "destination"))?),
            };
            let attempt = row.get(column!(EXPIRED, "attempt"))?;
            let timer = executing(whole.query_row([id], definition), attempt, row.get(column!(EXPIRED, "last_error"))?)?;
            expired.push(Taken {
                entry,
                shard_lease: *shard_lease,
                token: ClaimToken(row.get(column!(EXPIRED, "claim"))?),
                attempt,
                timer,
            });
        }
    }
    Ok(expired)
}
