//! Recording what became of claimed timers: under the shard lease that a claim was made under, or under the current one of its
//! shard, in the place of an owner that is gone.
//!
//! ```text
//!   lock the claims that stand ──▶ finish some, postpone others ──▶ remember attempts ──▶ commit
//!                  └── made under another shard lease? ──▶ the same, with the epoch of that shard locked
//! ```
//!
//! A claim that is settled under its own shard lease needs no more than its row: the token says whose it is.

use std::{collections::HashMap, sync::Arc};

use domain::{Cause, Next, Status, TimerId, Timestamp};
use serde::Serialize;
use sqlx::{Row as _, mysql::MySqlRow};
use store::{Settlement, StoreError, StoreResult};
use store_sql::{Call, sql};

use crate::{
    attempts::remember,
    change_all::DELETE_DUE,
    connector::{Bulkhead, Connector},
    failure::{Failure, Step, Verdict},
    journal::Entries,
    literal,
    rows::{self, DueKey, Hex, json, shard_column},
    session::Session,
    transaction::{Holds, Transaction},
};

pub(crate) const LOCK_CLAIMS: &str = sql!("sql/lock_claims.sql");
pub(crate) const FINISH: &str = sql!("sql/finish.sql");
/// Finishes a batch that met an outcome.
pub(crate) const FINISH_AGAIN: &str = sql!("sql/finish_again.sql");
pub(crate) const POSTPONE: &str = sql!("sql/postpone.sql");
pub(crate) const POSTPONE_DEFINITION: &str = sql!("sql/postpone_definition.sql");
pub(crate) const REVISIONS: &str = sql!("sql/revisions.sql");

/// A claim that is to be settled, and where its settlement stands in the batch.
#[derive(Serialize)]
struct ClaimRow {
    #[serde(flatten)]
    key: DueKey,
    token: i64,
    place: usize,
}

#[derive(Serialize)]
struct FinishRow<'a> {
    #[serde(flatten)]
    key: DueKey,
    status: &'static str,
    attempt: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    finished_at: i64,
}

#[derive(Serialize)]
struct PostponeRow<'a> {
    #[serde(flatten)]
    key: DueKey,
    next: i64,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    /// Whether it is a new due time, not another attempt at the old one.
    again: u8,
}

/// A batch of settlements in one transaction. Answers with which of them counted.
struct Settle {
    batch: Arc<[Settlement]>,
    shards: u16,
}

/// Claims that are locked.
#[derive(Default)]
struct Locked {
    /// How many attempts each of those that may be settled has counted, by its place in the batch.
    attempts: HashMap<usize, i64>,
    /// The shards of claims that were made under another shard lease: whether they may be settled only the epoch can tell.
    of_others: Vec<i16>,
}

/// What is written for those settlements that count.
#[derive(Default)]
struct Steps<'a> {
    finish: Vec<FinishRow<'a>>,
    ends: Vec<(TimerId, Timestamp, Status)>,
    postpone: Vec<PostponeRow<'a>>,
}

impl Settle {
    fn key(&self, settlement: &Settlement) -> DueKey {
        let entry = &settlement.entry;
        DueKey { shard: shard_column(entry.id, self.shards), at: entry.at.as_micros(), id: entry.id.into() }
    }

    /// The statement that locks the claims that stand.
    fn lock(&self) -> Result<String, Failure> {
        let claim =
            |(place, settlement): (usize, &Settlement)| ClaimRow { key: self.key(settlement), token: settlement.token.0, place };
        let mut claims: Vec<ClaimRow> = self.batch.iter().enumerate().map(claim).collect();
        // In the order of the key, as claims go too, so that no two sessions wait for each other in a circle.
        claims.sort_by_key(|ClaimRow { key, .. }| (key.shard, key.at, key.id.0));
        Ok(literal::placed(LOCK_CLAIMS, [literal::text(&json(&claims)?)]))
    }

