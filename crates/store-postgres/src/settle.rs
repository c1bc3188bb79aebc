//! Recording what became of claimed timers: under the shard lease that a claim was made under, or under the current one of its
//! shard, in the place of an owner that is gone.

use domain::{Cause, Next, Status, Timestamp};
use sqlx::{PgConnection, types::Uuid};
use store::{Settlement, StoreError, StoreResult};
use store_sql::{Call, sql};

use crate::{
    attempts::AttemptColumns,
    connector::{Bulkhead, Connector},
    failure::{Failure, Step, Verdict},
    rows::{shard_column, text_column},
};

// Each in two forms: most batches carry no attempt, and then nothing is paid for one. `…_AGAIN` is for a batch that met an
// outcome.
pub(crate) const FINISH: &str = sql!("sql/finish.sql");
pub(crate) const FINISH_REMEMBERING: &str = sql!("sql/finish_remembering.sql");
pub(crate) const FINISH_AGAIN: &str = sql!("sql/finish_again.sql");
pub(crate) const FINISH_AGAIN_REMEMBERING: &str = sql!("sql/finish_again_remembering.sql");
pub(crate) const POSTPONE: &str = sql!("sql/postpone.sql");
pub(crate) const POSTPONE_REMEMBERING: &str = sql!("sql/postpone_remembering.sql");

/// The rows that are meant, and where their settlements stand in the batch.
#[derive(Debug, Default)]
struct Keys {
    epochs: Vec<i64>,
    shards: Vec<i16>,
    ats: Vec<i64>,
    ids: Vec<Uuid>,
    tokens: Vec<i64>,
    places: Vec<i64>,
    attempts: AttemptColumns,
}

impl Keys {
    fn push(&mut self, place: i64, settlement: &Settlement, shards: u16) {
        self.epochs.push(settlement.shard_lease.epoch.0);
        self.shards.push(shard_column(settlement.entry.id, shards));
        self.ats.push(settlement.entry.at.as_micros());
        self.ids.push(settlement.entry.id.as_uuid());
        self.tokens.push(settlement.token.0);
        self.places.push(place);
        self.attempts.push(settlement.attempt.as_ref());
    }
}

#[derive(Debug, Default)]
struct Finish {
    keys: Keys,
    statuses: Vec<&'static str>,
    errors: Vec<Option<String>>,
    finished_ats: Vec<i64>,
    /// How many of the attempts that the claim counted were not started: 0 or 1.
    unsent: Vec<i32>,
}

#[derive(Debug, Default)]
struct Postpone {
    keys: Keys,
    next_ats: Vec<i64>,
    attempts: Vec<i32>,
    errors: Vec<Option<String>>,
    agains: Vec<bool>,
}

impl Finish {
    async fn execute(&self, statement: &'static str, session: &mut PgConnection) -> Result<Vec<i64>, Failure> {
        let query = sqlx::query_scalar(statement)
            .bind(&self.keys.shards)
            .bind(&self.keys.ats)
            .bind(&self.keys.ids)
            .bind(&self.keys.tokens)
            .bind(&self.keys.places)
            .bind(&self.statuses)
            .bind(&self.errors)
            .bind(&self.finished_ats)
            .bind(&self.keys.epochs)
            .bind(&self.unsent);
        self.keys.attempts.bind_to(query).fetch_all(session).await.or_unknown()
    }
}

impl Call<Connector> for Finish {
    type Answer = Vec<i64>;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Vec<i64>, Failure> {
        let is_plain = self.keys.attempts.is_empty();
        let finished = match self.execute(if is_plain { FINISH } else { FINISH_REMEMBERING }, session).await {
            Err(failure) if failure.verdict == Verdict::Duplicate => {
                self.execute(if is_plain { FINISH_AGAIN } else { FINISH_AGAIN_REMEMBERING }, session).await
            }
            finished => finished,
        };
        finished.map_err(Failure::or_damage)
    }
}

impl Call<Connector> for Postpone {
    type Answer = Vec<i64>;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Vec<i64>, Failure> {
        let attempts = &self.keys.attempts;
        let query = sqlx::query_scalar(if attempts.is_empty() { POSTPONE } else { POSTPONE_REMEMBERING })
            .bind(&self.keys.shards)
            .bind(&self.keys.ats)
            .bind(&self.keys.ids)
            .bind(&self.keys.tokens)
            .bind(&self.keys.places)
            .bind(&self.next_ats)
            .bind(&self.attempts)
            .bind(&self.errors)
            .bind(&self.agains)
            .bind(&self.keys.epochs);
        attempts.bind_to(query).fetch_all(session).await.or_unknown().map_err(Failure::or_damage)
    }
}

