use std::sync::{
    Arc, Mutex,
    mpsc::{Receiver, SyncSender, sync_channel},
};

use futures_util::{FutureExt, future::join_all};
use rusqlite::Connection;
use store::{DueStore, Filter, HealthStore, StoreError, TimerStore};
use store_conformance::timer;

use super::{Place, claim, create, numbered, own};
use crate::{failure::Failure, stamp, tally::Tally, writer::Write};

/// What the writer's connection is set to.
pub struct Settings;

impl Write for Settings {
    type Answer = Vec<(&'static str, String)>;
    const NAME: &'static str = "settings";

    fn rows(&self) -> usize {
        0
    }

    fn run(&self, connection: &Connection, _: &mut Tally) -> Result<Self::Answer, Failure> {
        let value = |name| {
            let value = connection.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))?;
            Ok((
                name,
                match value {
                    rusqlite::types::Value::Integer(number) => number.to_string(),
                    rusqlite::types::Value::Text(text) => text,
                    other => format!("{other:?}"),
                },
            ))
        };
        ["journal_mode", "synchronous", "page_size"].into_iter().map(value).collect()
    }
}

/// Lets the database grow by so many pages and no more, as a full disk does.
struct RoomFor(i64);

impl Write for RoomFor {
    type Answer = ();
    const NAME: &'static str = "room_for";

    fn rows(&self) -> usize {
        0
    }

    fn run(&self, connection: &Connection, _: &mut Tally) -> Result<(), Failure> {
        let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
        Ok(connection.query_row(&format!("PRAGMA max_page_count = {}", pages + self.0), [], |_| Ok(()))?)
    }
}

/// Fails after it has already changed something.
enum Faulty {
    Fails,
    Panics,
}

impl Write for Faulty {
    type Answer = ();
    const NAME: &'static str = "faulty";

    fn rows(&self) -> usize {
        1
    }

    fn run(&self, connection: &Connection, _: &mut Tally) -> Result<(), Failure> {
        connection.execute("DELETE FROM definition", [])?;
        connection.execute("DELETE FROM due", [])?;
        match self {
            Self::Fails => Ok(connection.execute("DELETE FROM nothing_that_exists", []).map(drop)?),
            Self::Panics => panic!("a fault in a request"),
        }
    }
}

/// Keeps the writer busy until the other end is dropped, so that what comes meanwhile is one batch.
struct Hold(Mutex<Receiver<()>>);

impl Hold {
    fn new() -> (SyncSender<()>, Self) {
        let (release, released) = sync_channel(0);
        (release, Self(Mutex::new(released)))
    }
}

impl Write for Hold {
    type Answer = ();
    const NAME: &'static str = "hold";

    fn rows(&self) -> usize {
        0
    }

    fn run(&self, _: &Connection, _: &mut Tally) -> Result<(), Failure> {
        // Returns once all senders are gone.
        let _ = self.0.lock().unwrap().recv();
        Ok(())
    }
}

/// Notes that it was run.
struct Noted {
    name: &'static str,
    is_background: bool,
    notes: Arc<Mutex<Vec<&'static str>>>,
}

impl Write for Noted {
    type Answer = ();
    const NAME: &'static str = "noted";

    fn rows(&self) -> usize {
        1
    }

    fn is_background(&self) -> bool {
        self.is_background
    }

    fn run(&self, _: &Connection, _: &mut Tally) -> Result<(), Failure> {
        self.notes.lock().unwrap().push(self.name);
        Ok(())
    }
}

#[tokio::test]
async fn what_is_done_in_the_background_waits_for_all_else_and_has_its_own_commit() {
    let place = Place::new();
    let store = place.open();
    let notes = Arc::new(Mutex::new(Vec::new()));
    let noted = |name, is_background| store.writer.write(Noted { name, is_background, notes: Arc::clone(&notes) });
    let before = store.commits();
    let (release, hold) = Hold::new();
    let queued =
        join_all([("page", true), ("claim", false), ("settle", false)].map(|(name, background)| noted(name, background)));
    let (_, answers, ()) =
        tokio::join!(biased; store.writer.write(hold), tokio::task::unconstrained(queued), async { drop(release) });
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(*notes.lock().unwrap(), ["claim", "settle", "page"]);
    let commits = store.commits() - before;
    assert!((2..=3).contains(&commits), "the page has a commit of its own, of {commits}");
}

#[tokio::test]
async fn many_creates_at_once_share_a_few_commits() {
    let place = Place::new();
    let store = place.open();
    let before = store.commits();

    let (release, hold) = Hold::new();
    let creates = join_all(numbered(0..500).into_iter().map(|new| store.create(vec![new])));
    let (_, answers, ()) =
        tokio::join!(biased; store.writer.write(hold), tokio::task::unconstrained(creates), async { drop(release) });

    assert!(answers.iter().all(Result::is_ok));
    let commits = store.commits() - before;
    assert!((1..=3).contains(&commits), "500 creates took {commits} commits");
    assert_eq!(store.count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 500);
}

