//! Recording what became of claimed timers: under the shard lease that a claim was made under, or under the current one of its
//! shard, in the place of an owner that is gone.

use domain::{Cause, Next, Status, Timestamp};
use sqlx::{PgConnection, types::Uuid};
use store::{Settlement, StoreError, StoreResult};

use crate::{
    attempts::{AttemptColumns, attempt_arrays, attempt_columns, remember},
    bulkhead::{Bulkhead, Call},
    claim::held,
    failure::{Failure, Step},
    rows::{shard_column, text_column},
};

/// Each row leaves `due` and appears in `outcome` in one commit.
macro_rules! finish {
    ($arrays:expr, $returned:expr, $if_there:expr, $remember:expr) => {
        concat!(
            "WITH ",
            held!(),
            ", settled AS (
                DELETE FROM due d
                USING (
                    SELECT
                        unnest($1::smallint[]) AS shard, unnest($2::bigint[]) AS at, unnest($3::uuid[]) AS id,
                        unnest($4::bigint[]) AS token, unnest($5::bigint[]) AS place, unnest($6::text[]) AS status,
                        unnest($7::text[]) AS error, unnest($8::bigint[]) AS finished_at, unnest($9::bigint[]) AS epoch,
                        unnest($10::integer[]) AS unsent",
            $arrays,
            ") e
                WHERE d.shard = ANY (ARRAY[e.shard]) AND d.at = e.at AND d.id = e.id AND d.claim = e.token
                    AND (d.epoch = e.epoch OR ((e.shard, e.epoch) IN (SELECT shard, epoch FROM held)) IS TRUE)
                RETURNING d.id, d.attempt - e.unsent AS attempt, e.place, e.status, e.error, e.finished_at",
            $returned,
            "), kept AS (
                INSERT INTO outcome (id, status, attempt, last_error, executed_at, finished_at)
                SELECT id, status, attempt, error, finished_at, finished_at FROM settled",
            $if_there,
            ")",
            $remember,
            " SELECT place FROM settled"
        )
    };
}

/// The definition follows only when something it says has changed; its revision rises with a new due time.
macro_rules! postpone {
    ($arrays:expr, $returned:expr, $remember:expr) => {
        concat!(
            "WITH ",
            held!(),
            ", settled AS (
                UPDATE due d
                SET at = e.next_at, attempt = e.attempt, last_error = e.error,
                    claim = NULL, epoch = NULL, lease_until = NULL
                FROM (
                    SELECT
                        unnest($1::smallint[]) AS shard, unnest($2::bigint[]) AS at, unnest($3::uuid[]) AS id,
                        unnest($4::bigint[]) AS token, unnest($5::bigint[]) AS place, unnest($6::bigint[]) AS next_at,
                        unnest($7::integer[]) AS attempt, unnest($8::text[]) AS error, unnest($9::boolean[]) AS again,
                        unnest($10::bigint[]) AS epoch",
            $arrays,
            ") e
                WHERE d.shard = ANY (ARRAY[e.shard]) AND d.at = e.at AND d.id = e.id AND d.claim = e.token
                    AND (d.epoch = e.epoch OR ((e.shard, e.epoch) IN (SELECT shard, epoch FROM held)) IS TRUE)
                RETURNING d.id, e.place, e.at, e.next_at, e.again",
            $returned,
            "), followed AS (
                UPDATE definition f
                SET due_at = CASE WHEN s.again THEN NULL ELSE s.next_at END,
                    execute_at = CASE WHEN s.again THEN s.next_at ELSE f.execute_at END,
                    revision = f.revision + s.again::integer
                FROM settled s
                WHERE f.id = ANY (ARRAY[s.id]) AND (s.again OR s.next_at <> s.at)
            )",
            $remember,
            " SELECT place FROM settled"
        )
    };
}

/// There cannot be an outcome already. If a damaged database has one, it must not hold up the whole batch; but to look for it each
/// time would cost more than a tenth.
macro_rules! replacing {
    () => {
        " ON CONFLICT (id) DO UPDATE SET
            status = excluded.status, attempt = excluded.attempt, last_error = excluded.last_error,
            executed_at = excluded.executed_at, finished_at = excluded.finished_at"
    };
}

/// Each in two forms: most batches carry no attempt, and then nothing is paid for one.
pub(crate) const FINISH: &str = finish!("", "", "", "");
pub(crate) const FINISH_REMEMBERING: &str =
    finish!(concat!(", ", attempt_arrays!(11, 12, 13, 14, 15, 16)), concat!(", ", attempt_columns!("e.")), "", remember!(17));
/// The same for a batch that met an outcome.
pub(crate) const FINISH_AGAIN: &str = finish!("", "", replacing!(), "");
pub(crate) const FINISH_AGAIN_REMEMBERING: &str = finish!(
    concat!(", ", attempt_arrays!(11, 12, 13, 14, 15, 16)),
    concat!(", ", attempt_columns!("e.")),
    replacing!(),
    remember!(17)
);
pub(crate) const POSTPONE: &str = postpone!("", "", "");
pub(crate) const POSTPONE_REMEMBERING: &str =
    postpone!(concat!(", ", attempt_arrays!(11, 12, 13, 14, 15, 16)), concat!(", ", attempt_columns!("e.")), remember!(17));

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

impl Call for Finish {
    type Answer = Vec<i64>;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Vec<i64>, Failure> {
        let is_plain = self.keys.attempts.is_empty();
        let finished = match self.execute(if is_plain { FINISH } else { FINISH_REMEMBERING }, session).await {
            Err(failure) if failure.met_a_duplicate => {
                self.execute(if is_plain { FINISH_AGAIN } else { FINISH_AGAIN_REMEMBERING }, session).await
            }
            finished => finished,
        };
        finished.map_err(Failure::or_damage)
    }
}

impl Call for Postpone {
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

/// Sorts the batch by what is to be done. In the order of the key, as claims go too, so that nobody waits in a circle.
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

/// Two commits at most. If only the first of them is made, the answer is unknown, and the caller settles all of them again.
pub async fn settle(bulkhead: &Bulkhead, shards: u16, batch: &[Settlement]) -> StoreResult<Vec<bool>> {
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
