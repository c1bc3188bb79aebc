//! How the server carries the statements out: through keys, whatever the size of the tables.

use std::time::Duration;

use domain::{Namespace, NewTimer, Span, Status, Timestamp};
use store::{Created, Cursor, DueStore, Filter, ListQuery, Member, MembershipStore, NodeId, Order, Period, Sort, TimerStore};
use store_conformance::{NOW, secs, timer};
use store_postgres::statements;

use crate::{acquire_all, claim, everything_due, open};

const LATER: Timestamp = NOW.saturating_add(Span::from_secs(60));

/// The plan that is kept for a statement, made without knowing its arguments.
fn plan(url: &str, statement: &str) -> String {
    let parameters = (1..).take_while(|number| statement.contains(&format!("${number}"))).count();
    let arguments = if parameters == 0 { String::new() } else { format!("({})", vec!["NULL"; parameters].join(", ")) };
    let settings: String = statements::SESSION.iter().map(|(name, value)| format!("SET {name} = {value}; ")).collect();
    throwaway::postgres().query(url, &format!("{settings} PREPARE s AS {statement}; EXPLAIN EXECUTE s{arguments}"))
}

/// Whether a line is about a table that may be read as a whole: those with a row for each shard or node.
fn is_small(line: &str) -> bool {
    line.contains(" on shard ") || line.contains(" on node ")
}

fn assert_keyed(url: &str, when: &str) {
    for (name, statement) in statements::SCHEDULER.into_iter().chain(statements::CALLERS) {
        let plan = plan(url, statement);
        for scan in ["Seq Scan", "Bitmap", "Hash Join", "Merge Join", "->  Sort"] {
            // A bulk cancel sorts what it was asked for by where it is due, which its caller does not know; other bulk changes lock
            // what they were asked for in an order.
            let is_bulk_cancel =
                name == "cancel all" && plan.contains("Sort Key: w.shard, (COALESCE(f.due_at, f.execute_at)), w.id");
            let is_bulk_lock = name.starts_with("lock ") && name.ends_with(" in bulk");
            let is_meant = scan == "->  Sort" && (is_bulk_cancel || is_bulk_lock);
            let is_there = plan.lines().any(|line| line.contains(scan) && !is_small(line));
            assert!(is_meant || !is_there, "{name} {when}: {scan} in\n{plan}");
        }
        // Servers before November 2025 follow a row that was changed to its next version, whatever its ctid.
        let compared =
            plan.lines().skip_while(|line| !line.contains("Tid Scan on due")).take(3).any(|line| line.contains("xmin = "));
        assert!(!statement.contains("ctid") || compared, "{name} {when}: {plan}");
        // A walk over a whole index is as bad as one over the table.
        let pairs = plan.lines().zip(plan.lines().skip(1));
        for (line, next) in pairs.filter(|(line, _)| line.contains("Index") && line.contains("Scan") && !is_small(line)) {
            assert!(next.contains("Index Cond"), "{name} {when}: {line} without a condition in\n{plan}");
            // Without its time, a row of `due` is looked for in the whole shard.
            let is_of_due = line.contains("due_pkey");
            assert!(!is_of_due || next.contains("(at ") || next.contains("ROW(at"), "{name} {when}: {next} in\n{plan}");
        }
    }
    // A page of what is due reads that page, however much is due before, after, or at the same moment.
    let due = plan(url, statements::SCHEDULER[0].1);
    assert!(!due.contains("Sort") && due.contains("AND (ROW(at, id) > ROW(c.at, c.id))"), "{when}: {due}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_keyed_statement_uses_an_index_whatever_the_size_of_the_tables() {
    let url = throwaway::postgres().create_database();
    open(&url).await;
    assert_keyed(&url, "on empty tables");
    let fill = "
        INSERT INTO definition (id, namespace, asked, execute_at, callback_type, callback_config, delivery,
            fingerprint, revision, created_at, updated_at)
        SELECT gen_random_uuid(), 'default', n, n::bigint * 100000, 'http', '{}', 'at_least_once', '\\x00', 1, n, n
        FROM generate_series(1, 60000) AS n;
        INSERT INTO due (shard, id, at, attempt, destination)
        SELECT n % 64, gen_random_uuid(), n::bigint * 100000, 0, 1 FROM generate_series(1, 60000) AS n;
        INSERT INTO outcome (id, status, attempt, executed_at, finished_at)
        SELECT gen_random_uuid(), 'completed', 1, n, n FROM generate_series(1, 60000) AS n;
        INSERT INTO tenure (shard, epoch, node) SELECT n % 64, n, gen_random_uuid() FROM generate_series(1, 10000) AS n;
        INSERT INTO node (id, started_at, skew_micros, lease_until, takes_shards, name, version)
        SELECT gen_random_uuid(), 0, 0, 0, true, '', '' FROM generate_series(1, 20);
        ANALYZE";
    throwaway::postgres().query(&url, fill);
    assert_keyed(&url, "on large tables");
    let empty = "DELETE FROM definition; DELETE FROM due; DELETE FROM outcome; DELETE FROM tenure; DELETE FROM node";
    throwaway::postgres().query(&url, empty);
    // On its own: it cannot be part of anything.
    throwaway::postgres().query(&url, "VACUUM ANALYZE");
    assert_eq!(throwaway::postgres().query(&url, "SELECT reltuples FROM pg_class WHERE relname = 'due'"), "0");
    assert_keyed(&url, "on tables that were emptied");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_by_the_wanted_time_reads_only_its_minutes() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    let drafts = (0..3_000).map(|n| timer("http://a.example/").due_in(Span::from_secs(n)).created_at(NOW).build());
    store.create(drafts.collect()).await.unwrap();
    throwaway::postgres().query(&url, "ANALYZE");
    let listing = "EXPLAIN SELECT f.id FROM definition f
                   ORDER BY (f.execute_at / 60000000) DESC, f.execute_at DESC, f.id DESC LIMIT 11";
    let plan = throwaway::postgres().query(&url, listing);
    assert!(plan.contains("Incremental Sort") && plan.contains("definition_execute"), "{plan}");
}

/// How many of the indexes of namespaces can be used.
fn namespace_indexes(url: &str) -> String {
    let valid = "SELECT count(*) FROM pg_index WHERE indisvalid
                 AND indexrelid IN (to_regclass('definition_default'), to_regclass('definition_namespace_execute'))";
    throwaway::postgres().query(url, valid)
}

async fn namespace_indexes_are_built(url: &str) {
    let are_built = async {
        while namespace_indexes(url) != "2" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), are_built).await.expect("the indexes");
}

