//! What a search does with what the planner believes, and what its pages tell.

use std::time::Duration;

use domain::{Group, Namespace, Status, Timestamp};
use store::{Count, Filter, ListQuery, Period, TimerStore};
use store_conformance::{NOW, secs, timer};
use store_postgres::PostgresStore;

use crate::open;

/// The planner still believes in the crowd that was due a moment ago, and there is no time to walk to the few that are left.
#[tokio::test(flavor = "multi_thread")]
async fn few_are_found_where_the_planner_expects_many() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    let drafts = (0..10).map(|n| timer("http://a.example/").numbered(n).created_at(NOW).build());
    store.create(drafts.collect()).await.unwrap();
    let newer_and_finished = "
        WITH finished AS (
            INSERT INTO definition (id, namespace, asked, execute_at, callback_type, callback_config, delivery,
                fingerprint, revision, created_at, updated_at)
            SELECT gen_random_uuid(), 'default', 1, 1, 'http', '{}', 'at_least_once', '\\x00', 1, later.at, later.at
            FROM (SELECT max(created_at) + n AS at FROM definition, generate_series(1, 1000) AS n GROUP BY n) AS later
            RETURNING id)
        INSERT INTO outcome (id, status, attempt, executed_at, finished_at) SELECT id, 'completed', 1, 1, 1 FROM finished;
        INSERT INTO due (shard, id, at, attempt, destination)
        SELECT n % 64, gen_random_uuid(), n, 0, 1 FROM generate_series(1, 30000) AS n;
        ALTER TABLE due SET (autovacuum_enabled = false);
        ANALYZE;
        DELETE FROM due WHERE at <= 30000";
    throwaway::postgres().query(&url, newer_and_finished);
    assert_eq!(throwaway::postgres().query(&url, "SELECT reltuples > 4 * 5000 FROM pg_class WHERE relname = 'due'"), "t");
    let filter = Filter { status: vec![Status::Pending], ..Filter::default() };
    let page = store.list(&ListQuery { filter, limit: 20, budget: Duration::ZERO, ..ListQuery::default() }).await.unwrap();
    assert_eq!((page.timers.len(), page.complete), (10, true));
}

/// Twenty thousand timers, one due each second after the other, and a thousand newer ones that are due before all of them. Where they
/// stand is not known, so that they are listed as unreadable.
async fn many_and_newer(url: &str) -> PostgresStore {
    let store = open(url).await;
    let fill = "
        ALTER TABLE definition SET (autovacuum_enabled = false);
        INSERT INTO definition (id, namespace, asked, execute_at, callback_type, callback_config, delivery,
            fingerprint, revision, created_at, updated_at)
        SELECT gen_random_uuid(), 'default', 1, at, 'http', '{}', 'at_least_once', '\\x00'::bytea, 1, created_at, created_at
        FROM (SELECT 1000000 * n::bigint, n FROM generate_series(1001, 21000) AS n) AS old (at, created_at)
        UNION ALL
        SELECT gen_random_uuid(), 'default', 1, 0, 'http', '{}', 'at_least_once', '\\x00'::bytea, 1, n, n
        FROM generate_series(30001, 31000) AS n;
        ANALYZE";
    throwaway::postgres().query(url, fill);
    store
}

/// All that are not among the newer ones.
fn due_later() -> Filter {
    Filter { due: Period { from: Some(Timestamp::from_micros(1_000_000)), to: None }, ..Filter::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_planner_knows_to_be_many_is_not_fetched_for_a_page() {
    let url = throwaway::postgres().create_database();
    let store = many_and_newer(&url).await;
    let page = store.list(&ListQuery { filter: due_later(), limit: 10, ..ListQuery::default() }).await.unwrap();
    assert_eq!((page.count(), page.complete, page.total), (10, true, None));
    assert!(page.scanned < 5_000, "{} were looked at", page.scanned);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_period_of_few_is_found_where_the_planner_expects_many() {
    let url = throwaway::postgres().create_database();
    let store = many_and_newer(&url).await;
    throwaway::postgres().query(&url, "DELETE FROM definition WHERE execute_at > 1010 * 1000000 OR created_at > 30900");
    let query = ListQuery {
        filter: due_later(),
        limit: 20,
        total_within: Some(Duration::ZERO),
        budget: Duration::ZERO,
        ..ListQuery::default()
    };
    let page = store.list(&query).await.unwrap();
    assert_eq!((page.count(), page.complete, page.total), (10, true, Some(Count::exactly(10))));
}

/// On every page, and where only some of the group match.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_group_says_how_many_of_it_match() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    let of = |n: u32| timer("http://a.example/").numbered(n.into()).group("g").due_at(NOW.saturating_add(secs(n))).build();
    store.create((0..10).map(of).collect()).await.unwrap();
    let group = Filter { namespaces: vec![Namespace::default()], group: Some(Group::parse("g").unwrap()), ..Filter::default() };
    let pending = Filter { status: vec![Status::Pending], ..group.clone() };
    let soon = Filter { due: Period { from: None, to: Some(NOW.saturating_add(secs(6))) }, ..group.clone() };
    for (filter, total) in [(group, 10), (pending, 10), (soon, 6)] {
        let mut query = ListQuery { filter, limit: 4, total_within: Some(Duration::ZERO), ..ListQuery::default() };
        loop {
            let page = store.list(&query).await.unwrap();
            assert_eq!(page.total, Some(Count::exactly(total)), "{query:?}");
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
    }
}
