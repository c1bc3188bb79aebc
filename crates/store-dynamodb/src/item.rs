//! Rows as items, and writes as updates of them.

use std::collections::HashMap;

use aws_sdk_dynamodb::{primitives::Blob, types::AttributeValue};
use store::StoreResult;
use store_partitioned::{Change, Columns, Condition, Index, Partition, Positions, Row, Version, Write};

use crate::{column, failure::corrupt};

pub type Item = HashMap<String, AttributeValue>;

// Short, because their letters are paid with every write.
pub const PARTITION: &str = "p";
pub const KEY: &str = "k";
const VERSION: &str = "v";
const HEAD: &str = "h";
const BODY: &str = "b";
const LOG: &str = "l";

/// The attribute that holds the position in an index.
pub const fn attribute(index: Index) -> &'static str {
    match index {
        Index::First => "i1",
        Index::Second => "i2",
        Index::Third => "i3",
        Index::Fourth => "i4",
    }
}

/// The name of an index, for which DynamoDB wants three letters or more.
pub const fn index_name(index: Index) -> &'static str {
    match index {
        Index::First => "position-1",
        Index::Second => "position-2",
        Index::Third => "position-3",
        Index::Fourth => "position-4",
    }
}

pub fn binary(bytes: impl Into<Vec<u8>>) -> AttributeValue {
    AttributeValue::B(Blob::new(bytes))
}

fn version_bytes(version: Version) -> AttributeValue {
    binary(version.0.to_be_bytes())
}

/// What identifies a row.
pub fn key(partition: &Partition, key: &[u8]) -> Item {
    let partition = AttributeValue::S(partition.as_str().to_owned());
    HashMap::from([(PARTITION.to_owned(), partition), (KEY.to_owned(), binary(key))])
}

// ── Reading ────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Which attributes a read asks for: those of its columns, and that of the index by which it goes.
pub fn projection(columns: Columns, index: Option<Index>) -> String {
    let mut names = vec![KEY];
    let asked = [(VERSION, columns != Columns::NONE), (HEAD, columns.head), (BODY, columns.body), (LOG, columns.log)];
    names.extend(asked.into_iter().filter(|(_, is_asked)| *is_asked).map(|(name, _)| name));
    names.extend(index.map(attribute));
    names.join(", ")
}

/// An item as it was read, with the attributes that were asked for.
pub fn row(item: &Item, index: Option<Index>) -> StoreResult<Row> {
    let mut row = Row::default();
    for (name, value) in item {
        match name.as_str() {
            KEY => row.key = bytes(value)?.to_vec(),
            VERSION => row.version = version(value)?,
            HEAD => row.head = bytes(value)?.to_vec(),
            BODY => row.body = column::decode(bytes(value)?)?,
            LOG => row.log = column::decode(bytes(value)?)?,
            name if index.is_some_and(|index| attribute(index) == name) => row.position = bytes(value)?.to_vec(),
            _ => {}
        }
    }
    Ok(row)
}

fn bytes(value: &AttributeValue) -> StoreResult<&[u8]> {
    value.as_b().map(Blob::as_ref).map_err(|_| corrupt("an attribute that is not made of bytes"))
}

fn version(value: &AttributeValue) -> StoreResult<Version> {
    let bytes = bytes(value)?.try_into().map_err(|_| corrupt("a version that cannot be read"))?;
    Ok(Version(u128::from_be_bytes(bytes)))
}

// ── Writing ────────────────────────────────────────────────────────────────────────────────────────────────────────

/// A write in the words of DynamoDB.
#[derive(Debug, Clone, PartialEq)]
pub struct Expressions {
    /// `None` for a row that is removed.
    pub update: Option<String>,
    pub condition: Option<String>,
    /// `None` where the expressions name none: DynamoDB refuses an empty list.
    pub values: Option<Item>,
}

