//! Many rows that one call changes, each under its own condition: a driver may let them share what it sends.

use std::sync::Arc;

use futures_util::future::join_all;

use super::{Subject, apply, keys, one, partition, positions_of, put, read, standing, version};
use crate::{Change, Columns, Condition, Consistency, Index, Outcome, Partition, Range, Version, Write};

fn version_of(write: &Write) -> Option<Version> {
    match &write.change {
        Change::Put { version, .. } => Some(*version),
        Change::Delete => None,
    }
}

/// The same write with a body and a log, or with none where what is there is to stay.
fn with_texts(write: Write, body: Option<&str>, log: Option<&str>) -> Write {
    let Change::Put { version, head, positions, .. } = write.change else { panic!("only what is put has columns") };
    let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
    Write { change: Change::Put { version, head, body: bytes(body), log: bytes(log), positions }, ..write }
}

/// Rows that stand in two indexes, as they were inserted.
async fn inserted(database: &Subject, partition: &Partition, count: u32) -> Vec<Write> {
    let insert = |number: u32| {
        let key = number.to_be_bytes();
        let row = with_texts(put(&key, Condition::Absent, b"1"), Some("b1"), Some("l1"));
        standing(standing(row, Index::First, &key), Index::Third, &key)
    };
    let writes: Vec<Write> = (0..count).map(insert).collect();
    assert_eq!(apply(database, partition, writes.clone()).await, vec![true; writes.len()]);
    writes
}

/// What changes a row after a write of it, and moves it to another position in the first index.
fn change_after(write: &Write, head: &[u8]) -> Write {
    let condition = version_of(write).map_or(Condition::Absent, Condition::Is);
    let moved = standing(put(&write.key, condition, head), Index::First, &[&write.key, head].concat());
    Write { before: positions_of(write), ..standing(moved, Index::Third, &write.key) }
}

pub async fn of_many_changes_at_once_each_has_its_own_condition(database: Subject) {
    let partition = partition();
    let first = inserted(&database, &partition, 200).await;
    let mut changes: Vec<Write> = first.iter().map(|write| change_after(write, b"2")).collect();
    // At a version that the row had before, at one that no row has, and of a row that is not there.
    assert!(one(&database, &partition, change_after(&first[3], b"3")).await);
    changes[7].condition = Condition::Is(version());
    changes[9].condition = Condition::Is(version());
    changes[9].key = b"absent".to_vec();
    let head = |place: usize| match place {
        3 => b"3",
        7 | 9 => b"1",
        _ => b"2",
    };
    let applied: Vec<bool> = (0..changes.len()).map(|place| head(place) == b"2").collect();
    assert_eq!(apply(&database, &partition, changes).await, applied);
    let range = Range::of(Index::First, Vec::new(), None, 1_000);
    let rows = database.range(&partition, &range, Columns::HEAD, Consistency::Committed).await.unwrap();
    assert_eq!(rows.len(), first.len());
    for (place, row) in rows.iter().enumerate() {
        let head = head(place);
        assert_eq!(row.head, head, "{place}");
        assert_eq!(row.position, if head == b"1" { row.key.clone() } else { [&row.key[..], head].concat() });
    }
    assert_eq!(read(&database, &partition, b"absent").await, None);
}

