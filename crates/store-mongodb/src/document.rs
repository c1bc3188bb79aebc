//! Rows as documents, and writes as operations of `bulkWrite`.

use mongodb::bson::{
    Binary, Document, RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, doc,
    raw::{CStr, cstr},
    rawdoc,
    spec::BinarySubtype,
};
use store::StoreResult;
use store_partitioned::{Change, Columns, Condition, Index, Partition, Row, Version, Write};

use crate::{failure::corrupt, field, key};

fn binary(bytes: &[u8]) -> Binary {
    Binary { subtype: BinarySubtype::Generic, bytes: bytes.to_vec() }
}

fn version_bytes(version: Version) -> Binary {
    binary(&version.0.to_be_bytes())
}

const fn raw_field(index: Index) -> &'static CStr {
    match index {
        Index::First => cstr!("i1"),
        Index::Second => cstr!("i2"),
        Index::Third => cstr!("i3"),
        Index::Fourth => cstr!("i4"),
    }
}

// ── Reading ────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Which fields a read asks for: those of its columns, and that of the index by which it goes.
pub fn projection(columns: Columns, index: Option<Index>) -> Document {
    let mut fields = doc! { "_id": 1 };
    let asked = [("version", columns != Columns::NONE), ("head", columns.head), ("body", columns.body), ("log", columns.log)];
    fields.extend(asked.into_iter().filter(|(_, is_asked)| *is_asked).map(|(name, _)| (name.to_owned(), 1.into())));
    if let Some(index) = index {
        fields.insert(field(index), 1);
    }
    fields
}

/// A document as it was read, with the fields that were asked for.
pub fn row(partition: &Partition, document: &RawDocument, index: Option<Index>) -> StoreResult<Row> {
    let (mut key, mut position) = (Vec::new(), Vec::new());
    let mut row = columns(document, |name, value| {
        match name {
            "_id" => key = place(partition, value)?,
            name if index.is_some_and(|index| field(index) == name) => position = place(partition, value)?,
            _ => {}
        }
        Ok(())
    })?;
    (row.key, row.position) = (key, position);
    Ok(row)
}

/// A document as it was read: its id, and the row without its key. One that is damaged costs no other row.
pub fn named_row(document: &RawDocument) -> StoreResult<(String, StoreResult<Row>)> {
    let id = document.get_str("_id").map_err(|_| corrupt("a key that cannot be read"))?;
    Ok((id.to_owned(), columns(document, |_, _| Ok(()))))
}

/// The columns of a document. What else it has is left to `other`.
fn columns(document: &RawDocument, mut other: impl FnMut(&str, RawBsonRef<'_>) -> StoreResult<()>) -> StoreResult<Row> {
    let mut row = Row::default();
    for element in document {
        let (name, value) = element.map_err(|_| corrupt("a field that is none"))?;
        match name.as_str() {
            "version" => row.version = version(value)?,
            "head" => row.head = bytes(value)?.to_vec(),
            "body" => row.body = bytes(value)?.to_vec(),
            "log" => row.log = bytes(value)?.to_vec(),
            name => other(name, value)?,
        }
    }
    Ok(row)
}

fn place(partition: &Partition, value: RawBsonRef<'_>) -> StoreResult<Vec<u8>> {
    value.as_str().and_then(|text| key::bytes(partition, text)).ok_or_else(|| corrupt("a key that cannot be read"))
}

fn bytes<'a>(value: RawBsonRef<'a>) -> StoreResult<&'a [u8]> {
    value.as_binary().map(|binary| binary.bytes).ok_or_else(|| corrupt("a column that is not made of bytes"))
}

fn version(value: RawBsonRef<'_>) -> StoreResult<Version> {
    let bytes = bytes(value)?.try_into().map_err(|_| corrupt("a version that cannot be read"))?;
    Ok(Version(u128::from_be_bytes(bytes)))
}

