//! Databases of earlier versions are carried over with everything that is in them.

use domain::{
    Access, AccessKey, AccessKeyId, Attempt, Namespace, NewTimer, Next, RetryPolicy, Span, Status, Timer, TimerId, Timestamp,
};
use store::{Changed, Created, DueStore, Filter, HealthStore, KeyStore, ListQuery, Order, Period, Settlement, Sort, TimerStore};
use store_conformance::{NOW, secs, timer};

use super::{LATER, Place, own};
use crate::SqliteStore;

const VERSION_1: &str = concat!(include_str!("../../migrations/0001_timers.sql"), include_str!("version_1.sql"));

/// When the timer that waits for its retry is due.
const RETRY_AT: Timestamp = NOW.saturating_add(Span::from_secs(7200));

/// A database as version 1 left it.
fn version_1() -> Place {
    let place = Place::new();
    place.shell().execute_batch(&format!("PRAGMA journal_mode = WAL;\n{VERSION_1}")).unwrap();
    place
}

/// The same timers as version 2 left them, with what it knew more: an attempt and a key.
fn version_2() -> Place {
    let place = version_1();
    place
        .shell()
        .execute_batch(concat!(include_str!("../../migrations/0002_attempts_and_keys.sql"), include_str!("version_2.sql")))
        .unwrap();
    place
}

/// And as version 3 left them.
fn version_3() -> Place {
    const APPLIED: &str = "INSERT INTO schema_version VALUES (3, 1749992400000000);";
    let place = version_2();
    place.shell().execute_batch(&format!("{}{APPLIED}", include_str!("../../migrations/0003_nodes.sql"))).unwrap();
    place
}

/// And as version 4 left them.
fn version_4() -> Place {
    const APPLIED: &str = "INSERT INTO schema_version VALUES (4, 1749992400000000);";
    let place = version_3();
    place.shell().execute_batch(&format!("{}{APPLIED}", include_str!("../../migrations/0004_by_time.sql"))).unwrap();
    place
}

/// A database that the program of version 4 filled.
fn filled_by_version_4() -> Place {
    let place = Place::new();
    place.shell().execute_batch(&format!("PRAGMA journal_mode = WAL;\n{}", include_str!("version_4.sql"))).unwrap();
    place
}