pub fn expressions(write: &Write) -> Expressions {
    let mut values = Item::new();
    let update = match &write.change {
        Change::Delete => None,
        Change::Put { version, head, body, log, positions } => {
            let body = body.as_ref().map(|body| binary(column::encode(body)));
            let log = log.as_ref().map(|log| binary(column::encode(log)));
            let set = [(VERSION, Some(version_bytes(*version))), (HEAD, Some(binary(head.clone()))), (BODY, body), (LOG, log)];
            let set = set.into_iter().filter_map(|(name, value)| Some((name, value?)));
            Some(update(set.chain(moved(&write.before, positions)), &left(&write.before, positions), &mut values))
        }
    };
    let condition = match write.condition {
        Condition::Absent => Some(format!("attribute_not_exists({PARTITION})")),
        Condition::Is(version) => {
            values.insert(":is".to_owned(), version_bytes(version));
            Some(format!("{VERSION} = :is"))
        }
        Condition::Any => None,
    };
    Expressions { update, condition, values: (!values.is_empty()).then_some(values) }
}

fn update(set: impl Iterator<Item = (&'static str, AttributeValue)>, remove: &[&'static str], values: &mut Item) -> String {
    let mut assignments = Vec::new();
    for (name, value) in set {
        assignments.push(format!("{name} = :{name}"));
        values.insert(format!(":{name}"), value);
    }
    let mut update = format!("SET {}", assignments.join(", "));
    if !remove.is_empty() {
        update.push_str(" REMOVE ");
        update.push_str(&remove.join(", "));
    }
    update
}

/// The positions that are new to the row.
fn moved(before: &Positions, positions: &Positions) -> impl Iterator<Item = (&'static str, AttributeValue)> {
    let is_new = |(index, position): &(Index, &[u8])| before.at(*index) != Some(*position);
    positions.iter().filter(is_new).map(|(index, position)| (attribute(index), binary(position)))
}

/// The positions that the row has and is not to have any more.
fn left(before: &Positions, positions: &Positions) -> Vec<&'static str> {
    before.iter().filter(|(index, _)| positions.at(*index).is_none()).map(|(index, _)| attribute(index)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(condition: Condition, before: Positions, positions: Positions) -> Write {
        let change = Change::Put { version: Version(7), head: b"h".to_vec(), body: None, log: Some(b"l".to_vec()), positions };
        Write { key: vec![1], condition, change, before }
    }

    fn named(expressions: &Expressions) -> Vec<&str> {
        let mut names: Vec<_> = expressions.values.iter().flatten().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn an_insert_holds_everything() {
        let insert =
            expressions(&put(Condition::Absent, Positions::default(), Positions::default().with(Index::Second, vec![2])));
        assert_eq!(insert.update.as_deref(), Some("SET v = :v, h = :h, l = :l, i2 = :i2"));
        assert_eq!(insert.condition.as_deref(), Some("attribute_not_exists(p)"));
        assert_eq!(named(&insert), [":h", ":i2", ":l", ":v"]);
    }

    #[test]
    fn a_change_names_the_version_it_replaces_and_the_positions_that_differ() {
        let before = Positions::default().with(Index::First, vec![1]).with(Index::Third, vec![3]).with(Index::Fourth, vec![4]);
        let after = Positions::default().with(Index::First, vec![9]).with(Index::Third, vec![3]);
        let change = expressions(&put(Condition::Is(Version(5)), before, after));
        assert_eq!(change.update.as_deref(), Some("SET v = :v, h = :h, l = :l, i1 = :i1 REMOVE i4"));
        assert_eq!(change.condition.as_deref(), Some("v = :is"));
        assert_eq!(named(&change), [":h", ":i1", ":is", ":l", ":v"]);
    }

    #[test]
    fn what_is_removed_without_condition_needs_no_expressions() {
        let removal = Write { key: vec![1], condition: Condition::Any, change: Change::Delete, before: Positions::default() };
        assert_eq!(expressions(&removal), Expressions { update: None, condition: None, values: None });
    }

    #[test]
    fn reads_ask_for_what_they_need() {
        assert_eq!(projection(Columns::NONE, Some(Index::Third)), "k, i3");
        assert_eq!(projection(Columns::HEAD_AND_BODY, None), "k, v, h, b");
    }

    #[test]
    fn an_item_that_is_none_of_ours_is_corrupt() {
        let text = || AttributeValue::S("text".to_owned());
        for (name, value) in [(KEY, text()), (VERSION, binary([1, 2])), (BODY, binary([9]))] {
            let item = Item::from([(name.to_owned(), value)]);
            assert_eq!(row(&item, None).unwrap_err().kind(), "corrupt", "{name}");
        }
        assert_eq!(row(&Item::from([("other".to_owned(), text())]), None).unwrap(), Row::default());
    }
}