// ── Writing ────────────────────────────────────────────────────────────────────────────────────────────────────────

/// One write as an operation on the first collection that a `bulkWrite` names.
pub fn operation(partition: &Partition, write: &Write) -> RawDocumentBuf {
    let mut filter = rawdoc! { "_id": key::text(partition, &write.key) };
    if let Condition::Is(version) = write.condition {
        filter.append(cstr!("version"), version_bytes(version));
    }
    match (&write.change, write.condition) {
        (Change::Delete, _) => rawdoc! { "delete": 0, "filter": filter },
        (Change::Put { .. }, Condition::Absent) => {
            append_columns(&mut filter, partition, write);
            rawdoc! { "insert": 0, "document": filter }
        }
        (Change::Put { .. }, condition) => {
            let mut set = RawDocumentBuf::new();
            append_columns(&mut set, partition, write);
            let mut change = rawdoc! { "$set": set };
            let left = left_positions(write);
            if !left.is_empty() {
                change.append(cstr!("$unset"), left);
            }
            let mut operation = rawdoc! { "update": 0, "filter": filter, "updateMods": change };
            if condition == Condition::Any {
                operation.append(cstr!("upsert"), true);
            }
            operation
        }
    }
}

/// Whether a write can share an operation: it changes a row that must have a certain version, and takes no position away.
pub fn is_change(write: &Write) -> bool {
    matches!((&write.change, write.condition), (Change::Put { .. }, Condition::Is(_))) && left_positions(write).is_empty()
}

/// Many changes of different rows as one operation, which MongoDB plans once and not for each row.
///
/// The operation tells only how many rows it has changed. Its filter does not say which version belongs to which row, and need not: by the
/// contract of drivers a condition names a version that this very row had, and no other row ever has the same.
pub fn changes<'a>(writes: impl Iterator<Item = (&'a Partition, &'a Write)>) -> RawDocumentBuf {
    let (mut ids, mut versions, mut rows) = (RawArrayBuf::new(), RawArrayBuf::new(), RawArrayBuf::new());
    for (partition, write) in writes {
        let mut row = RawDocumentBuf::new();
        append_columns(&mut row, partition, write);
        ids.push(key::text(partition, &write.key));
        rows.push(row);
        if let Condition::Is(version) = write.condition {
            versions.push(version_bytes(version));
        }
    }
    let place = rawdoc! { "$indexOfArray": [{ "$literal": ids.clone() }, "$_id"] };
    let row = rawdoc! { "$arrayElemAt": [{ "$literal": rows }, place] };
    let change = rawdoc! { "$replaceWith": { "$mergeObjects": ["$$ROOT", row] } };
    let filter = rawdoc! { "_id": { "$in": ids }, "version": { "$in": versions } };
    rawdoc! { "update": 0, "filter": filter, "updateMods": [change], "multi": true }
}

/// What the row is to have: positions only where they change.
fn append_columns(document: &mut RawDocumentBuf, partition: &Partition, write: &Write) {
    let Change::Put { version, head, body, log, positions } = &write.change else { return };
    document.append(cstr!("version"), version_bytes(*version));
    document.append(cstr!("head"), binary(head));
    for (name, column) in [(cstr!("body"), body), (cstr!("log"), log)] {
        if let Some(column) = column {
            document.append(name, binary(column));
        }
    }
    for (index, position) in positions.iter().filter(|(index, position)| write.before.at(*index) != Some(position)) {
        document.append(raw_field(index), key::text(partition, position));
    }
}

/// The positions that the row has and is not to have any more.
fn left_positions(write: &Write) -> RawDocumentBuf {
    let mut left = RawDocumentBuf::new();
    if let Change::Put { positions, .. } = &write.change {
        for (index, _) in write.before.iter().filter(|(index, _)| positions.at(*index).is_none()) {
            left.append(raw_field(index), true);
        }
    }
    left
}

