//! Writes of all calls that wait, in as few commands as MongoDB takes, each with the answer for every row.

use std::collections::HashMap;

use domain::Cause;
use mongodb::bson::{Bson, Document, RawArrayBuf, RawDocumentBuf, doc, raw::cstr, rawdoc};
use store::StoreError;
use store_partitioned::{Change, Columns, Condition, Consistency, Outcome, Partition, Version, Write};
use tokio::sync::oneshot;

use crate::{
    COLLECTION, DEADLINE, MongodbDatabase, ROWS_PER_WRITE,
    connect::Deployment,
    deadline, document, failure,
    gather::{self, Job},
    read,
};

/// How many bytes one command carries, unless a single row has more.
const COMMAND_BYTES_MAX: usize = 4 * 1024 * 1024;
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
        match send(database, batch).await {
            Ok(answers) => outcomes.extend(answers),
            Err(error) if error.is_not_done() => {
                outcomes.resize(items.len(), Outcome::Failed(error));
                break;
            }
            Err(error) => {
                metrics::counter!("timer_mongodb_unknown_total").increment(1);
                tracing::debug!(%error, rows = batch.len(), "the answer of MongoDB is lost: the rows are read back");
                outcomes.extend(read_back(database, batch, error).await);
                let rest = StoreError::Unavailable("an earlier write of the same call has failed".into());
                outcomes.resize(items.len(), Outcome::Failed(rest));
                break;
            }
        }
    }
    outcomes
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