    /// Which of the claims that are locked may be settled.
    fn sort_out(&self, transaction: &Transaction<'_>, rows: &[MySqlRow]) -> Result<Locked, Failure> {
        let mut locked = Locked::default();
        for row in rows {
            let place = usize::try_from(row.try_get::<i64, _>("place").or_not_done()?).unwrap_or(usize::MAX);
            let epoch: Option<i64> = row.try_get("epoch").or_not_done()?;
            let Some(settlement) = self.batch.get(place) else { continue };
            let (shard, wanted) = (shard_column(settlement.entry.id, self.shards), settlement.shard_lease.epoch.0);
            let is_its_own = epoch == Some(wanted);
            match transaction.epoch(shard) {
                None if !is_its_own => locked.of_others.push(shard),
                current if is_its_own || current == Some(wanted) => {
                    locked.attempts.insert(place, row.try_get("attempt").or_not_done()?);
                }
                _ => {}
            }
        }
        Ok(locked)
    }

    /// Of several settlements of one claim the first counts.
    fn first_of_each(&self, locked: &HashMap<usize, i64>) -> Vec<(usize, i64)> {
        let mut counted: Vec<(usize, i64)> = locked.iter().map(|(place, attempt)| (*place, *attempt)).collect();
        counted.sort_unstable();
        let mut seen = std::collections::HashSet::with_capacity(counted.len());
        counted.retain(|(place, _)| seen.insert(self.batch[*place].entry.id));
        counted
    }

    fn steps(&self, counted: &[(usize, i64)]) -> Steps<'_> {
        let mut steps = Steps::default();
        for (place, attempt) in counted {
            let settlement = &self.batch[*place];
            let (id, key) = (settlement.entry.id, self.key(settlement));
            let mut end = |status: Status, at: &Timestamp, error, unsent: i64| {
                let finished_at = at.as_micros();
                steps.finish.push(FinishRow { key, status: status.as_str(), attempt: attempt - unsent, error, finished_at });
                steps.ends.push((id, *at, status));
            };
            match &settlement.next {
                Next::Completed { at } => end(Status::Completed, at, None, 0),
                Next::Failed { at, error } => end(Status::Failed, at, Some(error), 0),
                Next::GivenUp { at, error } => end(Status::Failed, at, Some(error), 1),
                Next::Expired { at, error, is_called } => end(Status::Expired, at, Some(error), i64::from(!is_called)),
                Next::Pending { at, attempt, error } => {
                    let error = error.as_deref();
                    steps.postpone.push(PostponeRow { key, next: at.as_micros(), attempt: *attempt, error, again: 0 });
                }
                Next::Again { at } => {
                    steps.postpone.push(PostponeRow { key, next: at.as_micros(), attempt: 0, error: None, again: 1 });
                }
            }
        }
        steps
    }

    async fn write(
        &self,
        transaction: &mut Transaction<'_>,
        counted: &[(usize, i64)],
        finish: &'static str,
    ) -> Result<(), Failure> {
        let Steps { finish: finished, ends, postpone: postponed } = self.steps(counted);
        let mut entries = Entries::default();
        if !finished.is_empty() {
            let rows = literal::text(&json(&finished)?);
            transaction.then(literal::placed(finish, [rows.clone()]));
            transaction.then(literal::placed(DELETE_DUE, [rows]));
        }
        for (id, at, status) in ends {
            entries.finished(transaction, id, at, status);
        }
        if !postponed.is_empty() {
            postpone(transaction.session(), &postponed, &mut entries).await?;
        }
        let attempt = |(place, _): &(usize, i64)| {
            let settlement = &self.batch[*place];
            settlement.attempt.as_ref().map(|attempt| (settlement.entry.id, attempt))
        };
        let attempts: Vec<_> = counted.iter().filter_map(attempt).collect();
        remember(transaction, &attempts, &mut entries).await?;
        entries.write(transaction)
    }

    async fn try_to_settle(&self, session: &mut Session, finish: &'static str) -> Result<Vec<bool>, Failure> {
        let lock = self.lock()?;
        let mut holds = Holds { generation: true, shards: Vec::new() };
        let (mut transaction, mut rows) = Transaction::begin_with(session, holds.clone(), Some(lock.clone())).await?;
        let locked = loop {
            let mut locked = self.sort_out(&transaction, &rows)?;
            locked.of_others.retain(|shard| !holds.shards.contains(shard));
            if locked.of_others.is_empty() {
                break locked.attempts;
            }
            // From the beginning, because shard leases are locked before claims: no two sessions wait for each other in a circle.
            holds.shards.append(&mut locked.of_others);
            (transaction, rows) = transaction.again(holds.clone(), Some(lock.clone())).await?;
        };
        let counted = self.first_of_each(&locked);
        self.write(&mut transaction, &counted, finish).await?;
        transaction.commit().await?;
        let mut answers = vec![false; self.batch.len()];
        for (place, _) in counted {
            answers[place] = true;
        }
        Ok(answers)
    }
}