pub async fn many_changes_at_once_keep_what_they_do_not_write(database: Subject) {
    let partition = partition();
    let first = inserted(&database, &partition, 120).await;
    let texts = |place: usize| match place % 4 {
        0 => (None, None),
        1 => (Some("b2"), None),
        2 => (None, Some("l2")),
        _ => (Some(""), Some("l2")),
    };
    let change = |(place, write): (usize, &Write)| {
        let (body, log) = texts(place);
        with_texts(change_after(write, b"2"), body, log)
    };
    let changes: Vec<Write> = first.iter().enumerate().map(change).collect();
    assert_eq!(apply(&database, &partition, changes.clone()).await, vec![true; changes.len()]);
    let range = Range::of(Index::Third, Vec::new(), None, 1_000);
    let rows = database.range(&partition, &range, Columns::ALL, Consistency::Committed).await.unwrap();
    assert!(rows.iter().map(|row| &row.key).eq(first.iter().map(|write| &write.key)), "the positions that did not change");
    for (place, row) in rows.iter().enumerate() {
        let (body, log) = texts(place);
        assert_eq!(Some(row.version), version_of(&changes[place]), "{place}");
        assert_eq!(row.head, b"2", "{place}");
        assert_eq!(row.body, body.unwrap_or("b1").as_bytes(), "{place}");
        assert_eq!(row.log, log.unwrap_or("l1").as_bytes(), "{place}");
    }
}

pub async fn many_changes_at_once_do_not_lose_those_of_other_writers(database: Subject) {
    let partition = partition();
    let first = inserted(&database, &partition, 60).await;
    let writers = (0..4).map(|_| {
        let (database, partition) = (Arc::clone(&database), partition.clone());
        let changes: Vec<Write> = first.iter().map(|write| change_after(write, b"2")).collect();
        tokio::spawn(async move { (changes.clone(), database.write(&partition, changes).await.unwrap()) })
    });
    let told: Vec<(Vec<Write>, Vec<Outcome>)> = join_all(writers).await.into_iter().map(Result::unwrap).collect();
    let mut decided = 0;
    for (place, write) in first.iter().enumerate() {
        let row = read(&database, &partition, &write.key).await.unwrap();
        for (changes, outcomes) in &told {
            let is_its_own = version_of(&changes[place]) == Some(row.version);
            match &outcomes[place] {
                Outcome::Applied => assert!(is_its_own, "{place}: told that it was applied"),
                Outcome::Refused => assert!(!is_its_own, "{place}: told that it was refused"),
                // Contention may leave an outcome unknown.
                Outcome::Failed(error) => assert!(!error.is_not_done() || !is_its_own, "{place}: {error}"),
            }
            decided += usize::from(matches!(outcomes[place], Outcome::Applied));
        }
    }
    assert!(decided > first.len() / 2, "only {decided} of {} rows have a writer that knows of it", first.len());
}

pub async fn writes_of_every_kind_go_in_one_call(database: Subject) {
    let partition = partition();
    let first = inserted(&database, &partition, 8).await;
    let change = |place: usize| change_after(&first[place], b"2");
    let removal = Write { change: Change::Delete, ..change(0) };
    let leaving = Write { change: put(&first[1].key, Condition::Absent, b"2").change, ..change(1) };
    let refused = Write { condition: Condition::Is(version()), ..change(2) };
    let insert = standing(put(b"new", Condition::Absent, b"2"), Index::First, b"new");
    let plain = put(b"plain", Condition::Any, b"2");
    let writes = vec![change(3), removal, change(4), leaving, refused, change(5), insert, plain, change(6), change(7)];
    let applied: Vec<bool> = (0..writes.len()).map(|place| place != 4).collect();
    assert_eq!(apply(&database, &partition, writes).await, applied);

    let mut in_index: Vec<Vec<u8>> = first[2..].iter().map(|write| write.key.clone()).collect();
    in_index.push(b"new".to_vec());
    assert_eq!(keys(&database, &partition, Range::of(Index::First, Vec::new(), None, 100)).await, in_index);
    assert_eq!(read(&database, &partition, &first[0].key).await, None);
    assert_eq!(read(&database, &partition, &first[2].key).await.unwrap().head, b"1");
    let changed = [1, 3, 4, 5, 6, 7].map(|place: usize| first[place].key.clone());
    for key in changed.into_iter().chain([b"new".to_vec(), b"plain".to_vec()]) {
        assert_eq!(read(&database, &partition, &key).await.unwrap().head, b"2", "{key:?}");
    }
}
