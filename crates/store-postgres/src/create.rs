//! Registering timers: new ones by the thousand in one statement, taken ids by what `domain::resolve` says.
//!
//! ```text
//!   create ──▶ batch: all that is queued, one statement ──┬─ free ──▶ answered
//!                                                         └─ taken ──▶ each caller settles its own, a few at a time
//! ```

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use domain::{Cause, NewTimer, OnConflict, Resolution, Status, Timer, TimerId, resolve};
use futures_util::{StreamExt, stream};
use sqlx::{PgConnection, Row, types::Uuid};
use store::{Created, StoreError, StoreResult};
use tokio::{sync::Semaphore, time::timeout};

use crate::{
    batch::{BatchLimits, Batcher},
    bulkhead::{Bulkhead, Call},
    conflict::Resolve,
    failure::{Failure, Step},
    read::Read,
    rows::DefinitionColumns,
};

/// Two workers: while one batch is being committed, the next is on its way. A commit costs as much as a dozen timers.
const INSERTS: BatchLimits = BatchLimits {
    workers: 2,
    items_max: 1_024,
    bytes_max: INSERT_BYTES_MAX,
    items_worthwhile: 128,
    linger_max: Duration::from_millis(2),
    orders_queued_max: 4_096,
    wait_max: Duration::from_secs(3),
};
/// What one statement carries, if it carries more than one timer. A slow wire takes this in well under a second.
const INSERT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What a timer takes beside its payload and its metadata, at the most that is usual.
const TIMER_BYTES: usize = 512;
/// How many taken ids are settled at the same time. Each takes a session for a few round trips, or for as long as somebody
/// holds its row: some must be left for those who are in nobody's way.
const CONFLICTS_MAX: usize = 2;
/// A conflict that waited longer for its turn is turned away.
const CONFLICT_WAIT_MAX: Duration = Duration::from_secs(3);
/// How often a timer may vanish between its refusal and the look at what was in its way.
const RACES_MAX: usize = 5;

/// The columns of new definitions, `$1` to `$13`.
macro_rules! new_definitions {
    () => {
        "INSERT INTO definition (
            id, namespace, key, asked, execute_at, callback_type, callback_config, metadata, correlation_id,
            retry_policy, delivery, fingerprint, created_at, updated_at, revision
        )
        SELECT
            n.id, n.namespace, n.key, n.asked, n.execute_at, n.callback_type, n.callback_config, n.metadata,
            n.correlation_id, n.retry_policy, n.delivery, n.fingerprint, n.created_at, n.created_at, 1
        FROM (
            SELECT
                unnest($1::uuid[]) AS id, unnest($2::text[]) AS namespace, unnest($3::text[]) AS key,
                unnest($4::bigint[]) AS asked, unnest($5::bigint[]) AS execute_at,
                unnest($6::text[]) AS callback_type, unnest($7::text[]) AS callback_config, unnest($8::text[]) AS metadata,
                unnest($9::text[]) AS correlation_id, unnest($10::text[]) AS retry_policy, unnest($11::text[]) AS delivery,
                unnest($12::bytea[]) AS fingerprint, unnest($13::bigint[]) AS created_at
        ) n"
    };
}

/// What makes them due.
macro_rules! new_dues {
    () => {
        "INSERT INTO due (shard, id, at, attempt, destination)
        SELECT w.shard, w.id, w.at, 0, w.destination
        FROM (
            SELECT
                unnest($1::uuid[]) AS id, unnest($5::bigint[]) AS at,
                unnest($14::bigint[]) AS destination, unnest($15::smallint[]) AS shard
        ) w"
    };
}

/// Writes new timers, all of them or none: a taken id is a failure, for to look each up before would cost a tenth. The ids come
/// sorted: two batches that share some would otherwise wait for each other. The server does the part in front last, when a taken
/// id has been noticed: the row in `due` may be held by somebody who changes it, and would be waited for.
///
/// Arrays are taken apart in the list of columns, here and wherever there are many: as a table of its own, each of them
/// would be written to memory and read again.
pub(crate) const INSERT: &str = concat!("WITH placed AS (", new_dues!(), ") ", new_definitions!());

/// Writes those whose id is free, and answers with them. `IS TRUE` keeps the subquery a hash table; as a join it could be planned
/// as a loop in a loop.
pub(crate) const INSERT_FREE: &str = concat!(
    "WITH inserted AS (",
    new_definitions!(),
    " ON CONFLICT (id) DO NOTHING RETURNING id) ",
    new_dues!(),
    " WHERE (w.id IN (SELECT id FROM inserted)) IS TRUE RETURNING id"
);

