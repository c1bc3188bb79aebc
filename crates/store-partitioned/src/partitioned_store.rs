use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use domain::{Cause, Clock, Shard, TimerId, Timestamp};
use futures_util::{StreamExt, future::BoxFuture, stream};
use serde::{Deserialize, Serialize};
use store::{Cluster, Happened, Promise, Sharded, StoreError, StoreResult};
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::{
    Change, Columns, Condition, Consistency, Database, Outcome, Partition, Positions, Row, Version, Write,
    json::{corrupt, from_json, to_json},
    layout,
    liveness::Liveness,
    nudge_inbox::NudgeInbox,
    shared_answer::SharedAnswer,
    timer_row::TimerRow,
    transition::Step,
};

/// How many partitions one call works on at the same time.
pub const PARTITIONS_AT_ONCE: usize = 16;
/// The time for which new timers go to the same shard, in milliseconds.
const SHARD_CHOSEN_MILLIS: u128 = 20;
/// The number of rounds in a row in which other writers came first after which a call gives up.
const LOST_RACES_MAX: usize = 100;

/// When this process saw the claims of its shards first, by its monotonic clock.
pub type ClaimsSeen = HashMap<Shard, HashMap<Vec<u8>, Duration>>;

/// The contract of a store over a partitioned database.
///
/// Each change of a timer is read, decide, write under the condition that the row is as it was read: of many writers of one
/// row one wins, and the others decide anew on what it wrote.
pub struct PartitionedStore {
    pub(crate) database: Arc<dyn Database>,
    pub(crate) clock: Arc<dyn Clock>,
    shards: u16,
    /// In every version that this process writes, above its counter.
    process: u64,
    written: AtomicU64,
    pub(crate) liveness: std::sync::Mutex<Liveness>,
    /// The shards that the node of this process held at its last heartbeat.
    pub(crate) held: std::sync::Mutex<Vec<Shard>>,
    pub(crate) claims_seen: std::sync::Mutex<ClaimsSeen>,
    pub(crate) inbox: Mutex<NudgeInbox>,
    /// It asks every shard.
    pub(crate) cluster: SharedAnswer<Cluster>,
    /// When this process has last removed old nudges, in microseconds.
    pub(crate) nudges_removed_at: AtomicI64,
    /// Before when this process has removed all events, in microseconds.
    pub(crate) events_forgotten_before: AtomicI64,
    #[cfg(feature = "testing")]
    pub(crate) bug: Option<crate::Bug>,
}

#[derive(Serialize, Deserialize)]
struct Meta {
    shards: u16,
}

/// What is to be done with one item of a call, whose row was met or was not there.
pub type Decide<'a, I, T> = dyn Fn(&I, Option<TimerRow>) -> StoreResult<Step<T>> + Sync + 'a;

/// A change of timers.
pub struct Work<'a, I, T> {
    pub items: &'a [(TimerId, I)],
    pub columns: Columns,
    /// Most ids are new: what is there is read only once a write was refused.
    pub is_presumed_absent: bool,
    pub decide: &'a Decide<'a, I, T>,
}

/// Rows by the places of their ids in a call.
type FoundRows = Vec<(usize, Option<TimerRow>)>;

/// What a call did to the timers of one shard.
struct ShardAnswers<T> {
    answers: Vec<(usize, T)>,
    is_changed: bool,
    failure: Option<StoreError>,
}

impl<T> ShardAnswers<T> {
    /// An unknown outcome outweighs the others.
    fn fail(&mut self, error: StoreError) {
        if self.failure.as_ref().is_none_or(StoreError::is_not_done) {
            self.failure = Some(error);
        }
    }
}

#[cfg(feature = "testing")]
impl PartitionedStore {
    /// The same store with a bug.
    #[must_use]
    pub const fn with_bug(mut self, bug: Option<crate::Bug>) -> Self {
        self.bug = bug;
        self
    }
}

impl PartitionedStore {
    /// Opens the database, and sets it up if it is new: with `shards` shards, a number that then stays.
    pub async fn open(database: Arc<dyn Database>, clock: Arc<dyn Clock>, shards: u16) -> StoreResult<Self> {
        database.set_up().await?;
        let mut store = Self {
            database,
            clock,
            shards: shards.max(1),
            process: Uuid::now_v7().as_u64_pair().1,
            written: AtomicU64::new(0),
            liveness: std::sync::Mutex::default(),
            held: std::sync::Mutex::default(),
            claims_seen: std::sync::Mutex::default(),
            inbox: Mutex::default(),
            cluster: SharedAnswer::default(),
            nudges_removed_at: AtomicI64::new(i64::MIN),
            events_forgotten_before: AtomicI64::new(i64::MIN),
            #[cfg(feature = "testing")]
            bug: None,
        };
        let (partition, key) = (layout::meta(), b"shards".to_vec());
        let first = store.put(key.clone(), Condition::Absent, to_json(&Meta { shards: store.shards }));
        // Refused where the database is not new. Whatever became of it, what can be read counts.
        let written = store.write_one(&partition, first).await;
        let read = store.database.read(&partition, &[key], Columns::HEAD, Consistency::Linearizable).await?;
        let Some(Some(row)) = read.into_iter().next() else {
            let lost = || StoreError::Unavailable("the number of shards could not be written".into());
            return Err(written.err().unwrap_or_else(lost));
        };
        store.shards = from_json::<Meta>(&row.head).map_err(corrupt)?.shards.max(1);
        Ok(store)
    }

