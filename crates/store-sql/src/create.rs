//! Registering timers: new ones by the thousand in one statement, taken ids by what `domain::resolve` says.
//!
//! ```text
//!   create ──▶ batch: all that is queued, one statement ──┬─ free ──▶ answered
//!                                                         └─ taken ──▶ each caller settles its own, a few at a time
//! ```

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    sync::Arc,
    time::Duration,
};

use domain::{
    Callback, Cause, Definition, Fingerprint, NewTimer, OnConflict, Resolution, Status, Timer, TimerId, Times, limits, resolve,
};
use futures_util::{StreamExt, stream};
use store::{Created, StoreError, StoreResult, Unreadable};
use tokio::{sync::Semaphore, time::timeout};

use crate::{BatchLimits, Batcher, Failure, Verdict};

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
/// How many taken ids are settled at the same time. Each takes a session for a few round trips, or for as long as another session
/// holds its row: some must be left for creates whose ids are free.
const CONFLICTS_MAX: usize = 2;
/// A conflict that waited longer for its permit is turned away.
const CONFLICT_WAIT_MAX: Duration = Duration::from_secs(3);
/// How often a timer may vanish between its refusal and the look at what was in its way.
const RACES_MAX: usize = 5;

/// The statements with which a database registers timers.
pub trait Inserts: Send + Sync + 'static {
    /// The histogram of how many timers one statement writes.
    const BATCH_TIMERS: &'static str;

    /// Writes the timers whose ids are free, in one commit. The ids come sorted and none comes twice.
    fn insert(&self, timers: &[Arc<NewTimer>]) -> impl Future<Output = Result<Inserted, Failure>> + Send;

    /// Reads timers, in one snapshot.
    fn read(
        &self,
        ids: Vec<TimerId>,
    ) -> impl Future<Output = StoreResult<HashMap<TimerId, Result<ExistingTimer, Unreadable>>>> + Send;

    /// Locks the timer that is in the way and does what `domain::resolve` says, in one transaction. `None` when nothing is in the
    /// way any more.
    fn resolve(&self, new: Arc<NewTimer>) -> impl Future<Output = StoreResult<Option<Created>>> + Send;
}

/// Which of the timers were written.
#[derive(Debug)]
pub enum Inserted {
    All,
    Only(HashSet<TimerId>),
}

/// A timer that exists already, with the fingerprint that is stored with it.
#[derive(Debug)]
pub struct ExistingTimer {
    pub timer: Timer,
    pub fingerprint: Fingerprint,
}

/// The way in for new timers.
#[derive(Debug)]
pub struct Creates<I: Inserts> {
    statements: Arc<I>,
    inserts: Batcher<Arc<NewTimer>, bool>,
    conflicts: Semaphore,
}

impl<I: Inserts> Creates<I> {
    /// Must be called inside a Tokio runtime.
    pub fn start(statements: I) -> Self {
        let statements = Arc::new(statements);
        let inserts = Batcher::start(INSERTS, |new| bytes(new), {
            let statements = Arc::clone(&statements);
            move |batch| {
                let statements = Arc::clone(&statements);
                async move { insert_free(&*statements, &batch).await }
            }
        });
        Self { statements, inserts, conflicts: Semaphore::new(CONFLICTS_MAX) }
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
            let met = self.statements.read(ids).await;
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

    /// Tries until the id is either free or met: what was in the way may be purged in between.
    async fn resolve_one(&self, new: &Arc<NewTimer>) -> StoreResult<Created> {
        let busy = || StoreError::Unavailable("too many changes of existing timers are waiting".into());
        let permit = timeout(CONFLICT_WAIT_MAX, self.conflicts.acquire()).await.map_err(|_| busy())?;
        let _permit = permit.map_err(|_| busy())?;
        for _ in 0..RACES_MAX {
            if let Some(created) = self.statements.resolve(Arc::clone(new)).await? {
                return Ok(created);
            }
            if insert(&*self.statements, std::slice::from_ref(new)).await.pop().unwrap_or(Ok(false))? {
                return Ok(Created::Created(as_created(new)));
            }
        }
        Err(StoreError::Unavailable("other requests keep removing and registering this timer".into()))
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
async fn insert_free<I: Inserts>(statements: &I, batch: &[Arc<NewTimer>]) -> Vec<StoreResult<bool>> {
    metrics::histogram!(I::BATCH_TIMERS).record(batch.len() as f64);
    let places = first_places(batch);
    let timers: Vec<_> = places.iter().map(|&place| Arc::clone(&batch[place])).collect();
    let mut answers: Vec<_> = batch.iter().map(|_| Ok(false)).collect();
    let mut inserted = Vec::with_capacity(timers.len());
    for portion in portions(&timers, INSERT_BYTES_MAX) {
        inserted.extend(insert(statements, portion).await);
    }
    for (place, inserted) in places.into_iter().zip(inserted) {
        answers[place] = inserted;
    }
    answers
}

/// The timers in their order, cut so that no portion of several has more bytes than that.
fn portions(mut timers: &[Arc<NewTimer>], bytes_max: usize) -> impl Iterator<Item = &[Arc<NewTimer>]> {
    std::iter::from_fn(move || {
        let mut bytes_left = bytes_max;
        let fits = |new: &&Arc<NewTimer>| {
            let is_first = bytes_left == bytes_max;
            let left = bytes_left.checked_sub(bytes(new));
            bytes_left = left.unwrap_or(0);
            is_first || left.is_some()
        };
        let (portion, rest) = timers.split_at(timers.iter().take_while(fits).count());
        timers = rest;
        (!portion.is_empty()).then_some(portion)
    })
}

fn bytes(new: &NewTimer) -> usize {
    definition_bytes(&new.definition)
}

/// About how much of a statement the definition of a timer takes.
pub fn definition_bytes(definition: &Definition) -> usize {
    let payload = definition.callback.payload().map_or(0, |json| json.as_str().len());
    let metadata = definition.metadata.as_ref().map_or(0, |json| json.as_str().len());
    let options = &definition.options;
    let follow_up = |callback: &Option<Box<Callback>>| callback.as_ref().map_or(0, |_| limits::FOLLOW_UP_BYTES_MAX);
    TIMER_BYTES + payload + metadata + follow_up(&options.on_success) + follow_up(&options.on_failure)
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
async fn insert<I: Inserts>(statements: &I, timers: &[Arc<NewTimer>]) -> Vec<StoreResult<bool>> {
    match statements.insert(timers).await {
        Ok(Inserted::All) => timers.iter().map(|_| Ok(true)).collect(),
        Ok(Inserted::Only(inserted)) => timers.iter().map(|new| Ok(inserted.contains(&new.definition.id))).collect(),
        Err(failure) if failure.verdict == Verdict::Value && timers.len() > 1 => {
            let (left, right) = timers.split_at(timers.len() / 2);
            let mut answers = Box::pin(insert(statements, left)).await;
            answers.extend(Box::pin(insert(statements, right)).await);
            answers
        }
        Err(failure) => timers.iter().map(|_| Err(failure.error.clone())).collect(),
    }
}

fn asked(new: &NewTimer, met: Timer, fingerprint: Fingerprint) -> Created {
    let existing = met.definition.content_with(fingerprint);
    let times = Times::of(&met, new.execute_at);
    match resolve(OnConflict::Reject, met.status, existing, new.definition.content(), times) {
        Resolution::Existing => Created::Existing(met),
        Resolution::Conflict | Resolution::Overwrite | Resolution::Move(_) | Resolution::PastExpiry | Resolution::Revive => {
            Created::Conflict(met)
        }
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
        pause: None,
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
