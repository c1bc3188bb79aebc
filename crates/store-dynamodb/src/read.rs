//! Rows by their keys, and ranges of them.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};
use futures_util::{StreamExt, TryStreamExt, future::BoxFuture, stream};
use store::{StoreError, StoreResult};
use store_partitioned::{Columns, Consistency, Partition, Range, Row};

use crate::{
    database::DynamodbDatabase,
    failure::unavailable,
    item::{self, Item, KEY, PARTITION, binary},
    throttled_request::{pause, request},
};

/// The limit of DynamoDB for one `BatchGetItem`.
const KEYS_PER_READ: usize = 100;
/// How many of those one call has under way.
const READS_AT_ONCE: usize = 8;
/// How often the rest of an answer is asked for that brings nothing new.
const FRUITLESS_MAX: u32 = 5;

/// A consistent read of DynamoDB sees all writes that were answered, and those of one item are in one order: both kinds are the same here.
const fn is_consistent(consistency: Consistency) -> bool {
    !matches!(consistency, Consistency::Eventual)
}

pub async fn read(
    database: &DynamodbDatabase,
    partition: &Partition,
    keys: &[Vec<u8>],
    columns: Columns,
    consistency: Consistency,
) -> StoreResult<Vec<Option<Row>>> {
    if let [key] = keys {
        return Ok(vec![one(database, partition, key, columns, consistency).await?]);
    }
    // DynamoDB refuses a request that names a key twice.
    let distinct: Vec<&Vec<u8>> = keys.iter().collect::<BTreeSet<_>>().into_iter().collect();
    let mut reads: Vec<BoxFuture<'_, StoreResult<Vec<Row>>>> = Vec::new();
    for keys in distinct.chunks(KEYS_PER_READ) {
        reads.push(Box::pin(some(database, partition, keys, columns, consistency)));
    }
    let found: Vec<Vec<Row>> = stream::iter(reads).buffered(READS_AT_ONCE).try_collect().await?;
    let found: HashMap<Vec<u8>, Row> = found.into_iter().flatten().map(|row| (row.key.clone(), row)).collect();
    Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
}

async fn one(
    database: &DynamodbDatabase,
    partition: &Partition,
    key: &[u8],
    columns: Columns,
    consistency: Consistency,
) -> StoreResult<Option<Row>> {
    let get = database
        .client
        .get_item()
        .table_name(&database.table)
        .set_key(Some(item::key(partition, key)))
        .projection_expression(item::projection(columns, None))
        .consistent_read(is_consistent(consistency));
    let answer = request(database, || get.clone().send()).await.map_err(unavailable)?;
    answer.item.map(|item| item::row(&item, None)).transpose()
}

/// The rows with these keys that there are, in any order.
async fn some(
    database: &DynamodbDatabase,
    partition: &Partition,
    keys: &[&Vec<u8>],
    columns: Columns,
    consistency: Consistency,
) -> StoreResult<Vec<Row>> {
    let (mut rows, mut fruitless) = (Vec::with_capacity(keys.len()), 0);
    let mut wanted: Vec<Item> = keys.iter().map(|key| item::key(partition, key)).collect();
    while !wanted.is_empty() {
        let asked = KeysAndAttributes::builder()
            .set_keys(Some(wanted))
            .projection_expression(item::projection(columns, None))
            .consistent_read(is_consistent(consistency))
            .build()
            .map_err(|error| StoreError::Unavailable(domain::Cause::of(error)))?;
        let get = database.client.batch_get_item().request_items(&database.table, asked);
        let answer = request(database, || get.clone().send()).await.map_err(unavailable)?;
        let found = answer.responses.unwrap_or_default().remove(&database.table).unwrap_or_default();
        // An answer holds no more than 16 MB, and less where the table is throttled.
        let rest = answer.unprocessed_keys.unwrap_or_default().remove(&database.table);
        wanted = rest.map(|rest| rest.keys).unwrap_or_default();
        if found.is_empty() && !wanted.is_empty() {
            fruitless += 1;
            if fruitless == FRUITLESS_MAX {
                return Err(StoreError::Unavailable("DynamoDB is throttled and answers for none of the keys".into()));
            }
            pause(fruitless).await;
        }
        for item in &found {
            rows.push(item::row(item, None)?);
        }
    }
    Ok(rows)
}