/// Sorts the batch by what is to be done. In the order of the key, as claims go too, so that no two sessions wait for each other
/// in a circle.
fn sort(batch: &[Settlement], shards: u16) -> (Finish, Postpone) {
    let (mut finish, mut postpone) = (Finish::default(), Postpone::default());
    let mut places: Vec<usize> = (0..batch.len()).collect();
    places.sort_by_key(|&place| {
        let entry = &batch[place].entry;
        (entry.id.shard(shards), entry.at, entry.id)
    });
    for index in places {
        let (settlement, place) = (&batch[index], i64::try_from(index).unwrap_or(i64::MAX));
        match &settlement.next {
            Next::Completed { at } => finish.push(place, settlement, shards, &Ended::well(*at)),
            Next::Failed { at, error } => finish.push(place, settlement, shards, &Ended::badly(*at, error, 0)),
            Next::GivenUp { at, error } => finish.push(place, settlement, shards, &Ended::badly(*at, error, 1)),
            Next::Expired { at, error, is_called } => {
                let ended = Ended { status: Status::Expired, ..Ended::badly(*at, error, i32::from(!is_called)) };
                finish.push(place, settlement, shards, &ended);
            }
            Next::Pending { at, attempt, error } => {
                let next = NextTry { at: *at, attempt: *attempt, error: error.as_deref(), is_again: false };
                postpone.push(place, settlement, shards, &next);
            }
            Next::Again { at } => {
                let next = NextTry { at: *at, attempt: 0, error: None, is_again: true };
                postpone.push(place, settlement, shards, &next);
            }
        }
    }
    (finish, postpone)
}

/// How a timer ended.
struct Ended<'a> {
    status: Status,
    error: Option<&'a str>,
    at: Timestamp,
    unsent: i32,
}

impl<'a> Ended<'a> {
    const fn well(at: Timestamp) -> Self {
        Self { status: Status::Completed, error: None, at, unsent: 0 }
    }

    const fn badly(at: Timestamp, error: &'a str, unsent: i32) -> Self {
        Self { status: Status::Failed, error: Some(error), at, unsent }
    }
}

impl Finish {
    fn push(&mut self, place: i64, settlement: &Settlement, shards: u16, ended: &Ended<'_>) {
        self.keys.push(place, settlement, shards);
        self.statuses.push(ended.status.as_str());
        self.errors.push(ended.error.map(text_column));
        self.finished_ats.push(ended.at.as_micros());
        self.unsent.push(ended.unsent);
    }
}

/// When and how a timer is to be tried next.
struct NextTry<'a> {
    at: Timestamp,
    attempt: u32,
    error: Option<&'a str>,
    /// Whether it is a new due time, not another attempt at the old one.
    is_again: bool,
}

impl Postpone {
    fn push(&mut self, place: i64, settlement: &Settlement, shards: u16, next: &NextTry<'_>) {
        self.keys.push(place, settlement, shards);
        self.next_ats.push(next.at.as_micros());
        self.attempts.push(i32::try_from(next.attempt).unwrap_or(i32::MAX));
        self.errors.push(next.error.map(text_column));
        self.agains.push(next.is_again);
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
        let part = settle_part(bulkhead, shards, &rest[..part_of(rest)]).await;
        let partly_done = |error: StoreError| if counted.is_empty() { error } else { StoreError::Unknown(Cause::of(error)) };
        counted.append(&mut part.map_err(partly_done)?);
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

/// Two commits at most. If only the first of them is made, the answer is unknown.
async fn settle_part(bulkhead: &Bulkhead, shards: u16, batch: &[Settlement]) -> StoreResult<Vec<bool>> {
    let (finish, postpone) = sort(batch, shards);
    let mut counted = vec![false; batch.len()];
    let mut count = |places: Vec<i64>| {
        for place in places.into_iter().filter_map(|place| usize::try_from(place).ok()) {
            if let Some(counted) = counted.get_mut(place) {
                *counted = true;
            }
        }
    };
    let finishes = !finish.keys.ids.is_empty();
    if finishes {
        count(bulkhead.run(finish).await?);
    }
    if !postpone.keys.ids.is_empty() {
        let partly_done = |error: StoreError| if finishes { StoreError::Unknown(Cause::of(error)) } else { error };
        count(bulkhead.run(postpone).await.map_err(partly_done)?);
    }
    Ok(counted)
}
