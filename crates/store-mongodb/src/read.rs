//! Rows by their keys, and ranges of them.

use std::collections::{HashMap, HashSet};

use futures_util::{StreamExt, TryStreamExt, future::BoxFuture, stream};
use mongodb::{
    Cursor,
    action::Find,
    bson::{RawDocument, RawDocumentBuf, doc},
    options::{ReadConcern, ReadPreference, SelectionCriteria},
};
use store::{StoreError, StoreResult};
use store_partitioned::{Columns, Consistency, Partition, Range, Row, Version};
use tokio::sync::oneshot;

use crate::{
    DEADLINE, MongodbDatabase,
    connect::Deployment,
    deadline, document,
    failure::unavailable,
    field,
    gather::{self, Job},
    key,
};

/// How many rows are asked for by their keys at once.
const KEYS_PER_READ: usize = 1_000;
/// How many such commands are under way at once. More would ask for fewer rows each.
pub const COMMANDS_AT_ONCE: usize = 4;
/// How many rows are read linearizably at the same time.
const LINEARIZABLE_AT_ONCE: usize = 16;
/// How many documents come with one answer, at most.
const BATCH_MAX: usize = 10_000;

/// The id of a row, and the row without its key, or why it cannot be read.
type NamedRow = (String, StoreResult<Row>);

/// The keys of one call.
pub struct ReadJob {
    ids: Vec<String>,
    columns: Columns,
    consistency: Consistency,
    answer: oneshot::Sender<StoreResult<Vec<Option<Row>>>>,
}

impl Job for ReadJob {
    fn fits(&self, first: &Self, rows: usize, _bytes: usize) -> bool {
        rows <= KEYS_PER_READ && self.columns == first.columns && self.consistency == first.consistency
    }

    fn rows(&self) -> usize {
        self.ids.len()
    }

    fn bytes(&self) -> usize {
        0
    }

    fn is_given_up(&self) -> bool {
        self.answer.is_closed()
    }

    fn give_up(self) {
        drop(self.answer.send(Err(StoreError::Unavailable(gather::LATE.into()))));
    }
}

/// Reads rows by their keys, together with what else waits.
pub async fn read(
    database: &MongodbDatabase,
    partition: &Partition,
    keys: &[Vec<u8>],
    columns: Columns,
    consistency: Consistency,
) -> StoreResult<Vec<Option<Row>>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let (answer, answered) = oneshot::channel();
    let ids = keys.iter().map(|bytes| key::text(partition, bytes)).collect();
    let (job, worker) = (ReadJob { ids, columns, consistency, answer }, database.clone());
    database.reads.join(job, move |jobs| {
        let database = worker.clone();
        async move { read_together(&database, jobs).await }
    });
    let mut rows = answered.await.map_err(|_| StoreError::Unavailable("the task that read it has ended".into()))??;
    for (row, key) in rows.iter_mut().zip(keys) {
        row.iter_mut().for_each(|row| row.key.clone_from(key));
    }
    Ok(rows)
}

async fn read_together(database: &MongodbDatabase, jobs: Vec<ReadJob>) {
    let Some(first) = jobs.first() else { return };
    let ids: HashSet<&String> = jobs.iter().flat_map(|job| &job.ids).collect();
    let found = by_ids(database, &ids.into_iter().collect::<Vec<_>>(), first.columns, first.consistency).await;
    for job in jobs {
        let answer = match &found {
            Ok(found) => job.ids.iter().map(|id| found.get(id).cloned().transpose()).collect(),
            Err(error) => Err(error.clone()),
        };
        // Its caller may have given up.
        drop(job.answer.send(answer));
    }
}