async fn postpone(session: &mut Session, postponed: &[PostponeRow<'_>], entries: &mut Entries) -> Result<(), Failure> {
    sqlx::query(POSTPONE).bind(session.given(postponed).await?).execute(&mut *session).await.or_not_done()?;
    // The definition follows only when something it says has changed.
    let moved: Vec<_> = postponed.iter().filter(|row| row.again == 1 || row.next != row.key.at).collect();
    if !moved.is_empty() {
        sqlx::query(POSTPONE_DEFINITION).bind(session.given(&moved).await?).execute(&mut *session).await.or_not_done()?;
    }
    let again: Vec<Hex> = postponed.iter().filter(|row| row.again == 1).map(|row| row.key.id).collect();
    if again.is_empty() {
        return Ok(());
    }
    for row in sqlx::query(REVISIONS).bind(session.given(&again).await?).fetch_all(session).await.or_not_done()? {
        let revision: i64 = row.try_get("revision").or_not_done()?;
        entries.changed(rows::id(&row).or_not_done()?, u32::try_from(revision).unwrap_or(u32::MAX));
    }
    Ok(())
}

impl Call<Connector> for Settle {
    type Answer = Vec<bool>;
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<Vec<bool>, Failure> {
        let settled = match self.try_to_settle(session, FINISH).await {
            Err(failure) if failure.verdict == Verdict::Duplicate => self.try_to_settle(session, FINISH_AGAIN).await,
            settled => settled,
        };
        settled.map_err(Failure::or_damage)
    }
}

/// What the answers of receivers in one part of a batch may take, so that a slow wire carries it before the deadline.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// In parts where the batch carries long answers of receivers. If only some of them are made, the answer is unknown, and the caller
/// settles all of them again.
pub async fn settle(bulkhead: &Bulkhead, shards: u16, batch: &[Settlement]) -> StoreResult<Vec<bool>> {
    let mut counted = Vec::with_capacity(batch.len());
    while counted.len() < batch.len() {
        let rest = &batch[counted.len()..];
        let part: Arc<[Settlement]> = rest[..part_of(rest)].into();
        let settled = bulkhead.run(Settle { batch: part, shards }).await;
        let partly_done = |error: StoreError| if counted.is_empty() { error } else { StoreError::Unknown(Cause::of(error)) };
        counted.append(&mut settled.map_err(partly_done)?);
    }
    Ok(counted)
}

/// How many of the first settlements are recorded together; at least one.
fn part_of(batch: &[Settlement]) -> usize {
    let mut bytes = 0;
    let fits = |settlement: &&Settlement| {
        bytes += settlement.answer_bytes();
        bytes <= ANSWER_BYTES_MAX
    };
    batch.iter().take_while(fits).count().max(1)
}
