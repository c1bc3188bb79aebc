//! Ranges pass over what is noted to be empty, and nothing that lives is passed over.

use std::sync::Arc;

use store_cassandra::Cassandra;
use store_partitioned::{
    Change, Columns, Condition, Consistency, Database, Index, Outcome, Partition, Positions, Range, Version, Write,
};
use uuid::Uuid;

use crate::apart::options;

fn version() -> Version {
    Version(Uuid::now_v7().as_u128())
}

fn put(key: &[u8], position: &[u8], version: Version) -> Write {
    let positions = Positions::default().with(Index::First, position.to_vec());
    let change = Change::Put { version, head: Vec::new(), body: None, log: None, positions };
    Write { key: key.to_vec(), condition: Condition::Absent, change, before: Positions::default() }
}

async fn apply(database: &Arc<Cassandra>, partition: &Partition, writes: Vec<Write>) {
    let outcomes = database.write(partition, writes).await.unwrap();
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Applied)), "{outcomes:?}");
}

async fn found(database: &Arc<Cassandra>, partition: &Partition, to: Option<&[u8]>) -> Vec<Vec<u8>> {
    let range = Range::of(Index::First, Vec::new(), to.map(<[u8]>::to_vec), 5_000);
    let rows = database.range(partition, &range, Columns::NONE, Consistency::Committed).await.unwrap();
    rows.into_iter().map(|row| row.position).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_within_an_empty_stretch_is_seen_by_every_node() {
    let options = options();
    let partition = Partition::new(format!("gaps-{}", Uuid::now_v7().simple()));
    let one = Arc::new(Cassandra::connect(&options).await.unwrap());
    let other = Arc::new(Cassandra::connect(&options).await.unwrap());
    // Both know the note as it is before there is a stretch.
    apply(&one, &partition, vec![put(b"one", b"w", version())]).await;
    apply(&other, &partition, vec![put(b"other", b"x", version())]).await;
    assert_eq!(found(&one, &partition, Some(b"m")).await, Vec::<Vec<u8>>::new());

    // So many are removed that the stretch before `m` is noted.
    let rows: Vec<(Vec<u8>, Version)> = (0..1_100_u32).map(|number| (number.to_be_bytes().to_vec(), version())).collect();
    let position = |key: &[u8]| [b"p", key].concat();
    apply(&one, &partition, rows.iter().map(|(key, version)| put(key, &position(key), *version)).collect()).await;
    let removals = rows.iter().map(|(key, version)| Write {
        key: key.clone(),
        condition: Condition::Is(*version),
        change: Change::Delete,
        before: Positions::default().with(Index::First, position(key)),
    });
    apply(&one, &partition, removals.collect()).await;
    assert_eq!(found(&one, &partition, None).await, [b"w", b"x"]);

    // The other one knows nothing of that.
    apply(&other, &partition, vec![put(b"late", b"c", version())]).await;
    assert_eq!(found(&one, &partition, None).await, [b"c", b"w", b"x"]);
    apply(&one, &partition, vec![put(b"later", b"d", version()), put(b"earlier", b"a", version())]).await;
    for database in [&one, &other] {
        assert_eq!(found(database, &partition, None).await, [b"a", b"c", b"d", b"w", b"x"]);
        assert_eq!(found(database, &partition, Some(b"d")).await, [b"a", b"c"]);
    }
}
