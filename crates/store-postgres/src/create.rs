//! Registering timers: new ones by the thousand in one statement, taken ids by what `domain::resolve` says.

use std::collections::{HashMap, HashSet};

use domain::{NewTimer, OnConflict, Resolution, Status, Timer, TimerId, resolve};
use sqlx::{PgConnection, Row, types::Uuid};
use store::{Created, StoreError, StoreResult};

use crate::{
    conflict::Resolve,
    failure::{self, Failure, Step},
    lane::{Call, Lane},
    read::Read,
    rows::DefinitionColumns,
};

/// How often a timer may vanish between its refusal and the look at what was in its way.
const RACES_MAX: usize = 5;

/// Writes the definitions whose id is free, and what makes them due. The ids come sorted: two batches that share some would
/// otherwise wait for each other. `IS TRUE` keeps the subquery a hash table; as a join it could be planned as a loop in a loop.
pub(crate) const INSERT: &str = "
    WITH inserted AS (
        INSERT INTO definition (
            id, namespace, key, asked, execute_at, due_minute, callback_type, callback_config, metadata, correlation_id,
            retry_policy, delivery, fingerprint, created_at, updated_at, revision
        )
        SELECT
            n.id, n.namespace, n.key, n.asked, n.execute_at, n.due_minute, n.callback_type, n.callback_config, n.metadata,
            n.correlation_id, n.retry_policy, n.delivery, n.fingerprint, n.created_at, n.created_at, 1
        FROM unnest(
            $1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::text[], $9::text[],
            $10::text[], $11::text[], $12::text[], $13::bytea[], $14::bigint[]
        ) AS n (
            id, namespace, key, asked, execute_at, due_minute, callback_type, callback_config, metadata, correlation_id,
            retry_policy, delivery, fingerprint, created_at
        )
        ON CONFLICT (id) DO NOTHING
        RETURNING id
    )
    INSERT INTO due (shard, minute, id, at, attempt, destination)
    SELECT w.shard, w.minute, w.id, w.at, 0, w.destination
    FROM unnest($1::uuid[], $5::bigint[], $6::bigint[], $15::bigint[], $16::smallint[]) AS w (id, at, minute, destination, shard)
    WHERE (w.id IN (SELECT id FROM inserted)) IS TRUE
    RETURNING id";

/// Answers each timer of the batch. Ids that repeat are taken in successive rounds, so that each meets what the one before
/// it left.
pub async fn create(lane: &Lane, shards: u16, batch: Vec<NewTimer>) -> Vec<StoreResult<Created>> {
    metrics::histogram!("timer_postgres_create_batch_timers").record(batch.len() as f64);
    let mut answers: Vec<Option<StoreResult<Created>>> = batch.iter().map(|_| None).collect();
    for round in rounds(&batch) {
        let timers: Vec<NewTimer> = round.iter().map(|&place| batch[place].clone()).collect();
        for (place, answer) in round.into_iter().zip(create_round(lane, shards, timers).await) {
            answers[place] = Some(answer);
        }
    }
    let missing = || Err(StoreError::Unknown("its round was never written".to_owned()));
    answers.into_iter().map(|answer| answer.unwrap_or_else(missing)).collect()
}

/// The places of the batch, so that no round has an id twice and repetitions stay in their order. Each round is sorted by id.
fn rounds(batch: &[NewTimer]) -> Vec<Vec<usize>> {
    let mut seen: HashMap<TimerId, usize> = HashMap::with_capacity(batch.len());
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    for (place, new) in batch.iter().enumerate() {
        let round = seen.entry(new.definition.id).or_default();
        if *round == rounds.len() {
            rounds.push(Vec::new());
        }
        rounds[*round].push(place);
        *round += 1;
    }
    for round in &mut rounds {
        round.sort_unstable_by_key(|&place| batch[place].definition.id);
    }
    rounds
}