/// The rows with these ids that there are, without their keys.
async fn by_ids(
    database: &MongodbDatabase,
    ids: &[&String],
    columns: Columns,
    consistency: Consistency,
) -> StoreResult<HashMap<String, StoreResult<Row>>> {
    let ids_per_read = match (consistency, database.deployment) {
        // MongoDB promises it only for a filter that at most one document fits.
        (Consistency::Linearizable, Deployment::Replicated) => 1,
        _ => KEYS_PER_READ,
    };
    let mut reads: Vec<BoxFuture<'_, StoreResult<Vec<NamedRow>>>> = Vec::new();
    for ids in ids.chunks(ids_per_read) {
        reads.push(Box::pin(some(database, ids, columns, consistency)));
    }
    let found: Vec<Vec<NamedRow>> = stream::iter(reads).buffered(LINEARIZABLE_AT_ONCE).try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

/// The rows with these ids that there are, in any order.
async fn some(
    database: &MongodbDatabase,
    ids: &[&String],
    columns: Columns,
    consistency: Consistency,
) -> StoreResult<Vec<NamedRow>> {
    let filter = match ids {
        [id] => doc! { "_id": id },
        ids => doc! { "_id": { "$in": ids } },
    };
    let find = with(database, database.rows.find(filter), consistency).projection(document::projection(columns, None));
    collect(find.batch_size(batch_size(ids.len())), document::named_row).await
}

/// The versions of the rows with these ids that there are, as the primary has them now. So it sees all that an answered command wrote,
/// whatever its write concern; what a majority has may lag behind that. A row that cannot be read is left out.
pub async fn latest_versions(database: &MongodbDatabase, ids: &[String]) -> StoreResult<HashMap<String, Version>> {
    let find = database
        .rows
        .find(doc! { "_id": { "$in": ids } })
        .projection(doc! { "version": 1 })
        .read_concern(ReadConcern::local())
        .selection_criteria(SelectionCriteria::ReadPreference(ReadPreference::Primary))
        .max_time(DEADLINE)
        .batch_size(batch_size(ids.len()));
    let found = collect(find, document::named_row).await?;
    Ok(found.into_iter().filter_map(|(id, row)| Some((id, row.ok()?.version))).collect())
}

pub async fn range(
    database: &MongodbDatabase,
    partition: &Partition,
    range: &Range,
    columns: Columns,
    consistency: Consistency,
) -> StoreResult<Vec<Row>> {
    let name = range.index.map_or("_id", field);
    let to = range.to.as_ref().map_or_else(|| key::end(partition), |to| key::text(partition, to));
    let filter = doc! { name: { "$gte": key::text(partition, &range.from), "$lt": to } };
    let Ok(limit) = i64::try_from(range.limit) else { return Ok(Vec::new()) };
    if limit == 0 {
        // To MongoDB that means that there is none.
        return Ok(Vec::new());
    }
    let find = with(database, database.rows.find(filter), consistency)
        .projection(document::projection(columns, range.index))
        .sort(doc! { name: if range.is_descending { -1 } else { 1 } })
        .limit(limit)
        .batch_size(batch_size(range.limit));
    collect(find, |document| document::row(partition, document, range.index)).await
}

fn batch_size(rows: usize) -> u32 {
    u32::try_from(rows.clamp(1, BATCH_MAX)).unwrap_or(u32::MAX)
}

/// What a read is to see, in the words of MongoDB. A standalone server has only one state.
fn with<'a>(database: &MongodbDatabase, find: Find<'a, RawDocumentBuf>, consistency: Consistency) -> Find<'a, RawDocumentBuf> {
    let primary = || SelectionCriteria::ReadPreference(ReadPreference::Primary);
    let (concern, from) = match (database.deployment, consistency) {
        (Deployment::Standalone, _) => (ReadConcern::local(), primary()),
        (Deployment::Replicated, Consistency::Linearizable) => (ReadConcern::linearizable(), primary()),
        (Deployment::Replicated, Consistency::Committed) => (ReadConcern::majority(), primary()),
        (Deployment::Replicated, Consistency::Eventual) => {
            let secondary = ReadPreference::SecondaryPreferred { options: None };
            (ReadConcern::local(), SelectionCriteria::ReadPreference(secondary))
        }
    };
    find.read_concern(concern).selection_criteria(from).max_time(DEADLINE)
}

async fn collect<T>(find: Find<'_, RawDocumentBuf>, row: impl Fn(&RawDocument) -> StoreResult<T> + Send) -> StoreResult<Vec<T>> {
    let read = async {
        let (mut cursor, mut rows): (Cursor<RawDocumentBuf>, _) = (find.await?, Vec::new());
        while cursor.advance().await? {
            rows.push(row(cursor.current()));
        }
        Ok(rows)
    };
    deadline::within(DEADLINE, read).await.map_err(unavailable)?.into_iter().collect()
}