    pub(crate) fn shard(&self, id: TimerId) -> Shard {
        id.shard(self.shards)
    }

    pub(crate) fn all_shards(&self) -> impl Iterator<Item = Shard> + use<> {
        (0..self.shards).map(Shard)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) const fn process(&self) -> u64 {
        self.process
    }

    /// A version that no other write has.
    pub(crate) fn version(&self) -> Version {
        Version(u128::from(self.process) << 64 | u128::from(self.written.fetch_add(1, Ordering::Relaxed) + 1))
    }

    /// A row without body, log and positions.
    pub(crate) fn put(&self, key: Vec<u8>, condition: Condition, head: Vec<u8>) -> Write {
        let change = Change::Put { version: self.version(), head, body: None, log: None, positions: Positions::default() };
        Write { key, condition, change, before: Positions::default() }
    }

    /// Writes one row. Says whether its condition held.
    pub(crate) async fn write_one(&self, partition: &Partition, write: Write) -> StoreResult<bool> {
        match self.database.write(partition, vec![write]).await?.pop() {
            Some(Outcome::Applied) => Ok(true),
            Some(Outcome::Refused) | None => Ok(false),
            Some(Outcome::Failed(error)) => Err(error),
        }
    }

    /// Does work on several partitions, some at a time.
    pub(crate) async fn on_all<T: Send>(work: Vec<BoxFuture<'_, T>>) -> Vec<T> {
        stream::iter(work).buffered(PARTITIONS_AT_ONCE).collect().await
    }

    /// Changes timers, each by itself: reads it, lets `decide` say what to do, writes that if it still is as it was read, and
    /// otherwise begins anew. Ids may repeat; then they are changed in their order. Answers in the order of `items`.
    pub(crate) async fn change<I: Sync, T: Send>(
        &self,
        items: &[(TimerId, I)],
        columns: Columns,
        decide: &Decide<'_, I, T>,
    ) -> StoreResult<Vec<T>> {
        self.carry_out(&Work { items, columns, is_presumed_absent: false, decide }).await
    }

    pub(crate) async fn carry_out<I: Sync, T: Send>(&self, work: &Work<'_, I, T>) -> StoreResult<Vec<T>> {
        let mut by_shard: BTreeMap<Shard, Vec<usize>> = BTreeMap::new();
        for (place, (id, _)) in work.items.iter().enumerate() {
            by_shard.entry(self.shard(*id)).or_default().push(place);
        }
        let mut parts: Vec<BoxFuture<'_, ShardAnswers<T>>> = Vec::with_capacity(by_shard.len());
        for (shard, places) in by_shard {
            parts.push(Box::pin(self.change_shard(shard, places, work)));
        }
        let mut whole = ShardAnswers { answers: Vec::with_capacity(work.items.len()), is_changed: false, failure: None };
        for part in Self::on_all(parts).await {
            whole.answers.extend(part.answers);
            whole.is_changed |= part.is_changed;
            part.failure.into_iter().for_each(|error| whole.fail(error));
        }
        match whole.failure {
            None => {
                whole.answers.sort_unstable_by_key(|(place, _)| *place);
                Ok(whole.answers.into_iter().map(|(_, answer)| answer).collect())
            }
            // A part is done: the caller finds out by asking again.
            Some(error) if error.is_not_done() && whole.is_changed => Err(StoreError::Unknown(Cause::of(error))),
            Some(error) => Err(error),
        }
    }

    async fn change_shard<I: Sync, T: Send>(&self, shard: Shard, places: Vec<usize>, work: &Work<'_, I, T>) -> ShardAnswers<T> {
        let mut done = ShardAnswers { answers: Vec::with_capacity(places.len()), is_changed: false, failure: None };
        let (mut open, mut lost_races, mut events) = (places, 0, Vec::new());
        let mut is_presumed_absent = work.is_presumed_absent;
        while !open.is_empty() && lost_races < LOST_RACES_MAX {
            let mut seen = HashSet::with_capacity(open.len());
            let (first, later): (Vec<usize>, Vec<usize>) = open.into_iter().partition(|place| seen.insert(work.items[*place].0));
            let answered = done.answers.len();
            let met = if is_presumed_absent { Ok(vec![None; first.len()]) } else { self.met(shard, &first, work).await };
            let round = match met {
                Ok(met) => self.change_once(shard, first, met, work, &mut done).await,
                Err(error) => Err(error),
            };
            open = match round {
                Ok((refused, recorded)) => {
                    events.extend(recorded);
                    // Both are in their order, and what was refused comes before what waits for it.
                    [refused, later].concat()
                }
                Err(error) => {
                    done.fail(error);
                    break;
                }
            };
            is_presumed_absent = false;
            lost_races = if done.answers.len() > answered { 0 } else { lost_races + 1 };
        }
        if lost_races == LOST_RACES_MAX {
            done.fail(StoreError::Unavailable("other writers keep changing the same timers".into()));
        }
        self.record(shard, events).await;
        done
    }