/// Timers with distinct ids, sorted by them.
async fn create_round(lane: &Lane, shards: u16, timers: Vec<NewTimer>) -> Vec<StoreResult<Created>> {
    let inserted = insert(lane, shards, &timers).await;
    let mut answers = Vec::with_capacity(timers.len());
    let mut taken = Vec::new();
    for (place, (new, inserted)) in timers.into_iter().zip(inserted).enumerate() {
        answers.push(match inserted {
            Ok(true) => Ok(Created::Created(as_created(&new))),
            Ok(false) => {
                taken.push((place, new));
                // Replaced below, for every taken place.
                Err(StoreError::Unknown("it was not resolved".to_owned()))
            }
            Err(error) => Err(error),
        });
    }
    if !taken.is_empty() {
        for (place, answer) in resolve_taken(lane, shards, taken).await {
            answers[place] = answer;
        }
    }
    answers
}

/// Which of the timers were free. One whose values the server refuses must not hinder the others: the batch is then halved
/// until it stands alone.
async fn insert(lane: &Lane, shards: u16, timers: &[NewTimer]) -> Vec<StoreResult<bool>> {
    match lane.attempt(Insert::new(timers, shards)).await {
        Ok(inserted) => timers.iter().map(|new| Ok(inserted.contains(&new.definition.id.as_uuid()))).collect(),
        Err(failure) if failure.is_about_a_value && timers.len() > 1 => {
            let (left, right) = timers.split_at(timers.len() / 2);
            let mut answers = Box::pin(insert(lane, shards, left)).await;
            answers.extend(Box::pin(insert(lane, shards, right)).await);
            answers
        }
        Err(failure) => timers.iter().map(|_| Err(failure::copy(&failure.error))).collect(),
    }
}

struct Insert {
    columns: DefinitionColumns,
    created_ats: Vec<i64>,
}

impl Insert {
    fn new(timers: &[NewTimer], shards: u16) -> Self {
        let mut columns = DefinitionColumns::default();
        for new in timers {
            columns.push(&new.definition, new.execute_at, new.definition.fingerprint(), shards);
        }
        Self { columns, created_ats: timers.iter().map(|new| new.created_at.as_micros()).collect() }
    }
}

impl Call for Insert {
    type Answer = HashSet<Uuid>;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<HashSet<Uuid>, Failure> {
        let columns = &self.columns;
        let rows = sqlx::query(INSERT)
            .bind(&columns.ids)
            .bind(&columns.namespaces)
            .bind(&columns.keys)
            .bind(&columns.askeds)
            .bind(&columns.execute_ats)
            .bind(&columns.minutes)
            .bind(&columns.callback_types)
            .bind(&columns.callback_configs)
            .bind(&columns.metadatas)
            .bind(&columns.correlation_ids)
            .bind(&columns.retry_policies)
            .bind(&columns.deliveries)
            .bind(&columns.fingerprints)
            .bind(&self.created_ats)
            .bind(&columns.destinations)
            .bind(&columns.shards)
            .fetch_all(session)
            .await
            .or_unknown()?;
        rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>().or_unknown()
    }
}

/// Answers timers whose ids were taken. A timer that only asks (`reject`) changes nothing, so all of those are answered
/// from one look; the others change what they met, each in a transaction of its own.
async fn resolve_taken(lane: &Lane, shards: u16, taken: Vec<(usize, NewTimer)>) -> Vec<(usize, StoreResult<Created>)> {
    let asking = taken.iter().filter(|(_, new)| new.on_conflict == OnConflict::Reject).map(|(_, new)| new.definition.id);
    let met = lane.run(Read::new(asking.collect(), shards)).await;
    let mut answers = Vec::with_capacity(taken.len());
    for (place, new) in taken {
        let met = match (&met, new.on_conflict) {
            (_, OnConflict::Replace | OnConflict::Keep) => None,
            (Ok(found), OnConflict::Reject) => found.get(&new.definition.id),
            (Err(error), OnConflict::Reject) => {
                answers.push((place, Err(failure::copy(error))));
                continue;
            }
        };
        let answer = match met {
            Some(Ok(met)) => Ok(asked(&new, met.timer.clone(), met.fingerprint)),
            Some(Err(unreadable)) => Err(StoreError::Corrupt(unreadable.0.clone())),
            None => resolve_one(lane, shards, new).await,
        };
        answers.push((place, answer));
    }
    answers
}

