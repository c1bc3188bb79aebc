//! Rows by their keys, and ranges of them.

use std::collections::HashMap;

use futures_util::{StreamExt, TryStreamExt, future::BoxFuture, stream};
use mongodb::{
    Cursor,
    action::Find,
    bson::{RawDocumentBuf, doc},
    options::{ReadConcern, ReadPreference, SelectionCriteria},
};
use store::StoreResult;
use store_partitioned::{Columns, Consistency, Index, Partition, Range, Row};

use crate::{DEADLINE, MongodbDatabase, connect::Deployment, deadline, document, failure::unavailable, field, key};

/// How many rows are asked for by their keys at once.
const KEYS_PER_READ: usize = 1_000;
/// How many rows are read linearizably at the same time.
const LINEARIZABLE_AT_ONCE: usize = 16;
/// How many documents come with one answer, at most.
const BATCH_MAX: usize = 10_000;

pub async fn read(
    database: &MongodbDatabase,
    partition: &Partition,
    keys: &[Vec<u8>],
    columns: Columns,
    consistency: Consistency,
) -> StoreResult<Vec<Option<Row>>> {
    let keys_per_read = match (consistency, database.deployment) {
        // MongoDB promises it only for a filter that at most one document fits.
        (Consistency::Linearizable, Deployment::Replicated) => 1,
        _ => KEYS_PER_READ,
    };
    let mut reads: Vec<BoxFuture<'_, StoreResult<Vec<Row>>>> = Vec::new();
    for keys in keys.chunks(keys_per_read) {
        reads.push(Box::pin(some(database, partition, keys, columns, consistency)));
    }
    let found: Vec<Vec<Row>> = stream::iter(reads).buffered(LINEARIZABLE_AT_ONCE).try_collect().await?;
    let found: HashMap<Vec<u8>, Row> = found.into_iter().flatten().map(|row| (row.key.clone(), row)).collect();
    Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
}

/// The rows with these keys that there are, in any order.
async fn some(
    database: &MongodbDatabase,
    partition: &Partition,
    keys: &[Vec<u8>],
    columns: Columns,
    consistency: Consistency,
) -> StoreResult<Vec<Row>> {
    let keys: Vec<String> = keys.iter().map(|bytes| key::text(partition, bytes)).collect();
    let filter = if keys.len() == 1 {
        doc! { "_id": &keys[0] }
    } else {
        doc! { "_id": { "$in": &keys } }
    };
    let find = with(database, database.rows.find(filter), consistency).projection(document::projection(columns, None));
    collect(find.batch_size(batch_size(keys.len())), partition, None).await
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
    collect(find, partition, range.index).await
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

async fn collect(find: Find<'_, RawDocumentBuf>, partition: &Partition, index: Option<Index>) -> StoreResult<Vec<Row>> {
    let read = async {
        let (mut cursor, mut rows): (Cursor<RawDocumentBuf>, _) = (find.await?, Vec::new());
        while cursor.advance().await? {
            rows.push(document::row(partition, cursor.current(), index));
        }
        Ok(rows)
    };
    deadline::within(DEADLINE, read).await.map_err(unavailable)?.into_iter().collect()
}
