//! What is counted without counting agrees with what is there.

use domain::{Missed, Next, Span, Status};
use store::{COUNTED_MAX, Changed, DueStore, Filter, TimerStore};
use store_conformance::timer;

use super::{LATER, Place, claim, create, numbered, own};
use crate::SqliteStore;

/// Every number that is kept, beside the same number counted one by one.
fn assert_agrees(place: &Place) {
    let rows = |sql: &str| -> Vec<(String, String, i64)> {
        let shell = place.shell();
        let mut statement = shell.prepare(sql).unwrap();
        statement.raw_query().mapped(|row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).collect::<Result<_, _>>().unwrap()
    };
    let kept = rows("SELECT namespace, status, timers FROM tally WHERE timers <> 0 ORDER BY 1, 2");
    let counted = rows("SELECT namespace, status, count(*) FROM timers GROUP BY 1, 2 ORDER BY 1, 2");
    assert_eq!(kept, counted);
    // So does the moment of creation, which stands beside where a timer stands.
    let otherwise = rows(
        "SELECT 'created_at', hex(s.id), s.created_at
         FROM (SELECT id, created_at FROM due UNION ALL SELECT id, created_at FROM outcome UNION ALL SELECT id, created_at FROM paused) s
         JOIN definition d ON d.id = s.id
         WHERE coalesce(s.created_at, 0) <> d.created_at",
    );
    assert_eq!(otherwise, []);
}

/// Timers of two namespaces, with keys, so that they can be met again.
fn keyed(namespace: &str, numbers: std::ops::Range<u32>) -> Vec<domain::NewTimer> {
    let one =
        |number| timer("http://a.example/").namespace(namespace).key(&format!("k-{number}")).due_in(Span::from_secs(number));
    numbers.map(|number| one(number).build()).collect()
}

async fn pass_through_everything(store: &SqliteStore, place: &Place) {
    let shard_leases = own(store, 1).await;
    for namespace in ["default", "tenant"] {
        let timers = create(store, keyed(namespace, 0..20)).await;
        assert_agrees(place);
        let claimed = claim(store, &shard_leases, &timers[..12]).await;
        assert_agrees(place);
        let next = |number: usize| match number % 4 {
            0 => Next::Completed { at: LATER },
            1 => Next::Failed { at: LATER, error: "HTTP 500".to_owned() },
            2 => Next::Pending { at: LATER, attempt: 1, error: Some("HTTP 503".to_owned()) },
            _ => Next::Again { at: LATER },
        };
        let settlements: Vec<_> = claimed[..8].iter().enumerate().map(|(number, claimed)| claimed.settle(next(number))).collect();
        assert_eq!(store.settle(&settlements).await.unwrap(), [true; 8]);
        // The second time nothing counts.
        assert_eq!(store.settle(&settlements).await.unwrap(), [false; 8]);
        assert_agrees(place);
        assert!(matches!(store.reopen(timers[1].id(), None, LATER).await.unwrap(), Changed::Done(_)));
        assert!(matches!(store.cancel(timers[2].id(), None, LATER).await.unwrap(), Changed::Done(_)));
        assert!(matches!(store.cancel(timers[8].id(), None, LATER).await.unwrap(), Changed::WrongStatus(_)));
        for timer in &timers[12..17] {
            assert!(matches!(store.pause(timer.id(), None, None, LATER).await.unwrap(), Changed::Done(_)));
        }
        assert_agrees(place);
        assert!(matches!(store.resume(timers[12].id(), None, Missed::Fire, LATER).await.unwrap(), Changed::Done(_)));
        assert!(matches!(store.resume(timers[13].id(), None, Missed::Expire, LATER).await.unwrap(), Changed::Done(_)));
        assert_agrees(place);
        let rest: Vec<_> = timers[15..].iter().map(|timer| timer.id()).collect();
        store.cancel_all(&rest, LATER).await.unwrap();
        let mut changed = store.get(timers[14].id()).await.unwrap().unwrap();
        changed.execute_at = LATER;
        assert!(matches!(store.update(&changed, LATER).await.unwrap(), Changed::Done(_)));
        assert_agrees(place);
        // What has ended gets a new life, the others take what is new or refuse it.
        let again = keyed(namespace, 0..20).into_iter().map(|mut new| {
            new.on_conflict = domain::OnConflict::Replace;
            new
        });
        store.create(again.collect()).await.unwrap();
        assert_agrees(place);
    }
    let timers = create(store, numbered(0..5)).await;
    let ids: Vec<_> = timers.iter().map(|timer| timer.id()).collect();
    store.cancel_all(&ids, LATER).await.unwrap();
    assert_eq!(store.purge(LATER.saturating_add(Span::from_secs(1)), 3).await.unwrap(), 3);
    assert_agrees(place);
}

#[tokio::test]
async fn whatever_happens_to_timers_their_number_is_known() {
    let place = Place::new();
    let store = place.open();
    pass_through_everything(&store, &place).await;
    drop(store);
    let store = place.open();
    assert_agrees(&place);
    let all = store.count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap();
    assert_eq!(all, 42);
}

#[tokio::test]
async fn many_are_counted_as_exactly_as_few() {
    let place = Place::new();
    drop(place.open());
    // Only the numbers matter, so the timers themselves are left out.
    let many = COUNTED_MAX + 1;
    place.shell().execute("INSERT INTO tally VALUES ('default', 'pending', ?1)", [i64::try_from(many).unwrap()]).unwrap();
    let store = place.open();
    create(&store, numbered(0..10)).await;
    let tenant = timer("http://a.example/").namespace("tenant").due_in(Span::from_secs(1)).build();
    create(&store, vec![tenant]).await;
    let pending = |namespace: Option<&str>| Filter {
        status: vec![Status::Pending],
        namespaces: namespace.map(|name| domain::Namespace::parse(name).unwrap()).into_iter().collect(),
        ..Filter::default()
    };
    assert_eq!(store.count(&pending(Some("default")), store::SEARCH_BUDGET).await.unwrap(), many + 10);
    assert_eq!(store.count(&pending(Some("tenant")), store::SEARCH_BUDGET).await.unwrap(), 1);
    assert_eq!(store.count(&pending(None), store::SEARCH_BUDGET).await.unwrap(), many + 11);
}

#[tokio::test]
async fn a_namespace_that_is_empty_again_leaves_nothing_behind() {
    let place = Place::new();
    let store = place.open();
    let timers = create(&store, keyed("tenant", 0..3)).await;
    let ids: Vec<_> = timers.iter().map(|timer| timer.id()).collect();
    store.cancel_all(&ids, LATER).await.unwrap();
    assert_eq!(store.purge(LATER.saturating_add(Span::from_secs(1)), 10).await.unwrap(), 3);
    let rows: i64 =
        place.shell().query_row("SELECT count(*) FROM tally WHERE namespace = 'tenant'", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 0);
}