    /// The rows of these places, as they stand.
    async fn met<I, T>(&self, shard: Shard, places: &[usize], work: &Work<'_, I, T>) -> StoreResult<Vec<Option<Row>>> {
        let keys: Vec<Vec<u8>> = places.iter().map(|place| layout::timer_key(work.items[*place].0)).collect();
        self.database.read(&layout::timers(shard), &keys, work.columns, Consistency::Committed).await
    }

    /// One round: decides, and writes. Returns what was refused, and what is to be recorded.
    async fn change_once<I: Sync, T: Send>(
        &self,
        shard: Shard,
        places: Vec<usize>,
        rows: Vec<Option<Row>>,
        work: &Work<'_, I, T>,
        done: &mut ShardAnswers<T>,
    ) -> StoreResult<(Vec<usize>, Vec<(TimerId, Happened)>)> {
        let (mut writes, mut pending) = (Vec::new(), Vec::new());
        for (place, row) in places.into_iter().zip(rows) {
            let (id, item) = &work.items[place];
            let met = row.map(|row| TimerRow::read(*id, &row, work.columns)).transpose();
            match met.and_then(|met| (work.decide)(item, met)) {
                Ok(Step::Leave(answer)) => done.answers.push((place, answer)),
                Ok(Step::Put(row, answer)) => {
                    writes.push(row.put(self.version()));
                    pending.push((place, *row, answer));
                }
                Ok(Step::Remove(row, answer)) => {
                    writes.push(row.delete());
                    pending.push((place, *row, answer));
                }
                Err(error) => done.fail(error),
            }
        }
        let (mut refused, mut events) = (Vec::new(), Vec::new());
        if writes.is_empty() {
            return Ok((refused, events));
        }
        let outcomes = self.database.write(&layout::timers(shard), writes).await?;
        for ((place, row, answer), outcome) in pending.into_iter().zip(outcomes) {
            match outcome {
                Outcome::Applied => {
                    done.is_changed = true;
                    events.extend(row.events.into_iter().map(|what| (row.id, what)));
                    done.answers.push((place, answer));
                }
                Outcome::Refused => refused.push(place),
                Outcome::Failed(error) => done.fail(error),
            }
        }
        Ok((refused, events))
    }

    /// Reads timers by their ids, in their order.
    pub(crate) async fn rows(&self, ids: &[TimerId], columns: Columns) -> StoreResult<Vec<Option<TimerRow>>> {
        let mut by_shard: BTreeMap<Shard, Vec<usize>> = BTreeMap::new();
        for (place, id) in ids.iter().enumerate() {
            by_shard.entry(self.shard(*id)).or_default().push(place);
        }
        let mut work: Vec<BoxFuture<'_, StoreResult<FoundRows>>> = Vec::with_capacity(by_shard.len());
        for (shard, places) in by_shard {
            work.push(Box::pin(async move {
                let keys: Vec<Vec<u8>> = places.iter().map(|place| layout::timer_key(ids[*place])).collect();
                let rows = self.database.read(&layout::timers(shard), &keys, columns, Consistency::Committed).await?;
                let read = |(place, row): (usize, Option<Row>)| {
                    Ok((place, row.map(|row| TimerRow::read(ids[place], &row, columns)).transpose()?))
                };
                places.into_iter().zip(rows).map(read).collect()
            }));
        }
        let mut found: Vec<Option<TimerRow>> = vec![None; ids.len()];
        for part in Self::on_all(work).await {
            for (place, row) in part? {
                found[place] = row;
            }
        }
        Ok(found)
    }
}

impl Sharded for PartitionedStore {
    fn shards(&self) -> u16 {
        self.shards
    }

    /// One of those that this process holds. Timers that are registered within the same few milliseconds go to the same one, so that
    /// one conditional write carries them, which no other node contends for.
    fn shard_for_new(&self) -> Option<Shard> {
        let held = self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let turn = self.clock.monotonic().as_millis() / SHARD_CHOSEN_MILLIS;
        let count = u128::try_from(held.len()).ok().filter(|count| *count > 0)?;
        held.get(usize::try_from(turn % count).ok()?).copied()
    }

    fn lacks(&self) -> &'static [Promise] {
        &Promise::ALL
    }
}