/// About how many bytes a write takes, keys and names included.
pub fn size(write: &Write) -> usize {
    const NAMES: usize = 200;
    match &write.change {
        Change::Delete => NAMES + 2 * write.key.len(),
        Change::Put { head, body, log, positions, .. } => {
            let columns = [body, log].into_iter().flatten().map(Vec::len).sum::<usize>();
            let positions = positions.iter().map(|(_, position)| 2 * position.len() + NAMES / 4).sum::<usize>();
            NAMES + 2 * write.key.len() + head.len() + columns + positions
        }
    }
}

#[cfg(test)]
mod tests {
    use store_partitioned::Positions;

    use super::*;

    fn put(condition: Condition, before: Positions, positions: Positions) -> Write {
        let change = Change::Put { version: Version(7), head: b"h".to_vec(), body: None, log: Some(b"l".to_vec()), positions };
        Write { key: vec![1], condition, change, before }
    }

    fn shown(write: &Write) -> Document {
        Document::try_from(operation(&Partition::new("p"), write)).unwrap()
    }

    #[test]
    fn an_insert_holds_everything() {
        let positions = Positions::default().with(Index::Second, vec![2]);
        let insert = shown(&put(Condition::Absent, Positions::default(), positions));
        let document = insert.get_document("document").unwrap();
        assert_eq!(document.keys().collect::<Vec<_>>(), ["_id", "version", "head", "log", "i2"]);
        assert_eq!(document.get_str("_id").unwrap(), "p/01");
        assert_eq!(document.get_str("i2").unwrap(), "p/02");
    }

    #[test]
    fn a_change_names_the_version_it_replaces_and_the_positions_that_differ() {
        let before = Positions::default().with(Index::First, vec![1]).with(Index::Third, vec![3]).with(Index::Fourth, vec![4]);
        let after = Positions::default().with(Index::First, vec![9]).with(Index::Third, vec![3]);
        let change = shown(&put(Condition::Is(Version(5)), before, after));
        assert!(change.get_document("filter").unwrap().contains_key("version"));
        assert!(!change.contains_key("upsert"));
        let mods = change.get_document("updateMods").unwrap();
        assert_eq!(mods.get_document("$set").unwrap().keys().collect::<Vec<_>>(), ["version", "head", "log", "i1"]);
        assert_eq!(mods.get_document("$unset").unwrap().keys().collect::<Vec<_>>(), ["i4"]);
    }

    #[test]
    fn a_row_without_condition_is_made_where_there_is_none() {
        let change = shown(&put(Condition::Any, Positions::default(), Positions::default()));
        assert_eq!(change.get_document("filter").unwrap().keys().collect::<Vec<_>>(), ["_id"]);
        assert!(change.get_bool("upsert").unwrap());
        assert!(!change.get_document("updateMods").unwrap().contains_key("$unset"));
    }

    #[test]
    fn many_changes_are_one_operation_with_a_row_for_each_id() {
        let (partition, before) = (Partition::new("p"), Positions::default().with(Index::First, vec![1]));
        let write = |key: u8, version: u128| Write {
            key: vec![key],
            ..put(Condition::Is(Version(version)), before.clone(), Positions::default().with(Index::First, vec![key]))
        };
        let writes = [write(1, 5), write(2, 6)];
        let changes = Document::try_from(changes(writes.iter().map(|write| (&partition, write)))).unwrap();
        assert!(changes.get_bool("multi").unwrap());
        let filter = changes.get_document("filter").unwrap();
        assert_eq!(filter.get_document("_id").unwrap(), &doc! { "$in": ["p/01", "p/02"] });
        assert_eq!(filter.get_document("version").unwrap().get_array("$in").unwrap().len(), 2);
        let text = changes.get_array("updateMods").unwrap()[0].to_string();
        assert!(text.contains("p/02") && text.contains("i1"), "{text}");
        assert!(!is_change(&put(Condition::Is(Version(1)), before, Positions::default())), "it would keep its position");
    }
}
