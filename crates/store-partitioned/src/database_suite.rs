//! What every driver must do, one test each: `store_partitioned::database_suite!(open().await)`.

/// Generates one test per behaviour of a [`Database`](crate::Database). `$database` is evaluated for each of them, inside a Tokio
/// runtime: an `Arc<dyn Database>` that is set up. Rows of other tests may be there: each behaviour has a partition of its own.
#[macro_export]
macro_rules! database_suite {
    ($database:expr) => {
        $crate::database_tests! { $database;
            setting_up_again_is_harmless
            what_is_written_is_read_back
            an_insert_is_refused_where_there_is_a_row
            a_row_is_changed_only_at_its_version
            a_row_is_removed_only_at_its_version
            columns_that_are_not_written_stay
            each_write_of_a_call_stands_by_itself
            many_rows_are_written_and_read_at_once
            of_many_changes_at_once_each_has_its_own_condition
            many_changes_at_once_keep_what_they_do_not_write
            many_changes_at_once_do_not_lose_those_of_other_writers
            writes_of_every_kind_go_in_one_call
            a_large_row_comes_back
            keys_are_in_the_order_of_their_bytes
            ranges_end_before_their_end_and_at_their_limit
            partitions_are_apart
            positions_follow_their_row
            an_index_is_in_the_order_of_its_bytes
            an_index_gives_rows_and_keys_alone
            a_row_without_condition_is_overwritten_and_removed
            of_many_writers_of_one_version_one_wins
            writers_of_different_rows_do_not_lose_writes
            a_live_database_answers_a_ping
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! database_tests {
    ($database:expr; $($behaviour:ident)*) => {
        $(
            #[test]
            fn $behaviour() {
                let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
                runtime.block_on(async { $crate::database_behaviours::$behaviour($database).await });
            }
        )*
    };
}

pub mod behaviours {
    #![expect(clippy::unwrap_used, reason = "these are tests: a panic is how a behaviour fails")]

    mod many_changes;

    use std::sync::Arc;

    use futures_util::future::join_all;
    use uuid::Uuid;

    pub use self::many_changes::{
        many_changes_at_once_do_not_lose_those_of_other_writers, many_changes_at_once_keep_what_they_do_not_write,
        of_many_changes_at_once_each_has_its_own_condition, writes_of_every_kind_go_in_one_call,
    };
    use crate::{
        Change, Columns, Condition, Consistency, Database, Index, Outcome, Partition, Positions, Range, Row, Version, Write,
        after,
    };

    type Subject = Arc<dyn Database>;

    fn partition() -> Partition {
        Partition::new(format!("test-{:x}", version().0))
    }

    fn version() -> Version {
        Version(Uuid::now_v7().as_u128())
    }

    fn put(key: &[u8], condition: Condition, head: &[u8]) -> Write {
        let change =
            Change::Put { version: version(), head: head.to_vec(), body: None, log: None, positions: Positions::default() };
        Write { key: key.to_vec(), condition, change, before: Positions::default() }
    }

    fn standing(write: Write, index: Index, position: &[u8]) -> Write {
        let Change::Put { version, head, body, log, positions } = write.change else {
            panic!("only what is put stands somewhere")
        };
        let positions = positions.with(index, position.to_vec());
        Write { change: Change::Put { version, head, body, log, positions }, ..write }
    }

    fn positions_of(write: &Write) -> Positions {
        match &write.change {
            Change::Put { positions, .. } => positions.clone(),
            Change::Delete => Positions::default(),
        }
    }

    async fn apply(database: &Subject, partition: &Partition, writes: Vec<Write>) -> Vec<bool> {
        let outcomes = database.write(partition, writes).await.unwrap();
        let is_applied = |outcome| match outcome {
            Outcome::Applied => true,
            Outcome::Refused => false,
            Outcome::Failed(error) => panic!("a write failed: {error}"),
        };
        outcomes.into_iter().map(is_applied).collect()
    }

    async fn one(database: &Subject, partition: &Partition, write: Write) -> bool {
        apply(database, partition, vec![write]).await == [true]
    }

    async fn read(database: &Subject, partition: &Partition, key: &[u8]) -> Option<Row> {
        let mut seen = Vec::new();
        for consistency in [Consistency::Linearizable, Consistency::Committed] {
            seen.push(database.read(partition, &[key.to_vec()], Columns::ALL, consistency).await.unwrap().remove(0));
        }
        assert_eq!(seen[0], seen[1], "what was answered is seen by both");
        seen.remove(0)
    }

    async fn keys(database: &Subject, partition: &Partition, range: Range) -> Vec<Vec<u8>> {
        let rows = database.range(partition, &range, Columns::NONE, Consistency::Committed).await.unwrap();
        rows.into_iter().map(|row| row.key).collect()
    }

    pub async fn setting_up_again_is_harmless(database: Subject) {
        let partition = partition();
        assert!(one(&database, &partition, put(b"a", Condition::Absent, b"1")).await);
        let (first, second) = tokio::join!(database.set_up(), database.set_up());
        first.and(second).unwrap();
        assert_eq!(read(&database, &partition, b"a").await.unwrap().head, b"1");
    }

    pub async fn what_is_written_is_read_back(database: Subject) {
        let partition = partition();
        let version = version();
        let change = Change::Put {
            version,
            head: vec![0, 255, 7],
            body: Some(b"body".to_vec()),
            log: Some(b"log".to_vec()),
            positions: Positions::default(),
        };
        let write = Write { key: vec![0, 1, 255], condition: Condition::Absent, change, before: Positions::default() };
        assert!(one(&database, &partition, write).await);
        let row = Row {
            key: vec![0, 1, 255],
            position: Vec::new(),
            version,
            head: vec![0, 255, 7],
            body: b"body".to_vec(),
            log: b"log".to_vec(),
        };
        assert_eq!(read(&database, &partition, &[0, 1, 255]).await, Some(row.clone()));
        assert_eq!(read(&database, &partition, &[0, 1]).await, None);
        let keys = [vec![9], vec![0, 1, 255], vec![8]];
        let rows = database.read(&partition, &keys, Columns::HEAD, Consistency::Committed).await.unwrap();
        let head_only = Row { body: Vec::new(), log: Vec::new(), ..row };
        assert_eq!(rows, [None, Some(head_only), None], "in the order of the keys");
        assert_eq!(database.read(&partition, &[], Columns::ALL, Consistency::Linearizable).await.unwrap(), []);
        assert!(apply(&database, &partition, Vec::new()).await.is_empty());
    }

    pub async fn an_insert_is_refused_where_there_is_a_row(database: Subject) {
        let partition = partition();
        assert!(one(&database, &partition, put(b"a", Condition::Absent, b"1")).await);
        assert!(!one(&database, &partition, put(b"a", Condition::Absent, b"2")).await);
        assert_eq!(read(&database, &partition, b"a").await.unwrap().head, b"1");
    }

    pub async fn a_row_is_changed_only_at_its_version(database: Subject) {
        let partition = partition();
        assert!(!one(&database, &partition, put(b"a", Condition::Is(version()), b"0")).await, "there is no row");
        assert_eq!(read(&database, &partition, b"a").await, None);
        assert!(one(&database, &partition, put(b"a", Condition::Absent, b"1")).await);
        let first = read(&database, &partition, b"a").await.unwrap().version;
        assert!(!one(&database, &partition, put(b"a", Condition::Is(version()), b"2")).await);
        assert!(one(&database, &partition, put(b"a", Condition::Is(first), b"3")).await);
        assert!(!one(&database, &partition, put(b"a", Condition::Is(first), b"4")).await);
        assert_eq!(read(&database, &partition, b"a").await.unwrap().head, b"3");
    }

    pub async fn a_row_is_removed_only_at_its_version(database: Subject) {
        let partition = partition();
        let removal = |version| Write {
            key: b"a".to_vec(),
            condition: Condition::Is(version),
            change: Change::Delete,
            before: Positions::default(),
        };
        assert!(!one(&database, &partition, removal(version())).await, "there is no row");
        assert!(one(&database, &partition, put(b"a", Condition::Absent, b"1")).await);
        let row = read(&database, &partition, b"a").await.unwrap();
        assert!(!one(&database, &partition, removal(version())).await);
        assert!(one(&database, &partition, removal(row.version)).await);
        assert_eq!(read(&database, &partition, b"a").await, None);
        assert!(!one(&database, &partition, removal(row.version)).await);
        assert!(one(&database, &partition, put(b"a", Condition::Absent, b"2")).await, "its key is free again");
        assert_eq!(read(&database, &partition, b"a").await.unwrap().head, b"2");
    }

    pub async fn columns_that_are_not_written_stay(database: Subject) {
        let partition = partition();
        let mut before = Condition::Absent;
        let text = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
        for (body, log, seen) in [
            (Some("b1"), None, ("b1", "")),
            (None, Some("l1"), ("b1", "l1")),
            (None, None, ("b1", "l1")),
            (Some("b2"), Some("l2"), ("b2", "l2")),
            (Some(""), None, ("", "l2")),
        ] {
            let version = version();
            let change =
                Change::Put { version, head: b"h".to_vec(), body: text(body), log: text(log), positions: Positions::default() };
            let write = Write { key: b"a".to_vec(), condition: before, change, before: Positions::default() };
            assert!(one(&database, &partition, write).await);
            let row = read(&database, &partition, b"a").await.unwrap();
            assert_eq!((row.body.as_slice(), row.log.as_slice()), (seen.0.as_bytes(), seen.1.as_bytes()));
            before = Condition::Is(version);
        }
    }

    pub async fn each_write_of_a_call_stands_by_itself(database: Subject) {
        let partition = partition();
        assert!(one(&database, &partition, put(b"b", Condition::Absent, b"old")).await);
        let writes = vec![
            put(b"a", Condition::Absent, b"new"),
            put(b"b", Condition::Absent, b"new"),
            put(b"c", Condition::Is(version()), b"new"),
            put(b"d", Condition::Absent, b"new"),
        ];
        assert_eq!(apply(&database, &partition, writes).await, [true, false, false, true]);
        for (key, head) in [(b"a", Some("new")), (b"b", Some("old")), (b"c", None), (b"d", Some("new"))] {
            let row = read(&database, &partition, key).await;
            assert_eq!(row.map(|row| row.head), head.map(|head| head.as_bytes().to_vec()));
        }
    }

    pub async fn many_rows_are_written_and_read_at_once(database: Subject) {
        let partition = partition();
        let keys: Vec<Vec<u8>> = (0..1_500_u32).map(|number| number.to_be_bytes().to_vec()).collect();
        let insert = |key: &Vec<u8>| standing(put(key, Condition::Absent, key), Index::Second, key);
        let writes: Vec<Write> = keys.iter().map(insert).collect();
        assert_eq!(apply(&database, &partition, writes).await, vec![true; keys.len()]);
        let rows = database.read(&partition, &keys, Columns::HEAD, Consistency::Committed).await.unwrap();
        assert!(rows.iter().zip(&keys).all(|(row, key)| row.as_ref().is_some_and(|row| row.head == *key)));
        for index in [None, Some(Index::Second)] {
            let range = Range { index, ..Range::all(2_000) };
            let rows = database.range(&partition, &range, Columns::HEAD, Consistency::Committed).await.unwrap();
            assert!(rows.iter().map(|row| &row.head).eq(&keys), "{index:?}");
        }
    }

    pub async fn a_large_row_comes_back(database: Subject) {
        let partition = partition();
        let body: Vec<u8> = (0..330_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        let change = Change::Put {
            version: version(),
            head: Vec::new(),
            body: Some(body.clone()),
            log: None,
            positions: Positions::default(),
        };
        let write = Write { key: b"a".to_vec(), condition: Condition::Absent, change, before: Positions::default() };
        assert!(one(&database, &partition, write).await);
        assert_eq!(read(&database, &partition, b"a").await.unwrap().body, body);
    }

    pub async fn keys_are_in_the_order_of_their_bytes(database: Subject) {
        let partition = partition();
        let sorted: [&[u8]; 7] = [&[0], &[0, 0], &[0, 255], &[1], &[127, 9], &[128], &[255, 255]];
        for key in sorted.iter().rev() {
            assert!(one(&database, &partition, put(key, Condition::Absent, key)).await);
        }
        assert_eq!(keys(&database, &partition, Range::all(100)).await, sorted);
        let descending = Range { is_descending: true, ..Range::all(100) };
        assert!(keys(&database, &partition, descending).await.iter().rev().eq(&sorted));
    }

    pub async fn ranges_end_before_their_end_and_at_their_limit(database: Subject) {
        let partition = partition();
        for key in [b"a", b"b", b"c", b"d"] {
            let write = standing(put(key, Condition::Absent, b"1"), Index::First, key);
            assert!(one(&database, &partition, write).await);
        }
        for index in [None, Some(Index::First)] {
            let range = |from: &[u8], to: Option<&[u8]>, is_descending, limit| Range {
                index,
                from: from.to_vec(),
                to: to.map(<[u8]>::to_vec),
                is_descending,
                limit,
            };
            for (range, expected) in [
                (range(b"b", Some(b"d"), false, 9), vec!["b", "c"]),
                (range(&after(b"b".to_vec()), None, false, 9), vec!["c", "d"]),
                (range(b"", None, false, 3), vec!["a", "b", "c"]),
                (range(b"b", Some(b"d"), true, 9), vec!["c", "b"]),
                (range(b"", None, true, 2), vec!["d", "c"]),
                (range(b"x", None, false, 9), vec![]),
                (range(b"b", Some(b"b"), false, 9), vec![]),
            ] {
                let expected: Vec<_> = expected.into_iter().map(|key| key.as_bytes().to_vec()).collect();
                assert_eq!(keys(&database, &partition, range.clone()).await, expected, "{range:?}");
            }
        }
    }

    pub async fn partitions_are_apart(database: Subject) {
        let (one_partition, other) = (partition(), partition());
        for partition in [&one_partition, &other] {
            let write = standing(put(b"a", Condition::Absent, partition.as_str().as_bytes()), Index::First, b"p");
            assert!(one(&database, partition, write).await);
        }
        for partition in [&one_partition, &other] {
            assert_eq!(read(&database, partition, b"a").await.unwrap().head, partition.as_str().as_bytes());
            assert_eq!(keys(&database, partition, Range::of(Index::First, Vec::new(), None, 9)).await, [b"a"]);
        }
        assert_eq!(keys(&database, &partition(), Range::all(9)).await, Vec::<Vec<u8>>::new());
    }

    pub async fn positions_follow_their_row(database: Subject) {
        let partition = partition();
        let at = |index| Range::of(index, Vec::new(), None, 9);
        let insert = standing(standing(put(b"a", Condition::Absent, b"1"), Index::First, b"1"), Index::Third, b"9");
        let (mut stands, mut last) = (positions_of(&insert), Condition::Absent);
        let moves = [
            insert,
            standing(put(b"a", Condition::Absent, b"2"), Index::First, b"2"),
            standing(put(b"a", Condition::Absent, b"3"), Index::First, b"2"),
            standing(put(b"a", Condition::Absent, b"4"), Index::Fourth, b"4"),
        ];
        for (step, (write, expected)) in
            moves.into_iter().zip([[1, 0, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]]).enumerate()
        {
            let before = if step == 0 { Positions::default() } else { stands.clone() };
            stands = positions_of(&write);
            let refused = Write { condition: Condition::Is(version()), before: before.clone(), ..write.clone() };
            assert!(!one(&database, &partition, refused).await, "a refused write moves nothing");
            assert!(one(&database, &partition, Write { condition: last, before, ..write }).await);
            last = Condition::Is(read(&database, &partition, b"a").await.unwrap().version);
            for (index, count) in Index::ALL.into_iter().zip(expected) {
                let rows = database.range(&partition, &at(index), Columns::ALL, Consistency::Committed).await.unwrap();
                assert_eq!(rows.len(), count, "step {step}, {index:?}");
                assert!(rows.iter().all(|row| stands.at(index) == Some(&row.position) && row.key == b"a"));
            }
        }
        let removal = Write { key: b"a".to_vec(), condition: last, change: Change::Delete, before: stands };
        assert!(one(&database, &partition, removal).await);
        for index in Index::ALL {
            assert_eq!(keys(&database, &partition, at(index)).await, Vec::<Vec<u8>>::new());
        }
    }

    pub async fn an_index_is_in_the_order_of_its_bytes(database: Subject) {
        let partition = partition();
        let sorted: [&[u8]; 6] = [&[0, 9], &[0, 255], &[1], &[1, 0], &[127, 1], &[200]];
        let writes = sorted.iter().enumerate().rev().map(|(number, position)| {
            let key = [u8::try_from(9 - number).unwrap()];
            standing(put(&key, Condition::Absent, position), Index::Fourth, position)
        });
        assert_eq!(apply(&database, &partition, writes.collect()).await, [true; 6]);
        let range = Range::of(Index::Fourth, Vec::new(), None, 9);
        for is_descending in [false, true] {
            let range = Range { is_descending, ..range.clone() };
            let rows = database.range(&partition, &range, Columns::HEAD, Consistency::Committed).await.unwrap();
            let mut heads: Vec<_> = rows.into_iter().map(|row| row.head).collect();
            if is_descending {
                heads.reverse();
            }
            assert_eq!(heads, sorted);
        }
    }

    pub async fn an_index_gives_rows_and_keys_alone(database: Subject) {
        let partition = partition();
        let write = standing(put(b"a", Condition::Absent, b"head"), Index::Second, b"p1");
        assert!(one(&database, &partition, write).await);
        assert!(one(&database, &partition, put(b"b", Condition::Absent, b"head")).await, "it stands in no index");
        let range = Range::of(Index::Second, Vec::new(), None, 9);
        let found = database.range(&partition, &range, Columns::NONE, Consistency::Committed).await.unwrap();
        assert_eq!(found, [Row { key: b"a".to_vec(), position: b"p1".to_vec(), ..Row::default() }]);
        let found = database.range(&partition, &range, Columns::HEAD, Consistency::Committed).await.unwrap();
        let row = read(&database, &partition, b"a").await.unwrap();
        assert_eq!(found, [Row { position: b"p1".to_vec(), ..row }]);
    }

    pub async fn a_row_without_condition_is_overwritten_and_removed(database: Subject) {
        let partition = partition();
        for head in [b"1", b"2"] {
            assert!(one(&database, &partition, put(b"a", Condition::Any, head)).await);
            assert_eq!(read(&database, &partition, b"a").await.unwrap().head, head);
        }
        let removal =
            || Write { key: b"a".to_vec(), condition: Condition::Any, change: Change::Delete, before: Positions::default() };
        assert!(one(&database, &partition, removal()).await);
        assert_eq!(read(&database, &partition, b"a").await, None);
        assert!(one(&database, &partition, removal()).await, "what is gone can be removed");
    }

    pub async fn of_many_writers_of_one_version_one_wins(database: Subject) {
        let partition = partition();
        let mut condition = Condition::Absent;
        for round in 0..5 {
            let writers = (0..6).map(|_| {
                let (database, partition) = (Arc::clone(&database), partition.clone());
                tokio::spawn(async move { try_alone(&database, &partition, put(b"a", condition, b"x")).await })
            });
            let won = join_all(writers).await.into_iter().filter(|won| *won.as_ref().unwrap()).count();
            assert_eq!(won, 1, "round {round}");
            condition = Condition::Is(read(&database, &partition, b"a").await.unwrap().version);
        }
    }

    /// Contention may leave an outcome unknown: it is read back by the version, and repeated where it was not applied.
    async fn try_alone(database: &Subject, partition: &Partition, write: Write) -> bool {
        let Change::Put { version, .. } = write.change else { return false };
        for _ in 0..50 {
            let outcome = match database.write(partition, vec![write.clone()]).await {
                Ok(mut outcomes) => outcomes.remove(0),
                Err(error) => Outcome::Failed(error),
            };
            match outcome {
                Outcome::Applied => return true,
                Outcome::Refused => break,
                Outcome::Failed(_) => {}
            }
        }
        let keys = [write.key];
        let read = database.read(partition, &keys, Columns::HEAD, Consistency::Linearizable).await.unwrap().remove(0);
        read.is_some_and(|row| row.version == version)
    }

    pub async fn writers_of_different_rows_do_not_lose_writes(database: Subject) {
        let partition = partition();
        let writers = (0..8_u8).map(|number| {
            let (database, partition) = (Arc::clone(&database), partition.clone());
            tokio::spawn(async move { try_alone(&database, &partition, put(&[number], Condition::Absent, &[number])).await })
        });
        assert!(join_all(writers).await.into_iter().all(|won| won.unwrap()));
        assert_eq!(keys(&database, &partition, Range::all(100)).await.len(), 8);
    }

    pub async fn a_live_database_answers_a_ping(database: Subject) {
        database.ping().await.unwrap();
    }
}