#[tokio::test]
async fn a_transaction_that_changes_nothing_writes_nothing() {
    let place = Place::new();
    let store = place.open();
    let timers = create(&store, numbered(0..1)).await;
    let log_bytes = || std::fs::metadata(place.directory.path().join("timers.db-wal")).unwrap().len();
    store.cancel(timers[0].id(), None, super::LATER).await.unwrap();
    let before = (log_bytes(), stamp::read(&place.shell()).unwrap());

    store.cancel(timers[0].id(), None, super::LATER).await.unwrap();
    store.purge(store_conformance::NOW, 10).await.unwrap();
    assert_eq!((log_bytes(), stamp::read(&place.shell()).unwrap()), before);

    store.probe().await.unwrap();
    let after_probe = log_bytes();
    assert!(after_probe > before.0, "a probe must write");
    create(&store, numbered(1..2)).await;
    assert!(log_bytes() > after_probe);
}

#[tokio::test]
async fn a_request_that_fails_or_panics_does_not_spoil_its_neighbours() {
    let place = Place::new();
    let store = place.open();
    create(&store, numbered(0..10)).await;

    let (release, hold) = Hold::new();
    let (_, left, failed, middle, panicked, right, ()) = tokio::join!(
        biased;
        store.writer.write(hold),
        store.create(numbered(10..20)),
        store.writer.write(Faulty::Fails),
        store.create(numbered(20..30)),
        store.writer.write(Faulty::Panics),
        store.create(numbered(30..40)),
        async { drop(release) },
    );

    assert!(left.is_ok() && middle.is_ok() && right.is_ok());
    assert!(matches!(failed, Err(StoreError::Unavailable(_))));
    assert!(matches!(panicked, Err(StoreError::Corrupt(reason)) if reason.as_str().contains("a fault in a request")));
    assert_eq!(store.count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 40);
    create(&store, numbered(40..50)).await;
}

#[tokio::test]
async fn a_read_that_panics_leaves_its_reader_alive() {
    let place = Place::new();
    let store = place.open();
    for _ in 0..10 {
        let read = store.for_callers.read::<(), _>(|_| panic!("a fault in a read")).await;
        assert!(matches!(read, Err(StoreError::Unavailable(_))));
    }
    assert_eq!(store.count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 0);
}

#[tokio::test]
async fn a_full_disk_stops_only_what_needs_room() {
    let place = Place::new();
    let store = place.open();
    let shard_leases = own(&store, 1).await;
    let timers = create(&store, numbered(0..100)).await;
    store.writer.write(RoomFor(20)).await.unwrap();

    let large = format!("\"{}\"", "x".repeat(100_000));
    let too_large = timer("http://a.example/").numbered(1000).payload(&large).build();
    let (release, hold) = Hold::new();
    let (_, full, small, ()) = tokio::join!(
        biased;
        store.writer.write(hold),
        store.create(vec![too_large.clone()]),
        store.create(numbered(100..101)),
        async { drop(release) },
    );

    assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
    assert!(small.is_ok(), "what fits is written, though it came at the same time: {small:?}");
    assert_eq!(store.get(too_large.definition.id).await.unwrap(), None);
    assert_eq!(store.count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 101);
    assert_eq!(claim(&store, &shard_leases, &timers).await.len(), 100, "what is there can still be delivered");

    store.writer.write(RoomFor(1000)).await.unwrap();
    create(&store, vec![too_large]).await;
    let checked: String = place.shell().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(checked, "ok");
}

#[tokio::test]
async fn what_is_queued_is_still_written_when_the_store_is_dropped() {
    let place = Place::new();
    let store = place.open();
    // Sent, and then left alone by its caller. A few may be answered that soon.
    let left_alone = numbered(0..100).into_iter().filter(|new| store.create(vec![new.clone()]).now_or_never().is_none()).count();
    assert!(left_alone > 50, "{left_alone}");
    drop(store);
    assert_eq!(place.open().count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 100);
}

#[tokio::test]
async fn a_writer_that_has_stopped_is_not_available() {
    let place = Place::new();
    let mut store = place.open();
    store.writer.stop();
    let refused = store.create(numbered(0..1)).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    assert_eq!(store.count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scheduler_reads_while_callers_keep_all_their_readers_busy() {
    let place = Place::new();
    let store = Arc::new(place.open());
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let busy: Vec<_> = (0..10)
        .map(|_| {
            let (store, released) = (Arc::clone(&store), Arc::clone(&released));
            tokio::spawn(async move { store.for_callers.read(move |_| Ok(released.lock().unwrap().recv().is_err())).await })
        })
        .collect();

    store.ping().await.unwrap();
    assert_eq!(store.due(&[store::ShardCursor { shard: domain::Shard(0), after: None }], super::LATER, 10).await.unwrap(), []);

    drop(release);
    for read in busy {
        assert!(read.await.unwrap().unwrap());
    }
}