/// Where every timer is in the default namespace, indexes of namespaces would be written by every create and know nothing new.
#[tokio::test(flavor = "multi_thread")]
async fn namespaces_have_indexes_of_their_own_once_there_are_several() {
    let url = throwaway::postgres().create_database();
    let (store, another_node) = (open(&url).await, open(&url).await);
    store.create(vec![timer("http://a.example/").numbered(0).build()]).await.unwrap();
    assert_eq!(namespace_indexes(&url), "0");
    let others = (1..5_000).map(|n| timer("http://a.example/").numbered(n).namespace("tenant").created_at(LATER).build());
    store.create(others.collect()).await.unwrap();
    namespace_indexes_are_built(&url).await;
    let filter = Filter { namespaces: vec![Namespace::default()], ..Filter::default() };
    for sort in [Sort::CreatedAt, Sort::ExecuteAt] {
        let query = ListQuery { filter: filter.clone(), sort, limit: 10, ..ListQuery::default() };
        let page = another_node.list(&query).await.unwrap();
        assert_eq!((page.timers.len(), page.scanned), (1, 1), "{sort:?}");
    }
}

/// The planner believes that nearly every timer is in the large namespace, and yet the newest ones, which are the last that are due, are
/// in another.
async fn walks_along(sort: Sort, of_all: &str, of_one: &str) {
    let url = throwaway::postgres().create_database();
    open(&url).await;
    // A long name makes the index of namespaces larger than that of times, and a walk along it dearer.
    let large = "large-".repeat(10);
    let fill = |namespace: &str, from: u32, to: u32| {
        format!(
            "INSERT INTO definition (id, namespace, asked, execute_at, callback_type, callback_config, delivery,
                fingerprint, revision, created_at, updated_at)
             SELECT gen_random_uuid(), '{namespace}', n, n::bigint * 10000000, 'http', '{{}}', 'at_least_once', '\\x00', 1, n, n
             FROM generate_series({from}, {to}) AS n"
        )
    };
    throwaway::postgres().query(&url, &fill(&large, 1, 20_000));
    // Builds the indexes of namespaces.
    let store = open(&url).await;
    throwaway::postgres().query(&url, "ANALYZE");
    throwaway::postgres().query(&url, &fill("newer", 20_001, 23_000));
    let filter = Filter { namespaces: vec![Namespace::parse(&large).unwrap()], ..Filter::default() };
    for order in [Order::Descending, Order::Ascending] {
        let query = ListQuery { filter: filter.clone(), sort, order, limit: 10, ..ListQuery::default() };
        let first = store.list(&query).await.unwrap();
        let second = store.list(&ListQuery { after: first.next, ..query.clone() }).await.unwrap();
        // Most of the namespace lies before the cursor.
        let half = Cursor { at: time_of(sort, 10_000), id: first.next.unwrap().id };
        let last = store.list(&ListQuery { after: Some(half), ..query }).await.unwrap();
        assert_eq!((first.count(), second.count(), last.count()), (10, 10, 10));
    }
    store.count(&filter, Duration::ZERO).await.unwrap();
    drop(store);
    let read = format!(
        "SELECT string_agg(idx_tup_read::text, ' ' ORDER BY length(indexrelname)) FROM pg_stat_user_indexes
         WHERE indexrelname IN ('{of_all}', '{of_one}')"
    );
    // Sessions report what they did when they end, at the latest. Each of the six calls has looked at 250 timers at least.
    let reported = async {
        loop {
            let read = throwaway::postgres().query(&url, &read);
            let (of_all, of_one) = read.split_once(' ').unwrap();
            let (of_all, of_one): (u64, u64) = (of_all.parse().unwrap(), of_one.parse().unwrap());
            if of_all + of_one >= 6 * 250 {
                return (of_all, of_one);
            }
            tokio::task::yield_now().await;
        }
    };
    let reported = tokio::time::timeout(Duration::from_secs(30), reported).await.expect("walks along these indexes");
    let (of_all, of_one) = reported;
    assert!(of_all < 250, "{of_all} timers of all namespaces were looked at");
    assert!(of_one < 4 * 6 * 250, "{of_one} timers of the namespace were looked at");
}