/// The way in for new timers.
#[derive(Debug)]
pub struct Creates {
    bulkhead: Bulkhead,
    shards: Arc<AtomicU16>,
    inserts: Batcher<Arc<NewTimer>, bool>,
    conflicts: Semaphore,
}

impl Creates {
    pub fn start(bulkhead: Bulkhead, shards: Arc<AtomicU16>) -> Self {
        let inserts = Batcher::start(INSERTS, |new| bytes(new), {
            let (bulkhead, shards) = (bulkhead.clone(), Arc::clone(&shards));
            move |batch| {
                let (bulkhead, shards) = (bulkhead.clone(), shards.load(Ordering::Relaxed));
                async move { insert_free(&bulkhead, shards, &batch).await }
            }
        });
        Self { bulkhead, shards, inserts, conflicts: Semaphore::new(CONFLICTS_MAX) }
    }

    pub async fn create(&self, batch: Vec<NewTimer>) -> StoreResult<Vec<Created>> {
        let batch: Vec<Arc<NewTimer>> = batch.into_iter().map(Arc::new).collect();
        let mut answers: Vec<Option<StoreResult<Created>>> = Vec::with_capacity(batch.len());
        let mut taken = Vec::new();
        for (place, inserted) in self.inserts.submit(batch.clone()).await.into_iter().enumerate() {
            answers.push(match inserted {
                Ok(true) => Some(Ok(Created::Created(as_created(&batch[place])))),
                Ok(false) => {
                    taken.push(place);
                    None
                }
                Err(error) => Some(Err(error)),
            });
        }
        // Ids that repeat are settled in successive rounds, so that each meets what the one before it left.
        for round in rounds(&batch, &taken) {
            for (place, answer) in self.resolve_taken(&batch, round).await {
                answers[place] = Some(answer);
            }
        }
        let missing = || Err(StoreError::Unknown("it was never resolved".into()));
        together(answers.into_iter().map(|answer| answer.unwrap_or_else(missing)).collect())
    }

    /// Answers timers whose ids were taken, each id once. A timer that only asks (`reject`) changes nothing, so all of those
    /// are answered from one look; the others change what they met, each in a transaction of its own.
    async fn resolve_taken(&self, batch: &[Arc<NewTimer>], places: Vec<usize>) -> Vec<(usize, StoreResult<Created>)> {
        let asks = |place: &usize| batch[*place].on_conflict == OnConflict::Reject;
        let (asking, mut changing): (Vec<usize>, Vec<usize>) = places.into_iter().partition(asks);
        let mut answers = Vec::with_capacity(asking.len() + changing.len());
        if !asking.is_empty() {
            let ids = asking.iter().map(|place| batch[*place].definition.id).collect();
            let met = self.bulkhead.run(Read::new(ids, self.shards())).await;
            for place in asking {
                let new = &batch[place];
                match met.as_ref().map(|found| found.get(&new.definition.id)) {
                    Ok(Some(Ok(met))) => answers.push((place, Ok(asked(new, met.timer.clone(), met.fingerprint)))),
                    Ok(Some(Err(unreadable))) => answers.push((place, Err(StoreError::Corrupt(Cause::of(unreadable.clone()))))),
                    // It is gone since.
                    Ok(None) => changing.push(place),
                    Err(error) => answers.push((place, Err(error.clone()))),
                }
            }
        }
        let resolve = |place: usize| async move { (place, self.resolve_one(&batch[place]).await) };
        let resolved: Vec<_> = changing.into_iter().map(resolve).collect();
        answers.extend(stream::iter(resolved).buffer_unordered(CONFLICTS_MAX).collect::<Vec<_>>().await);
        answers
    }

    /// Until the id is either free or met: whatever was in the way may be purged in between.
    async fn resolve_one(&self, new: &Arc<NewTimer>) -> StoreResult<Created> {
        let busy = || StoreError::Unavailable("too many changes of existing timers are waiting".into());
        let turn = timeout(CONFLICT_WAIT_MAX, self.conflicts.acquire()).await.map_err(|_| busy())?;
        let _turn = turn.map_err(|_| busy())?;
        let shards = self.shards();
        for _ in 0..RACES_MAX {
            if let Some(created) = self.bulkhead.run(Resolve::new(Arc::clone(new), shards)).await? {
                return Ok(created);
            }
            if insert(&self.bulkhead, shards, std::slice::from_ref(new)).await.pop().unwrap_or(Ok(false))? {
                return Ok(Created::Created(as_created(new)));
            }
        }
        Err(StoreError::Unavailable("others keep removing and registering this timer".into()))
    }

    fn shards(&self) -> u16 {
        self.shards.load(Ordering::Relaxed)
    }
}