fn asked(new: &NewTimer, met: Timer, fingerprint: domain::Fingerprint) -> Created {
    let existing = (fingerprint, met.definition.asked);
    match resolve(OnConflict::Reject, met.status, existing, (new.definition.fingerprint(), new.definition.asked)) {
        Resolution::Existing => Created::Existing(met),
        Resolution::Conflict | Resolution::Overwrite | Resolution::Move | Resolution::Revive => Created::Conflict(met),
    }
}

/// Until the id is either free or met: whatever was in the way may be purged in between.
async fn resolve_one(lane: &Lane, shards: u16, new: NewTimer) -> StoreResult<Created> {
    for _ in 0..RACES_MAX {
        if let Some(created) = lane.run(Resolve::new(new.clone(), shards)).await? {
            return Ok(created);
        }
        if insert(lane, shards, std::slice::from_ref(&new)).await.pop().unwrap_or(Ok(false))? {
            return Ok(Created::Created(as_created(&new)));
        }
    }
    Err(StoreError::Unavailable("others keep removing and registering this timer".to_owned()))
}

/// A new timer as it stands once it is written.
pub fn as_created(new: &NewTimer) -> Timer {
    Timer {
        definition: new.definition.clone(),
        execute_at: new.execute_at,
        status: Status::Pending,
        attempt: 0,
        last_error: None,
        executed_at: None,
        created_at: new.created_at,
        updated_at: new.created_at,
        revision: 1,
    }
}

/// One answer for all of a caller's timers. Where some were written and others failed, the whole is unknown: the caller
/// finds out by registering them again.
pub fn together(answers: Vec<StoreResult<Created>>) -> StoreResult<Vec<Created>> {
    let is_partly_done = answers.iter().any(|answer| answer.as_ref().is_ok_and(is_change));
    answers.into_iter().collect::<StoreResult<Vec<_>>>().map_err(|error| match error {
        error if error.is_not_done() && is_partly_done => StoreError::Unknown(error.to_string()),
        error => error,
    })
}

const fn is_change(created: &Created) -> bool {
    matches!(created, Created::Created(_) | Created::Replaced(_))
}

#[cfg(test)]
mod tests {
    use store_conformance::timer;

    use super::*;

    fn numbered(number: u64) -> NewTimer {
        timer("http://a.example/").numbered(number).build()
    }

    #[test]
    fn repeated_ids_are_taken_in_rounds_and_each_round_in_the_order_of_ids() {
        let batch: Vec<_> = [3, 1, 3, 2, 1, 3].map(numbered).into();
        assert_eq!(rounds(&batch), [vec![1, 3, 0], vec![4, 2], vec![5]]);
        assert!(rounds(&[]).is_empty());
    }

    #[test]
    fn a_failure_beside_a_success_is_unknown() {
        let done = || Ok(Created::Created(as_created(&numbered(1))));
        let same = || Ok(Created::Existing(as_created(&numbered(1))));
        let down = || Err(StoreError::Unavailable("down".to_owned()));
        assert_eq!(together(vec![done(), same()]).unwrap().len(), 2);
        assert!(matches!(together(vec![down(), down()]), Err(StoreError::Unavailable(_))));
        assert!(matches!(together(vec![same(), down()]), Err(StoreError::Unavailable(_))));
        assert!(matches!(together(vec![down(), done()]), Err(StoreError::Unknown(_))));
    }
}
