//! Writes of one call: a request for each row, many at once, and the answer for each.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::{StreamExt, stream};
use store::StoreError;
use store_partitioned::{Change, Columns, Consistency, Outcome, Partition, Write};

use crate::{
    column,
    database::{DynamodbDatabase, ROWS_PER_WRITE},
    failure::{Verdict, judge, of_write},
    item::{self, Expressions},
    read,
    throttled_request::request,
};

/// How many bytes the columns of a row may have as it is inserted, compressed. What grows later, the error of an attempt and the log of
/// them all, has the rest of the 400 KB.
pub const COLUMNS_BYTES_MAX: usize = 352 * 1024;

/// Writes rows and answers in their order. Once the database fails, what has not begun is not tried.
pub async fn write(database: &DynamodbDatabase, partition: &Partition, writes: &[Write]) -> Vec<Outcome> {
    metrics::histogram!("timer_dynamodb_batch_rows").record(u32::try_from(writes.len()).unwrap_or(u32::MAX));
    let has_failed = AtomicBool::new(false);
    let mut work = Vec::with_capacity(writes.len());
    for write in writes {
        work.push(one_unless(database, partition, write, &has_failed));
    }
    stream::iter(work).buffered(ROWS_PER_WRITE).collect().await
}

async fn one_unless(database: &DynamodbDatabase, partition: &Partition, write: &Write, has_failed: &AtomicBool) -> Outcome {
    if has_failed.load(Ordering::Relaxed) {
        return Outcome::Failed(StoreError::Unavailable("an earlier write of the same call has failed".into()));
    }
    let outcome = one(database, partition, write).await;
    // A row that is too large says nothing about the others.
    if matches!(outcome, Outcome::Failed(StoreError::Unavailable(_) | StoreError::Unknown(_))) {
        has_failed.store(true, Ordering::Relaxed);
    }
    outcome
}

async fn one(database: &DynamodbDatabase, partition: &Partition, write: &Write) -> Outcome {
    if let Some(bytes) = excess(write) {
        let why = format!("the row has {bytes} bytes, and no item of DynamoDB has more than 400 KB");
        return Outcome::Failed(StoreError::Full(why.into()));
    }
    let outcome = match item::expressions(write) {
        Expressions { update: Some(update), condition, values } => {
            let put = database
                .client
                .update_item()
                .table_name(&database.table)
                .set_key(Some(item::key(partition, &write.key)))
                .update_expression(update)
                .set_condition_expression(condition)
                .set_expression_attribute_values(values);
            let answer = request(database, || put.clone().send()).await;
            answer.map(drop).map_err(|error| (judge(&error), of_write(error)))
        }
        Expressions { update: None, condition, values } => {
            let removal = database
                .client
                .delete_item()
                .table_name(&database.table)
                .set_key(Some(item::key(partition, &write.key)))
                .set_condition_expression(condition)
                .set_expression_attribute_values(values);
            let answer = request(database, || removal.clone().send()).await;
            answer.map(drop).map_err(|error| (judge(&error), of_write(error)))
        }
    };
    match outcome {
        Ok(()) => Outcome::Applied,
        Err((Verdict::Refused, _)) => {
            metrics::counter!("timer_dynamodb_refusals_total").increment(1);
            Outcome::Refused
        }
        Err((Verdict::Unknown, error)) => read_back(database, partition, write, error).await,
        Err((_, error)) => Outcome::Failed(error),
    }
}

/// How many bytes a row is to have, where that is too many from the beginning.
fn excess(write: &Write) -> Option<usize> {
    let Change::Put { head, body, log, .. } = &write.change else { return None };
    let bytes = |column: &Option<Vec<u8>>| column.as_ref().map_or(0, |column| column.len());
    if head.len() + bytes(body) + bytes(log) <= COLUMNS_BYTES_MAX {
        return None;
    }
    let stored = |column: &Option<Vec<u8>>| column.as_ref().map_or(0, |column| column::encode(column).len());
    Some(head.len() + stored(body) + stored(log)).filter(|stored| *stored > COLUMNS_BYTES_MAX)
}

/// After an answer was lost: a row that carries the version of its write was written. Of another nothing is known, since a write may be
/// under way still, or have been overwritten already.
async fn read_back(database: &DynamodbDatabase, partition: &Partition, write: &Write, error: StoreError) -> Outcome {
    metrics::counter!("timer_dynamodb_unknown_total").increment(1);
    tracing::debug!(%error, "the answer of DynamoDB is lost: the row is read back");
    let Change::Put { version, .. } = &write.change else { return Outcome::Failed(error) };
    let keys = std::slice::from_ref(&write.key);
    let rows = read::read(database, partition, keys, Columns::HEAD, Consistency::Linearizable).await;
    let is_written = rows.is_ok_and(|rows| rows.iter().flatten().any(|row| row.version == *version));
    if is_written { Outcome::Applied } else { Outcome::Failed(error) }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::SmallRng};
    use store_partitioned::{Condition, Positions, Version};

    use super::*;

    fn put(body: Vec<u8>) -> Write {
        let change =
            Change::Put { version: Version(7), head: Vec::new(), body: Some(body), log: None, positions: Positions::default() };
        Write { key: vec![1], condition: Condition::Absent, change, before: Positions::default() }
    }

    #[test]
    fn a_row_is_too_large_by_what_is_kept_of_it() {
        let mut random = vec![0; COLUMNS_BYTES_MAX + 1];
        SmallRng::seed_from_u64(7).fill_bytes(&mut random);
        assert_eq!(excess(&put(random)), Some(COLUMNS_BYTES_MAX + 2));
        assert_eq!(excess(&put(vec![0; 2 * COLUMNS_BYTES_MAX])), None);
        assert_eq!(excess(&put(Vec::new())), None);
    }
}
