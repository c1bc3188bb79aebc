//! Writes of all calls that wait, in as few commands as MongoDB takes, each with the answer for every row.

use std::collections::{HashMap, HashSet};

use domain::Cause;
use mongodb::bson::{RawArrayBuf, RawDocumentBuf, doc, raw::cstr, rawdoc};
use store::StoreError;
use store_partitioned::{Change, Columns, Condition, Consistency, Outcome, Partition, Version, Write};
use tokio::sync::oneshot;

use crate::{
    COLLECTION, DEADLINE, MongodbDatabase, ROWS_PER_WRITE,
    answer::{Answer, Seen, answers, judge},
    connect::Deployment,
    deadline, document, failure,
    gather::{self, Job},
    key, read,
};

/// How many bytes one command carries, unless a single row has more.
const COMMAND_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many changes share one operation: MongoDB looks for each row in their list from its beginning.
const CHANGES_PER_OPERATION: usize = 100;
/// How often a row without condition is written again that another writer inserts at the same time.
const UPSERTS_MAX: usize = 5;
/// A document that is no row. Writing it waits for the journal.
const BARRIER: &str = "barrier";

/// How many commands are under way at once. More would carry fewer rows each.
pub const COMMANDS_AT_ONCE: usize = 4;

/// One row to be written, and where.
#[derive(Clone, Copy)]
struct Item<'a> {
    partition: &'a Partition,
    write: &'a Write,
}

impl Item<'_> {
    /// Whether a row of this version is as the write left it.
    fn is_written(&self, version: Option<Version>) -> bool {
        match &self.write.change {
            Change::Put { version: own, .. } => version == Some(*own),
            Change::Delete => false,
        }
    }

    fn seen(&self, version: Option<Version>) -> Seen {
        match self.write.condition {
            _ if self.is_written(version) => Seen::Written,
            Condition::Is(expected) if version == Some(expected) => Seen::Untouched,
            _ => Seen::Other,
        }
    }

    fn id(&self) -> String {
        key::text(self.partition, &self.write.key)
    }
}

/// The writes of one call.
pub struct WriteJob {
    partition: Partition,
    writes: Vec<Write>,
    bytes: usize,
    answer: oneshot::Sender<Vec<Outcome>>,
}

impl Job for WriteJob {
    fn fits(&self, _first: &Self, rows: usize, bytes: usize) -> bool {
        rows <= ROWS_PER_WRITE && bytes <= COMMAND_BYTES_MAX
    }

    fn rows(&self) -> usize {
        self.writes.len()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn is_given_up(&self) -> bool {
        self.answer.is_closed()
    }

    fn give_up(self) {
        let late = Outcome::Failed(StoreError::Unavailable(gather::LATE.into()));
        drop(self.answer.send(vec![late; self.writes.len()]));
    }
}

/// Writes rows together with what else waits, and answers in their order.
pub async fn write(database: &MongodbDatabase, partition: &Partition, writes: Vec<Write>) -> Vec<Outcome> {
    if writes.is_empty() {
        return Vec::new();
    }
    let (answer, answered) = oneshot::channel();
    let (count, bytes) = (writes.len(), writes.iter().map(document::size).sum());
    let (job, worker) = (WriteJob { partition: partition.clone(), writes, bytes, answer }, database.clone());
    database.writes.join(job, move |jobs| {
        let database = worker.clone();
        async move { write_together(&database, jobs).await }
    });
    let ended = |_| vec![Outcome::Failed(StoreError::Unknown("the task that wrote it has ended".into())); count];
    answered.await.unwrap_or_else(ended)
}

async fn write_together(database: &MongodbDatabase, jobs: Vec<WriteJob>) {
    let mut items = Vec::with_capacity(jobs.iter().map(|job| job.writes.len()).sum());
    for job in &jobs {
        items.extend(job.writes.iter().map(|write| Item { partition: &job.partition, write }));
    }
    let mut outcomes = write_all(database, &items).await.into_iter();
    drop(items);
    for job in jobs {
        // Its caller may have given up.
        drop(job.answer.send(outcomes.by_ref().take(job.writes.len()).collect()));
    }
}

/// Once the database fails, the rest is not tried.
async fn write_all(database: &MongodbDatabase, items: &[Item<'_>]) -> Vec<Outcome> {
    let mut outcomes = Vec::with_capacity(items.len());
    for batch in batches(items) {
        let failure = match command(database, batch).await {
            Ok(mut answers) => {
                let again = write_again(database, batch, &mut answers).await;
                outcomes.extend(answers.into_iter().map(Answer::outcome));
                again.err()
            }
            Err(error) => {
                outcomes.extend(after_failure(database, batch, &error).await);
                Some(error)
            }
        };
        if let Some(error) = failure {
            outcomes.resize(items.len(), Outcome::Failed(not_tried(error)));
            break;
        }
    }
    outcomes
}

/// Why rows are not written that a command was to carry after one that failed.
fn not_tried(error: StoreError) -> StoreError {
    if error.is_not_done() { error } else { StoreError::Unavailable("an earlier write of the same call has failed".into()) }
}

/// Parts that one command carries.
fn batches<'a, 'b>(items: &'a [Item<'b>]) -> Vec<&'a [Item<'b>]> {
    let (mut batches, mut begin, mut bytes) = (Vec::new(), 0, 0);
    for (place, item) in items.iter().enumerate() {
        let size = document::size(item.write);
        if place > begin && (bytes + size > COMMAND_BYTES_MAX || place - begin == ROWS_PER_WRITE) {
            batches.push(&items[begin..place]);
            (begin, bytes) = (place, 0);
        }
        bytes += size;
    }
    if begin < items.len() {
        batches.push(&items[begin..]);
    }
    batches
}