/// One command, and those rows without condition again that lost a race.
async fn send(database: &MongodbDatabase, items: &[Item<'_>]) -> Result<Vec<Outcome>, StoreError> {
    let mut answers: Vec<Answer> = command(database, items).await?;
    for _ in 0..UPSERTS_MAX {
        let lost: Vec<usize> = (0..items.len()).filter(|place| matches!(answers[*place], Answer::LostRace)).collect();
        if lost.is_empty() {
            break;
        }
        metrics::counter!("timer_mongodb_contention_total").increment(lost.len() as u64);
        let again: Vec<Item<'_>> = lost.iter().map(|place| items[*place]).collect();
        for (place, answer) in lost.into_iter().zip(command(database, &again).await?) {
            answers[place] = answer;
        }
    }
    Ok(answers.into_iter().map(Answer::outcome).collect())
}

/// How one write of a command ended.
#[derive(Debug)]
enum Answer {
    Ended(Outcome),
    /// Another writer inserted the row between the look for it and the insert.
    LostRace,
}

impl Answer {
    fn outcome(self) -> Outcome {
        match self {
            Self::Ended(outcome) => outcome,
            Self::LostRace => Outcome::Failed(StoreError::Unavailable("other writers keep inserting the same row".into())),
        }
    }
}

async fn command(database: &MongodbDatabase, items: &[Item<'_>]) -> Result<Vec<Answer>, StoreError> {
    metrics::histogram!("timer_mongodb_batch_rows").record(u32::try_from(items.len()).unwrap_or(u32::MAX));
    let command = bulk_write(database, items.iter().map(|item| document::operation(item.partition, item.write)));
    let admin = database.database.client().database("admin");
    let reply = deadline::within(DEADLINE, admin.run_raw_command(command)).await.map_err(failure::of_command)?;
    let writes: Vec<&Write> = items.iter().map(|item| item.write).collect();
    Ok(answers(&writes, &reply))
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

/// What the reply says of each write. Where it says nothing, nothing is known.
fn answers(writes: &[&Write], reply: &Document) -> Vec<Answer> {
    let unknown = |why: &str| Answer::Ended(Outcome::Failed(StoreError::Unknown(why.into())));
    let mut answers: Vec<Answer> = writes.iter().map(|_| unknown("MongoDB did not answer for this row")).collect();
    let results = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
    for result in results.into_iter().flatten().filter_map(Bson::as_document) {
        let place = integer(result, "idx").and_then(|place| usize::try_from(place).ok());
        if let Some((place, write)) = place.and_then(|place| Some((place, *writes.get(place)?))) {
            answers[place] = answer(write, result);
        }
    }
    // It was written, but not where it has to be: it may be lost in a fail-over.
    if let Ok(error) = reply.get_document("writeConcernError") {
        let why = error.get_str("errmsg").unwrap_or("the write concern was not met");
        for answer in answers.iter_mut().filter(|answer| matches!(answer, Answer::Ended(Outcome::Applied))) {
            *answer = unknown(why);
        }
    }
    answers
}

fn answer(write: &Write, result: &Document) -> Answer {
    if let Some(code) = integer(result, "code").and_then(|code| i32::try_from(code).ok()) {
        let message = result.get_str("errmsg").unwrap_or("the write failed");
        return match write.condition {
            Condition::Absent if code == failure::DUPLICATE_KEY => Answer::Ended(Outcome::Refused),
            Condition::Any if code == failure::DUPLICATE_KEY => Answer::LostRace,
            _ => Answer::Ended(Outcome::Failed(failure::of_write(code, message))),
        };
    }
    let is_found = integer(result, "n").is_some_and(|found| found > 0);
    // What is gone already needs no removal.
    let is_applied = is_found || write.condition == Condition::Any;
    Answer::Ended(if is_applied { Outcome::Applied } else { Outcome::Refused })
}

fn integer(document: &Document, name: &str) -> Option<i64> {
    match document.get(name)? {
        Bson::Int32(number) => Some(i64::from(*number)),
        Bson::Int64(number) => Some(*number),
        Bson::Double(number) => i64::try_from(*number as i128).ok(),
        _ => None,
    }
}

/// After an answer was lost: a row that carries the version of its write was written. Of the others nothing is known, since a write may
/// be under way still, or have been overwritten already.
async fn read_back(database: &MongodbDatabase, items: &[Item<'_>], error: StoreError) -> Vec<Outcome> {
    let unknown = || Outcome::Failed(error.clone());
    let Ok(versions) = versions(database, items).await else {
        return items.iter().map(|_| unknown()).collect();
    };
    let is_written = |(item, version): (&Item<'_>, Option<Version>)| match &item.write.change {
        Change::Put { version: own, .. } => version == Some(*own),
        Change::Delete => false,
    };
    let outcome = |is_written: bool| if is_written { Outcome::Applied } else { unknown() };
    items.iter().zip(versions).map(is_written).map(outcome).collect()
}

/// The versions that the rows of these writes have, and keep: what they were written with is durable.
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
    if database.deployment == Deployment::Standalone {
        // A read shows what is not in the journal yet. A write that waits for the journal waits for all before it.
        let update = doc! { "q": { "_id": BARRIER }, "u": { "$inc": { "written": 1_i64 } }, "upsert": true };
        let command = doc! { "update": COLLECTION, "updates": [update], "writeConcern": database.durability.write_concern() };
        deadline::within(DEADLINE, database.database.run_command(command))
            .await
            .map_err(|error| StoreError::Unavailable(Cause::of(error)))?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use store_partitioned::Positions;

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

    fn shown(writes: &[Write], reply: &Document) -> Vec<&'static str> {
        let name = |answer: &Answer| match answer {
            Answer::LostRace => "lost",
            Answer::Ended(Outcome::Applied) => "applied",
            Answer::Ended(Outcome::Refused) => "refused",
            Answer::Ended(Outcome::Failed(error)) => error.kind(),
        };
        answers(&writes.iter().collect::<Vec<_>>(), reply).iter().map(name).collect()
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
    fn each_row_has_its_answer() {
        let writes = [
            put(Condition::Absent, 0),
            put(Condition::Absent, 0),
            put(Condition::Is(Version(1)), 0),
            put(Condition::Is(Version(1)), 0),
            put(Condition::Any, 0),
            put(Condition::Is(Version(1)), 0),
            put(Condition::Is(Version(1)), 0),
        ];
        let results = vec![
            doc! { "ok": 1.0, "idx": 0, "n": 1 },
            doc! { "ok": 0.0, "idx": 1, "code": 11_000, "errmsg": "duplicate" },
            doc! { "ok": 1.0, "idx": 2, "n": 1, "nModified": 1 },
            doc! { "ok": 1.0, "idx": 3, "n": 0 },
            doc! { "ok": 0.0, "idx": 4, "code": 11_000, "errmsg": "duplicate" },
            doc! { "ok": 0.0, "idx": 5, "code": 14_031, "errmsg": "no space" },
        ];
        let mut reply = doc! { "cursor": { "id": 0_i64, "firstBatch": results } };
        assert_eq!(shown(&writes, &reply), ["applied", "refused", "applied", "refused", "lost", "full", "unknown"]);
        reply.insert("writeConcernError", doc! { "code": 64, "errmsg": "timed out" });
        assert_eq!(shown(&writes, &reply), ["unknown", "refused", "unknown", "refused", "lost", "full", "unknown"]);
    }
}