const fn time_of(sort: Sort, n: i64) -> Timestamp {
    Timestamp::from_micros(match sort {
        Sort::CreatedAt => n,
        Sort::ExecuteAt => n * 10_000_000,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_a_namespace_by_creation_does_not_walk_through_others() {
    walks_along(Sort::CreatedAt, "definition_created", "definition_namespace").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_a_namespace_by_due_time_does_not_walk_through_others() {
    walks_along(Sort::ExecuteAt, "definition_execute", "definition_namespace_execute").await;
}

/// More are due than are looked at for this, so that all timers are walked through.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_executing_is_found_among_too_many_that_are_due() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    let shard_leases = acquire_all(&store).await;
    let drafts = (0..10).map(|n| timer("http://a.example/").numbered(n).created_at(NOW).build());
    store.create(drafts.collect()).await.unwrap();
    let due = everything_due(&store).await;
    assert_eq!(store.claim(&claim(1, &shard_leases), &due).await.unwrap().len(), 10);
    let crowd = "INSERT INTO due (shard, id, at, attempt, destination) SELECT n % 8, gen_random_uuid(), 1, 0, 1 FROM generate_series(1, 20001) AS n";
    throwaway::postgres().query(&url, crowd);
    let filter = Filter { status: vec![Status::Executing], ..Filter::default() };
    assert_eq!(store.list(&ListQuery { filter: filter.clone(), ..ListQuery::default() }).await.unwrap().timers.len(), 10);
    assert_eq!(store.count(&filter, Duration::from_secs(10)).await.unwrap(), 10);
}

/// More are due than are fetched and sorted, and there is no time to look at all of them one by one.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_executing_is_found_at_once_among_many_that_are_due() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    let shard_leases = acquire_all(&store).await;
    let drafts = (0..6_000).map(|n| timer("http://a.example/").numbered(n).created_at(NOW).build());
    store.create(drafts.collect()).await.unwrap();
    let due = everything_due(&store).await;
    let claimed = store.claim(&claim(1, &shard_leases), &due[..10]).await.unwrap();
    assert_eq!(claimed.len(), 10);
    let filter = Filter { status: vec![Status::Executing], ..Filter::default() };
    let query = ListQuery { filter: filter.clone(), limit: 5, budget: Duration::ZERO, ..ListQuery::default() };
    let page = store.list(&query).await.unwrap();
    assert_eq!((page.timers.len(), page.complete), (5, true));
    assert_eq!(store.count(&filter, Duration::ZERO).await.unwrap(), 10);
}

/// A claim that left its page would have to be entered into the index again, and twice the index would have to be cleaned up.
#[tokio::test(flavor = "multi_thread")]
async fn claims_stay_on_their_page() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    let shard_leases = acquire_all(&store).await;
    let drafts = (0..3_000).map(|n| timer("http://a.example/").numbered(n).build()).collect();
    let created = store.create(drafts).await.unwrap();
    assert!(created.iter().all(|created| matches!(created, Created::Created(_))));
    let due = everything_due(&store).await;
    for (token, batch) in (1..).zip(due.chunks(1_000)) {
        assert_eq!(store.claim(&claim(token, &shard_leases), batch).await.unwrap().len(), batch.len());
    }
    drop(store);
    // Sessions report what they did when they end, at the latest.
    let updates = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'due'";
    let counted = loop {
        let counted = throwaway::postgres().query(&url, updates);
        if counted.starts_with("3000|") {
            break counted;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(counted, "3000|3000");
}

/// A node says several times a second that it lives: that must be one small row, written in its place.
#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_stay_on_their_page() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    acquire_all(&store).await;
    let member = Member { name: "host-1.example:8080".to_owned(), version: "1.2.3".to_owned(), ..Member::new(NodeId(1)) };
    for _ in 0..1_000 {
        store.heartbeat(&member, Span::from_secs(10)).await.unwrap();
    }
    drop(store);
    let written = "SELECT relname, n_tup_ins, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables
                   WHERE relname IN ('node', 'shard', 'tenure') ORDER BY relname";
    let counted = loop {
        let counted = throwaway::postgres().query(&url, written);
        if counted.contains("|1000|") && counted.contains("shard|64|64|") {
            break counted;
        }
        tokio::task::yield_now().await;
    };
    let lines: Vec<_> = counted.lines().collect();
    assert_eq!(lines[1..], ["shard|64|64|64", "tenure|64|0|0"]);
    // Now and then another session's snapshot keeps the old versions of the row for a moment, and the page is full.
    let in_place: i64 = lines[0].strip_prefix("node|1|1000|").and_then(|count| count.parse().ok()).expect(lines[0]);
    assert!(in_place >= 800, "{counted}");
    let pages: i64 = throwaway::postgres().query(&url, "SELECT pg_relation_size('node') / 8192").parse().unwrap();
    assert!(pages <= 16, "{pages} pages");
}

/// The index knows the minute only: pages begin and end within one, and in both namespaces.
#[tokio::test(flavor = "multi_thread")]
async fn pages_of_namespaces_by_due_time_have_each_timer_once_and_in_order() {
    let url = throwaway::postgres().create_database();
    // Four timers a minute.
    let at = |n: u32| NOW.saturating_add(secs(n * 15));
    let of = |n: u32, name: &str| timer("http://a.example/").numbered(n.into()).due_at(at(n / 2)).namespace(name).build();
    let timers: Vec<_> = (0..40).map(|n| of(n, if n % 2 == 0 { "default" } else { "b" })).collect();
    let store = open(&url).await;
    store.create(timers.clone()).await.unwrap();
    namespace_indexes_are_built(&url).await;
    for names in [&["default"][..], &["b"], &["default", "b"]] {
        for due in [Period::ALWAYS, Period { from: Some(at(3)), to: None }, Period { from: Some(at(2)), to: Some(at(13)) }] {
            for (order, limit) in [(Order::Ascending, 1), (Order::Descending, 3), (Order::Ascending, 7), (Order::Descending, 100)]
            {
                let namespaces: Vec<_> = names.iter().map(|name| Namespace::parse(name).unwrap()).collect();
                let is_meant = |new: &&NewTimer| namespaces.contains(&new.definition.namespace) && due.contains(new.execute_at);
                let mut wanted: Vec<_> = timers.iter().filter(is_meant).map(|new| (new.execute_at, new.definition.id)).collect();
                wanted.sort_unstable();
                if order == Order::Descending {
                    wanted.reverse();
                }
                let filter = Filter { namespaces: namespaces.clone(), due, ..Filter::default() };
                let mut query = ListQuery { filter, sort: Sort::ExecuteAt, order, limit, ..ListQuery::default() };
                let mut listed = Vec::new();
                loop {
                    let page = store.list(&query).await.unwrap();
                    listed.extend(page.timers.iter().map(|summary| (summary.execute_at, summary.id)));
                    query.after = page.next;
                    if query.after.is_none() {
                        break;
                    }
                }
                assert_eq!(listed, wanted, "{names:?} {due:?} {order:?} {limit}");
            }
        }
    }
}