/// Writes those rows without condition again that lost a race. What was answered before stands, also where this fails: then the error is
/// that of the command which failed, and its rows have their answers.
async fn write_again(database: &MongodbDatabase, items: &[Item<'_>], answers: &mut [Answer]) -> Result<(), StoreError> {
    for _ in 0..UPSERTS_MAX {
        let lost: Vec<usize> = (0..items.len()).filter(|place| matches!(answers[*place], Answer::LostRace)).collect();
        if lost.is_empty() {
            break;
        }
        metrics::counter!("timer_mongodb_contention_total").increment(lost.len() as u64);
        let again: Vec<Item<'_>> = lost.iter().map(|place| items[*place]).collect();
        match command(database, &again).await {
            Ok(told) => lost.into_iter().zip(told).for_each(|(place, answer)| answers[place] = answer),
            Err(error) => {
                let outcomes = after_failure(database, &again, &error).await;
                lost.into_iter().zip(outcomes).for_each(|(place, outcome)| answers[place] = Answer::Ended(outcome));
                return Err(error);
            }
        }
    }
    Ok(())
}

/// How the writes of a command ended that failed as a whole: none was done, or the rows tell.
async fn after_failure(database: &MongodbDatabase, items: &[Item<'_>], error: &StoreError) -> Vec<Outcome> {
    if error.is_not_done() {
        return vec![Outcome::Failed(error.clone()); items.len()];
    }
    metrics::counter!("timer_mongodb_unknown_total").increment(1);
    tracing::debug!(%error, rows = items.len(), "the answer of MongoDB is lost: the rows are read back");
    read_back(database, items, error).await
}

/// Sends writes, and says how each of them ended.
async fn command(database: &MongodbDatabase, items: &[Item<'_>]) -> Result<Vec<Answer>, StoreError> {
    metrics::histogram!("timer_mongodb_batch_rows").record(u32::try_from(items.len()).unwrap_or(u32::MAX));
    let operations = operations(items);
    let command = bulk_write(database, operations.iter().map(|places| operation(items, places)));
    let admin = database.database.client().database("admin");
    let reply = deadline::within(DEADLINE, admin.run_raw_command(command)).await.map_err(failure::of_command)?;
    let writes: Vec<&Write> = items.iter().map(|item| item.write).collect();
    let mut answers = answers(&writes, &operations, &reply);
    tell_apart(database, items, &operations, &mut answers).await;
    Ok(answers)
}

/// Finds out by the versions of the rows which changes were applied by operations that did not apply all of theirs. Where the rows cannot be
/// read, that stays unknown.
async fn tell_apart(database: &MongodbDatabase, items: &[Item<'_>], operations: &[Vec<usize>], answers: &mut [Answer]) {
    let mut shared: Vec<(&[usize], Result<usize, StoreError>)> = Vec::new();
    for places in operations {
        if let Some(Answer::Shared(told)) = places.first().map(|place| &answers[*place]) {
            shared.push((places.as_slice(), told.clone()));
        }
    }
    if shared.is_empty() {
        return;
    }
    metrics::counter!("timer_mongodb_told_apart_total").increment(shared.len() as u64);
    let ids: Vec<String> = shared.iter().flat_map(|(places, _)| *places).map(|place| items[*place].id()).collect();
    tracing::debug!(rows = ids.len(), "MongoDB changed some rows of an operation, or failed in it: the rows are read back");
    let versions = match read::latest_versions(database, &ids).await {
        Ok(versions) => versions,
        Err(error) => {
            tracing::debug!(%error, rows = ids.len(), "the rows of an operation could not be read back");
            return;
        }
    };
    for (places, told) in shared {
        let seen = |place: &usize| items[*place].seen(versions.get(&items[*place].id()).copied());
        let rows: Vec<Seen> = places.iter().map(seen).collect();
        for (place, outcome) in places.iter().zip(judge(&told, &rows)) {
            answers[*place] = Answer::Ended(outcome);
        }
    }
}

/// Which items each operation of a command carries, by their places: changes of different rows share some, everything else goes alone.
fn operations(items: &[Item<'_>]) -> Vec<Vec<usize>> {
    let mut rows = HashSet::new();
    let mut goes_together = |place: &usize| {
        document::is_change(items[*place].write) && rows.insert((items[*place].partition, &items[*place].write.key))
    };
    let (together, alone): (Vec<usize>, Vec<usize>) = (0..items.len()).partition(|place| goes_together(place));
    let alone = alone.into_iter().map(|place| vec![place]);
    alone.chain(together.chunks(CHANGES_PER_OPERATION).map(<[usize]>::to_vec)).collect()
}

fn operation(items: &[Item<'_>], places: &[usize]) -> RawDocumentBuf {
    match places {
        [place] => document::operation(items[*place].partition, items[*place].write),
        places => document::changes(places.iter().map(|place| (items[*place].partition, items[*place].write))),
    }
}

fn bulk_write(database: &MongodbDatabase, operations: impl Iterator<Item = RawDocumentBuf>) -> RawDocumentBuf {
    let mut ops = RawArrayBuf::new();
    operations.for_each(|operation| ops.push(operation));
    let collection = format!("{}.{COLLECTION}", database.database.name());
    let mut command = rawdoc! { "bulkWrite": 1, "ordered": false, "errorsOnly": false };
    command.append(cstr!("writeConcern"), database.durability.raw_write_concern());
    command.append(cstr!("nsInfo"), RawArrayBuf::from_iter([rawdoc! { "ns": collection }]));
    command.append(cstr!("ops"), ops);
    command
}

/// After an answer was lost: a row that carries the version of its write was written. Of the remaining rows nothing is known, since a write
/// may be under way still, or have been overwritten already.
async fn read_back(database: &MongodbDatabase, items: &[Item<'_>], error: &StoreError) -> Vec<Outcome> {
    let unknown = || Outcome::Failed(error.clone());
    let versions = match versions(database, items).await {
        Ok(versions) if journal(database).await.is_ok() => versions,
        _ => return items.iter().map(|_| unknown()).collect(),
    };
    let outcome =
        |(item, version): (&Item<'_>, Option<Version>)| if item.is_written(version) { Outcome::Applied } else { unknown() };
    items.iter().zip(versions).map(outcome).collect()
}

/// The versions that the rows of these writes have, read linearizably: what the primary alone has may be lost in a fail-over, and no answer
/// has said that it is replicated.
async fn versions(database: &MongodbDatabase, items: &[Item<'_>]) -> Result<Vec<Option<Version>>, StoreError> {
    let mut found = vec![None; items.len()];
    let mut places: HashMap<&Partition, Vec<usize>> = HashMap::new();
    for (place, item) in items.iter().enumerate() {
        places.entry(item.partition).or_default().push(place);
    }
    for (partition, places) in places {
        let keys: Vec<Vec<u8>> = places.iter().map(|place| items[*place].write.key.clone()).collect();
        let rows = read::read(database, partition, &keys, Columns::HEAD, Consistency::Linearizable).await?;
        for (place, row) in places.into_iter().zip(rows) {
            found[place] = row.map(|row| row.version);
        }
    }
    Ok(found)
}

/// Returns once what was read before is durable. A standalone server shows what is not in its journal yet; a write that waits for the journal
/// waits for all before it.
async fn journal(database: &MongodbDatabase) -> Result<(), StoreError> {
    if database.deployment == Deployment::Standalone {
        let update = doc! { "q": { "_id": BARRIER }, "u": { "$inc": { "written": 1_i64 } }, "upsert": true };
        let command = doc! { "update": COLLECTION, "updates": [update], "writeConcern": database.durability.write_concern() };
        let written = deadline::within(DEADLINE, database.database.run_command(command)).await;
        written.map_err(|error| StoreError::Unavailable(Cause::of(error)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use store_partitioned::{Index, Positions};

    use super::*;

    fn put(condition: Condition, bytes: usize) -> Write {
        let change = Change::Put {
            version: Version(7),
            head: Vec::new(),
            body: Some(vec![0; bytes]),
            log: None,
            positions: Positions::default(),
        };
        Write { key: vec![1], condition, change, before: Positions::default() }
    }

    #[test]
    fn commands_are_bounded_by_rows_and_bytes() {
        let partition = Partition::new("p");
        let lengths = |writes: &[Write]| {
            let items: Vec<Item<'_>> = writes.iter().map(|write| Item { partition: &partition, write }).collect();
            batches(&items).iter().map(|batch| batch.len()).collect::<Vec<_>>()
        };
        assert!(lengths(&[]).is_empty());
        assert_eq!(lengths(&vec![put(Condition::Absent, 10); 1_100]), [500, 500, 100]);
        assert_eq!(lengths(&vec![put(Condition::Absent, 1_500_000); 5]), [2, 2, 1]);
        assert_eq!(lengths(&vec![put(Condition::Absent, COMMAND_BYTES_MAX); 2]), [1, 1]);
    }

    #[test]
    fn changes_of_different_rows_go_together_and_everything_else_alone() {
        let (partition, other) = (Partition::new("p"), Partition::new("q"));
        let change = put(Condition::Is(Version(1)), 0);
        let leaving = Write { before: Positions::default().with(Index::First, vec![1]), ..change.clone() };
        let removal = Write { change: Change::Delete, ..change.clone() };
        let insert = put(Condition::Absent, 0);
        let together = |writes: &[(&Partition, &Write)]| {
            operations(&writes.iter().map(|(partition, write)| Item { partition, write }).collect::<Vec<_>>())
        };
        assert_eq!(
            together(&[(&partition, &change), (&partition, &insert), (&other, &change), (&partition, &change)]),
            [vec![1], vec![3], vec![0, 2]],
            "no row twice"
        );
        assert_eq!(together(&[(&partition, &leaving), (&other, &removal)]), [[0], [1]]);
        assert!(together(&[]).is_empty());
    }

    #[test]
    fn no_operation_is_shared_by_too_many_changes() {
        let partition = Partition::new("p");
        let change = |number: u8| Write { key: vec![number], ..put(Condition::Is(Version(1)), 0) };
        let writes: Vec<Write> = (0..=u8::MAX).map(change).collect();
        let items: Vec<Item<'_>> = writes.iter().map(|write| Item { partition: &partition, write }).collect();
        let operations = operations(&items);
        assert_eq!(operations.iter().map(Vec::len).collect::<Vec<_>>(), [100, 100, 56]);
        assert!(operations.into_iter().flatten().eq(0..writes.len()));
    }

    #[test]
    fn a_row_is_judged_by_its_version() {
        let (partition, change) = (Partition::new("p"), put(Condition::Is(Version(1)), 0));
        let seen = |write: &Write, version: Option<u128>| Item { partition: &partition, write }.seen(version.map(Version));
        assert_eq!(seen(&change, Some(7)), Seen::Written);
        assert_eq!(seen(&change, Some(1)), Seen::Untouched);
        assert_eq!(seen(&change, Some(2)), Seen::Other);
        assert_eq!(seen(&change, None), Seen::Other);
    }
}