pub async fn range(
    database: &DynamodbDatabase,
    partition: &Partition,
    range: &Range,
    columns: Columns,
    consistency: Consistency,
) -> StoreResult<Vec<Row>> {
    let Some(condition) = key_condition(partition, range) else { return Ok(Vec::new()) };
    let mut query = database
        .client
        .query()
        .table_name(&database.table)
        .set_index_name(range.index.map(|index| item::index_name(index).to_owned()))
        .key_condition_expression(condition.expression)
        .set_expression_attribute_values(Some(condition.values))
        .projection_expression(item::projection(columns, range.index))
        .scan_index_forward(!range.is_descending)
        .consistent_read(is_consistent(consistency));
    let mut rows: Vec<Row> = Vec::new();
    while rows.len() < range.limit {
        query = query.limit(i32::try_from(range.limit - rows.len()).unwrap_or(i32::MAX));
        let answer = request(database, || query.clone().send()).await.map_err(unavailable)?;
        for item in answer.items.iter().flatten() {
            let row = item::row(item, range.index)?;
            let place = if range.index.is_some() { &row.position } else { &row.key };
            // DynamoDB knows no range that ends before its end.
            if range.to.as_ref() != Some(place) {
                rows.push(row);
            }
        }
        // An answer holds no more than 1 MB.
        match answer.last_evaluated_key {
            Some(last) => query = query.set_exclusive_start_key(Some(last)),
            None => break,
        }
    }
    Ok(rows)
}

#[derive(Debug, PartialEq)]
struct KeyCondition {
    expression: String,
    values: Item,
}

/// A range in the words of DynamoDB, which allows one comparison and no empty value; `None` where there is nothing in it. Its end is
/// part of it where it has a beginning.
fn key_condition(partition: &Partition, range: &Range) -> Option<KeyCondition> {
    if range.limit == 0 || range.to.as_ref().is_some_and(|to| *to <= range.from) {
        return None;
    }
    let name = range.index.map_or(KEY, item::attribute);
    let comparison = match (range.from.as_slice(), &range.to) {
        ([], None) => String::new(),
        ([], Some(_)) => format!(" AND {name} < :to"),
        (_, None) => format!(" AND {name} >= :from"),
        (_, Some(_)) => format!(" AND {name} BETWEEN :from AND :to"),
    };
    let mut values = Item::from([(":p".to_owned(), AttributeValue::S(partition.as_str().to_owned()))]);
    if !range.from.is_empty() {
        values.insert(":from".to_owned(), binary(range.from.clone()));
    }
    if let Some(to) = &range.to {
        values.insert(":to".to_owned(), binary(to.clone()));
    }
    Some(KeyCondition { expression: format!("{PARTITION} = :p{comparison}"), values })
}

#[cfg(test)]
mod tests {
    use store_partitioned::Index;

    use super::*;

    fn expression(index: Option<Index>, from: &[u8], to: Option<&[u8]>) -> Option<(String, usize)> {
        let range = Range { index, from: from.to_vec(), to: to.map(<[u8]>::to_vec), ..Range::all(5) };
        key_condition(&Partition::new("a"), &range).map(|condition| (condition.expression, condition.values.len()))
    }

    #[test]
    fn ranges_in_the_words_of_dynamodb() {
        for (index, from, to, expected) in [
            (None, &b""[..], None, Some(("p = :p", 1))),
            (None, b"b", None, Some(("p = :p AND k >= :from", 2))),
            (Some(Index::First), b"", Some(&b"c"[..]), Some(("p = :p AND i1 < :to", 2))),
            (Some(Index::Fourth), b"b", Some(b"c"), Some(("p = :p AND i4 BETWEEN :from AND :to", 3))),
            (None, b"b", Some(b"b"), None),
            (None, b"", Some(b""), None),
        ] {
            assert_eq!(expression(index, from, to), expected.map(|(text, values)| (text.to_owned(), values)));
        }
        assert_eq!(key_condition(&Partition::new("a"), &Range::all(0)), None);
    }
}