/// The places that were taken, so that no round has an id twice and repetitions stay in their order.
fn rounds(batch: &[Arc<NewTimer>], taken: &[usize]) -> Vec<Vec<usize>> {
    let mut seen: HashMap<TimerId, usize> = HashMap::with_capacity(taken.len());
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    for &place in taken {
        let round = seen.entry(batch[place].definition.id).or_default();
        if *round == rounds.len() {
            rounds.push(Vec::new());
        }
        rounds[*round].push(place);
        *round += 1;
    }
    rounds
}

/// Writes what is free, and says for each of the batch whether it was. Of several with the same id only the first is
/// tried: it is in the way of the others.
async fn insert_free(bulkhead: &Bulkhead, shards: u16, batch: &[Arc<NewTimer>]) -> Vec<StoreResult<bool>> {
    metrics::histogram!("timer_postgres_create_batch_timers").record(batch.len() as f64);
    let places = first_places(batch);
    let timers: Vec<_> = places.iter().map(|&place| Arc::clone(&batch[place])).collect();
    let mut answers: Vec<_> = batch.iter().map(|_| Ok(false)).collect();
    let mut inserted = Vec::with_capacity(timers.len());
    for portion in portions(&timers, INSERT_BYTES_MAX) {
        inserted.extend(insert(bulkhead, shards, portion).await);
    }
    for (place, inserted) in places.into_iter().zip(inserted) {
        answers[place] = inserted;
    }
    answers
}

/// The timers in their order, cut so that no portion of several has more bytes than that.
fn portions(mut timers: &[Arc<NewTimer>], bytes_max: usize) -> impl Iterator<Item = &[Arc<NewTimer>]> {
    std::iter::from_fn(move || {
        let mut room = bytes_max;
        let fits = |new: &&Arc<NewTimer>| {
            let is_first = room == bytes_max;
            let left = room.checked_sub(bytes(new));
            room = left.unwrap_or(0);
            is_first || left.is_some()
        };
        let (portion, rest) = timers.split_at(timers.iter().take_while(fits).count());
        timers = rest;
        (!portion.is_empty()).then_some(portion)
    })
}

/// About how much of a statement a timer takes.
fn bytes(new: &NewTimer) -> usize {
    let payload = new.definition.callback.payload().map_or(0, |json| json.as_str().len());
    let metadata = new.definition.metadata.as_ref().map_or(0, |json| json.as_str().len());
    TIMER_BYTES + payload + metadata
}

/// Where each id stands first, in the order of the ids.
fn first_places(batch: &[Arc<NewTimer>]) -> Vec<usize> {
    let mut seen = HashSet::with_capacity(batch.len());
    let mut places: Vec<usize> = (0..batch.len()).filter(|&place| seen.insert(batch[place].definition.id)).collect();
    places.sort_unstable_by_key(|&place| batch[place].definition.id);
    places
}

/// Which of the timers were free. One whose values the server refuses must not hinder the others: the batch is then halved
/// until it stands alone.
async fn insert(bulkhead: &Bulkhead, shards: u16, timers: &[Arc<NewTimer>]) -> Vec<StoreResult<bool>> {
    match insert_at_once(bulkhead, Insert::new(timers, shards)).await {
        Ok(Inserted::All) => timers.iter().map(|_| Ok(true)).collect(),
        Ok(Inserted::Only(inserted)) => timers.iter().map(|new| Ok(inserted.contains(&new.definition.id.as_uuid()))).collect(),
        Err(failure) if failure.is_about_a_value && timers.len() > 1 => {
            let (left, right) = timers.split_at(timers.len() / 2);
            let mut answers = Box::pin(insert(bulkhead, shards, left)).await;
            answers.extend(Box::pin(insert(bulkhead, shards, right)).await);
            answers
        }
        Err(failure) => timers.iter().map(|_| Err(failure.error.clone())).collect(),
    }
}

/// An id that nobody chose is free, so most batches need not ask. Where that turns out to be wrong, nothing was written.
async fn insert_at_once(bulkhead: &Bulkhead, mut insert: Insert) -> Result<Inserted, Failure> {
    if !insert.asks_first {
        let again = insert.clone();
        match bulkhead.attempt(insert).await {
            Err(failure) if failure.met_a_duplicate => insert = Insert { asks_first: true, ..again },
            answer => return answer,
        }
    }
    bulkhead.attempt(insert).await
}

#[derive(Clone)]
struct Insert {
    columns: Arc<DefinitionColumns>,
    created_ats: Arc<Vec<i64>>,
    asks_first: bool,
}

/// Which of the timers of an [`Insert`] were written.
enum Inserted {
    All,
    Only(HashSet<Uuid>),
}