/// What was registered with version 1, in the order of [`Status::ALL`].
fn registered() -> [NewTimer; 5] {
    let policy = r#"{"max_retries":3,"initial_interval":"1s","backoff_multiplier":2.0,"max_interval":"60s"}"#;
    let failed = timer("https://c.example/x")
        .key("order-7")
        .due_in(secs(3))
        .payload(r#"{"é": 1.0}"#)
        .header("X-A", "1")
        .metadata(r#"{"team":"é"}"#)
        .correlation_id("c-7")
        .retry_policy(RetryPolicy::from_json(policy).unwrap())
        .at_most_once();
    [
        timer("http://a.example/").numbered(1).due_in(secs(1)).payload(r#"{"n":1}"#),
        timer("http://b.example/").namespace("tenant").key("order-2").after(secs(2)),
        timer("http://a.example/").numbered(3).publishing("orders.late").payload("null").due_in(secs(3)),
        failed,
        timer("http://a.example/").namespace("tenant").key("order-5").due_in(secs(5)),
    ]
    .map(|draft| draft.build())
}

fn ids() -> [TimerId; 5] {
    registered().map(|new| new.definition.id)
}

async fn get(store: &SqliteStore, id: TimerId) -> Timer {
    store.get(id).await.unwrap().unwrap()
}

#[tokio::test]
async fn every_timer_of_version_1_is_carried_over_as_it_was() {
    let place = version_1();
    let details = [
        (1, Some("HTTP 503"), None, NOW),
        (1, None, None, NOW),
        (1, None, Some(LATER), LATER),
        (1, Some("HTTP 500"), Some(LATER), LATER),
        (0, None, None, LATER),
    ];
    // The second time there is nothing left to do.
    for _ in 0..2 {
        let store = place.open();
        for ((new, status), (attempt, error, executed_at, updated_at)) in registered().into_iter().zip(Status::ALL).zip(details) {
            let expected = Timer {
                execute_at: new.execute_at,
                status,
                attempt,
                last_error: error.map(str::to_owned),
                executed_at,
                created_at: NOW,
                updated_at,
                revision: 1,
                pause: None,
                definition: new.definition,
            };
            assert_eq!(get(&store, expected.id()).await, expected);
            assert_eq!(store.attempts(expected.id()).await.unwrap(), []);
        }
        assert_eq!(store.keys().await.unwrap(), []);
    }
    let checked: String = place.shell().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(checked, "ok");
}

#[tokio::test]
async fn the_timers_of_version_1_go_on_with_all_that_is_new() {
    let place = version_1();
    let store = place.open();
    let [pending, executing, completed, failed, canceled] = ids();

    let orders = Filter { key_prefix: Some("order-".to_owned()), ..Filter::default() };
    let found = store.list(&ListQuery { filter: orders, ..ListQuery::default() }).await.unwrap();
    let mut found: Vec<_> = found.timers.iter().map(|timer| timer.id).collect();
    found.sort_unstable();
    assert_eq!(found, [executing, canceled, failed]);

    let shard_leases = own(&store, 2).await;
    let left = store.expired_claims(&shard_leases, 10).await.unwrap();
    assert_eq!(left.iter().map(|claimed| claimed.entry.id).collect::<Vec<_>>(), [executing]);
    let attempt = Attempt {
        number: 1,
        started_at: NOW,
        took: Span::ZERO,
        outcome: "lost".to_owned(),
        status: None,
        detail: None,
        node: None,
        answer: None,
    };
    let settlement = Settlement { attempt: Some(attempt.clone()), ..left[0].settle(Next::Completed { at: LATER }) };
    assert_eq!(store.settle(&[settlement]).await.unwrap(), [true]);
    assert_eq!(store.attempts(executing).await.unwrap(), [attempt]);

    let Changed::Done(reopened) = store.reopen(failed, None, RETRY_AT).await.unwrap() else { panic!("it had failed") };
    assert_eq!((reopened.status, reopened.revision), (Status::Pending, 2));
    let due = store.due(&[store::ShardCursor { shard: domain::Shard(0), after: None }], RETRY_AT, 10).await.unwrap();
    assert_eq!(due.iter().map(|entry| (entry.at, entry.id)).collect::<Vec<_>>(), [(RETRY_AT, pending), (RETRY_AT, failed)]);

    let all = [pending, executing, completed, failed, canceled];
    assert_eq!(store.cancel_all(&all, LATER).await.unwrap(), [true, false, false, true, false]);
    let key = AccessKey {
        id: AccessKeyId(pending.as_uuid()),
        name: "new".to_owned(),
        hash: [7; 32],
        access: Access::FULL,
        created_at: LATER,
        revoked_at: None,
    };
    assert!(store.add_key(&key).await.unwrap());
    assert_eq!(store.purge(RETRY_AT, 10).await.unwrap(), 5);
    assert_eq!(store.attempts(executing).await.unwrap(), []);
    assert_eq!(store.count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 0);
}

#[tokio::test]
async fn a_create_that_is_repeated_after_the_upgrade_is_the_same_timer() {
    for place in [version_1(), version_2(), version_3(), version_4()] {
        let keyed: Vec<_> = registered().into_iter().filter(|new| new.definition.key.is_some()).collect();
        let repeated = place.open().create(keyed).await.unwrap();
        assert_eq!(repeated.len(), 3);
        assert!(repeated.iter().all(|created| matches!(created, Created::Existing(_))), "{repeated:?}");
    }
}

#[tokio::test]
async fn what_the_program_of_version_4_left_is_carried_over_and_goes_on() {
    let place = filled_by_version_4();
    // The second time there is nothing left to do.
    for _ in 0..2 {
        let store = place.open();
        store_conformance::version_4::is_carried_over(&store).await;
        store_conformance::version_4::knows_repeated_creates(&store).await;
    }
    store_conformance::version_4::goes_on(&place.open()).await;
    let checked: String = place.shell().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(checked, "ok");
}

#[tokio::test]
async fn what_version_4_said_of_timers_is_said_as_before_beside_their_options() {
    for (place, timers) in [(version_4(), 5), (filled_by_version_4(), 11)] {
        is_said_as_before(&place, timers);
    }
}

fn is_said_as_before(place: &Place, timers: usize) {
    let shown = || -> Vec<String> {
        let shell = place.shell();
        let columns = "json_array(id, namespace, key, created_at, updated_at, execute_at, callback_type, callback_config, status, attempt, \
                       last_error, next_attempt_at, executed_at, metadata, correlation_id, retry_policy, delivery, revision)";
        let mut statement = shell.prepare(&format!("SELECT {columns} FROM timers ORDER BY id")).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    let before = shown();
    assert!(before.len() == timers && before.iter().any(|timer| timer.contains("at_most_once")), "{before:#?}");
    drop(place.open());
    assert_eq!(shown(), before);
    let options: i64 = place.shell().query_row("SELECT count(options) FROM timers", [], |row| row.get(0)).unwrap();
    assert_eq!(options, 0);
}

#[tokio::test]
async fn the_timers_of_every_version_are_counted_and_listed_by_time() {
    for place in [version_1(), version_2(), version_3(), version_4()] {
        are_counted_and_listed_by_time(&place).await;
    }
}

async fn are_counted_and_listed_by_time(place: &Place) {
    let store = place.open();
    let [pending, executing, completed, failed, canceled] = ids();
    for (status, namespace, timers) in [
        (None, None, 5),
        (None, Some("default"), 3),
        (None, Some("tenant"), 2),
        (Some(Status::Pending), Some("default"), 1),
        (Some(Status::Executing), Some("tenant"), 1),
        (Some(Status::Completed), None, 1),
        (Some(Status::Failed), Some("default"), 1),
        (Some(Status::Canceled), Some("tenant"), 1),
        (Some(Status::Canceled), Some("default"), 0),
    ] {
        let namespace = namespace.map(|name| Namespace::parse(name).unwrap());
        let filter =
            Filter { status: status.into_iter().collect(), namespaces: namespace.into_iter().collect(), ..Filter::default() };
        assert_eq!(store.count(&filter, store::SEARCH_BUDGET).await.unwrap(), timers, "{filter:?}");
    }
    // The first waits for its retry, long after all the others; two are due at the same time.
    let query = ListQuery { sort: Sort::ExecuteAt, order: Order::Ascending, limit: 2, ..ListQuery::default() };
    let mut listed = Vec::new();
    let mut after = None;
    loop {
        let page = store.list(&ListQuery { after, ..query.clone() }).await.unwrap();
        listed.extend(page.timers.iter().map(|timer| timer.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(listed, [pending, executing, completed, failed, canceled]);
}

/// Rows of `due` and `outcome` that earlier versions wrote do not say when their timers were created.
#[tokio::test]
async fn what_earlier_versions_left_is_found_by_when_it_was_created() {
    let place = filled_by_version_4();
    let store = place.open();
    let mut timers = Vec::new();
    for listed in store.list(&ListQuery::default()).await.unwrap().timers {
        timers.push(get(&store, listed.id).await);
    }
    assert_eq!(timers.len(), 11);
    let (newest, oldest) = (timers[0].created_at, timers[10].created_at);
    let due = Period { from: Some(Timestamp::from_micros(0)), to: None };
    let periods = [
        Period::default(),
        Period { from: Some(oldest), to: Some(newest) },
        Period { from: Some(newest), to: None },
        Period { from: None, to: Some(oldest.saturating_add(Span::from_micros(1))) },
        Period { from: None, to: Some(oldest) },
    ];
    let namespaces = [vec![], vec![timers[0].definition.namespace.clone()]];
    for (created, namespaces) in periods.into_iter().flat_map(|period| namespaces.clone().map(|named| (period, named))) {
        for status in [vec![], vec![Status::Pending, Status::Failed], vec![Status::Executing]] {
            let filter = Filter { due, created, namespaces: namespaces.clone(), status, ..Filter::default() };
            is_found(&store, &timers, &filter).await;
        }
    }
}

/// Whether lists in every order, page by page, and a count find what matches.
async fn is_found(store: &SqliteStore, timers: &[Timer], filter: &Filter) {
    for (sort, order) in [Sort::CreatedAt, Sort::ExecuteAt].into_iter().flat_map(|sort| [(sort, false), (sort, true)]) {
        let key = |timer: &Timer| if sort == Sort::CreatedAt { timer.created_at } else { timer.execute_at };
        let mut wanted: Vec<_> = timers.iter().filter(|timer| filter.fits(timer)).map(|timer| (key(timer), timer.id())).collect();
        wanted.sort_unstable();
        if order {
            wanted.reverse();
        }
        let order = if order { Order::Descending } else { Order::Ascending };
        let mut query = ListQuery { filter: filter.clone(), sort, order, limit: 2, ..ListQuery::default() };
        let mut found = Vec::new();
        loop {
            let page = store.list(&query).await.unwrap();
            found.extend(page.timers.iter().map(|timer| timer.id));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        assert_eq!(found, wanted.iter().map(|(_, id)| *id).collect::<Vec<_>>(), "{query:?}");
        assert_eq!(store.count(filter, store::SEARCH_BUDGET).await.unwrap(), wanted.len() as u64, "{filter:?}");
    }
}

#[tokio::test]
async fn what_later_versions_knew_is_carried_over_and_the_owner_is_forgotten() {
    for place in [version_2(), version_3(), version_4()] {
        is_carried_over_without_its_owner(&place).await;
    }
}

async fn is_carried_over_without_its_owner(place: &Place) {
    // The second time there is nothing left to do.
    for node in [2, 3] {
        let store = place.open();
        let [pending, executing, ..] = ids();
        assert_eq!(get(&store, pending).await.status, Status::Pending);
        let attempts = store.attempts(pending).await.unwrap();
        assert_eq!(
            attempts.iter().map(|attempt| (attempt.number, attempt.outcome.as_str())).collect::<Vec<_>>(),
            [(1, "status_5xx")]
        );
        assert_eq!(store.keys().await.unwrap().iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["ops"]);

        let before = store.cluster().await.unwrap();
        assert_eq!((before.members, before.shards[0].owner), (vec![], None));
        let shard_leases = own(&store, node).await;
        assert!(shard_leases[0].epoch > before.shards[0].epoch);
        let left = store.expired_claims(&shard_leases, 10).await.unwrap();
        assert_eq!(left.iter().map(|claimed| claimed.entry.id).collect::<Vec<_>>(), [executing]);
    }
    let columns: i64 = place.shell().query_row("SELECT count(*) FROM pragma_table_info('shard')", [], |row| row.get(0)).unwrap();
    assert_eq!(columns, 3);
}