impl Insert {
    fn new(timers: &[Arc<NewTimer>], shards: u16) -> Self {
        let mut columns = DefinitionColumns::default();
        for new in timers {
            columns.push(&new.definition, new.execute_at, new.definition.fingerprint(), shards);
        }
        Self {
            columns: Arc::new(columns),
            created_ats: Arc::new(timers.iter().map(|new| new.created_at.as_micros()).collect()),
            // Whoever names a timer by a key may well do so again.
            asks_first: timers.iter().any(|new| new.definition.key.is_some()),
        }
    }
}

impl Call for Insert {
    type Answer = Inserted;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Inserted, Failure> {
        let columns = &self.columns;
        let query = sqlx::query(if self.asks_first { INSERT_FREE } else { INSERT })
            .bind(&columns.ids)
            .bind(&columns.namespaces)
            .bind(&columns.keys)
            .bind(&columns.askeds)
            .bind(&columns.execute_ats)
            .bind(&columns.callback_types)
            .bind(&columns.callback_configs)
            .bind(&columns.metadatas)
            .bind(&columns.correlation_ids)
            .bind(&columns.retry_policies)
            .bind(&columns.deliveries)
            .bind(&columns.fingerprints)
            .bind(&*self.created_ats)
            .bind(&columns.destinations)
            .bind(&columns.shards);
        if !self.asks_first {
            query.execute(session).await.or_unknown()?;
            return Ok(Inserted::All);
        }
        let rows = query.fetch_all(session).await.or_unknown()?;
        Ok(Inserted::Only(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>().or_unknown()?))
    }
}

fn asked(new: &NewTimer, met: Timer, fingerprint: domain::Fingerprint) -> Created {
    let existing = met.definition.content_with(fingerprint);
    match resolve(OnConflict::Reject, met.status, existing, new.definition.content()) {
        Resolution::Existing => Created::Existing(met),
        Resolution::Conflict | Resolution::Overwrite | Resolution::Move | Resolution::Revive => Created::Conflict(met),
    }
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
fn together(answers: Vec<StoreResult<Created>>) -> StoreResult<Vec<Created>> {
    let is_partly_done = answers.iter().any(|answer| answer.as_ref().is_ok_and(is_change));
    answers.into_iter().collect::<StoreResult<Vec<_>>>().map_err(|error| match error {
        error if error.is_not_done() && is_partly_done => StoreError::Unknown(Cause::of(error)),
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
    fn of_repeated_ids_the_first_is_tried_in_the_order_of_ids() {
        let batch: Vec<_> = [3, 1, 3, 2, 1, 3].map(numbered).map(Arc::new).into();
        assert_eq!(first_places(&batch), [1, 3, 0]);
        assert!(first_places(&[]).is_empty());
    }

    #[test]
    fn repeated_ids_that_are_taken_are_settled_in_rounds() {
        let batch: Vec<_> = [3, 1, 3, 2, 1, 3].map(numbered).map(Arc::new).into();
        assert_eq!(rounds(&batch, &[2, 4, 5]), [vec![2, 4], vec![5]]);
        assert_eq!(rounds(&batch, &[0, 1, 2, 3, 4, 5]), [vec![0, 1, 3], vec![2, 4], vec![5]]);
        assert!(rounds(&batch, &[]).is_empty());
    }

    #[test]
    fn a_statement_carries_no_more_than_it_may_and_at_least_one_timer() {
        let sized = |bytes: usize| Arc::new(timer("http://a.example/").payload(&format!(r#""{}""#, "x".repeat(bytes))).build());
        let (small, large, huge) = (sized(100), sized(2_000), sized(10_000));
        let lengths = |timers: &[Arc<NewTimer>]| portions(timers, 4_000).map(<[_]>::len).collect::<Vec<_>>();
        assert!(lengths(&[]).is_empty());
        assert_eq!(lengths(&vec![Arc::clone(&small); 13]), [6, 6, 1]);
        assert_eq!(lengths(&[Arc::clone(&large), Arc::clone(&large), small, large]), [1, 2, 1]);
        assert_eq!(lengths(&[Arc::clone(&huge), huge]), [1, 1]);
    }

    #[test]
    fn a_failure_beside_a_success_is_unknown() {
        let done = || Ok(Created::Created(as_created(&numbered(1))));
        let same = || Ok(Created::Existing(as_created(&numbered(1))));
        let down = || Err(StoreError::Unavailable("down".into()));
        assert_eq!(together(vec![done(), same()]).unwrap().len(), 2);
        assert!(matches!(together(vec![down(), down()]), Err(StoreError::Unavailable(_))));
        assert!(matches!(together(vec![same(), down()]), Err(StoreError::Unavailable(_))));
        assert!(matches!(together(vec![down(), done()]), Err(StoreError::Unknown(_))));
    }
}
