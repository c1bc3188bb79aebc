//! No statement may walk through a whole table once it is large: SQLite says how it would run each of them.

use std::time::Duration;

use domain::{Group, Namespace, Next, Shard, Span, Status, Timer, Timestamp};
use rusqlite::StatementStatus;
use store::{Count, Cursor, DueStore, Filter, ListQuery, Order, Period, ShardCursor, Sort, TimerStore};
use store_conformance::{NOW, timer};

use super::{LATER, Place, claim, create, numbered, own};
use crate::{
    SqliteStore, attempts, bulk, change, claim as claims, due, ownership, purge, rows,
    search::{AccessPath, LOOK_AT, Plan, ROWS_CREATED_WITHIN, statement},
    settle, statements, stats, tally,
};

async fn filled() -> (Place, rusqlite::Connection) {
    let place = Place::new();
    let store = place.open();
    let shard_leases = own(&store, 1).await;
    let timers = create(&store, numbered(0..4000)).await;
    create(&store, (4000..5000).map(|n| timer("http://a.example/").numbered(n).namespace("tenant").build()).collect()).await;
    let claimed = claim(&store, &shard_leases, &timers[..2000]).await;
    let settlements: Vec<_> = claimed[..1500].iter().map(|claimed| claimed.settle(Next::Completed { at: LATER })).collect();
    store.settle(&settlements).await.unwrap();
    drop(store);
    let shell = place.shell();
    (place, shell)
}

fn plan(shell: &rusqlite::Connection, sql: &str) -> Vec<String> {
    let mut statement = shell.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    statement.raw_query().mapped(|row| row.get("detail")).collect::<Result<_, _>>().unwrap()
}

#[tokio::test]
async fn every_statement_of_the_scheduler_goes_by_an_index() {
    let (_place, shell) = filled().await;
    for sql in [
        due::DUE,
        due::DUE_IN_MINUTE,
        claims::STANDING,
        claims::TAKE,
        rows::DEFINITION_BY_ID,
        settle::CLAIMED,
        settle::DELETE_DUE,
        settle::RELEASE,
        settle::FOLLOW_DUE,
        settle::FOLLOW_AGAIN,
        purge::FINISHED_BEFORE,
        statements::DELETE_OUTCOME,
        statements::DELETE_DEFINITION,
        change::REPLACE_DEFINITION,
        change::MOVE_DEFINITION,
        statements::RESET_DUE,
        change::ADVANCE_DUE,
        change::READDRESS_DUE,
        change::PENDING,
        statements::REOPEN_DEFINITION,
        attempts::LAST_SEQ,
        attempts::FORGET_EARLIER,
        attempts::DELETE_ATTEMPTS,
        attempts::ATTEMPTS,
        bulk::DUE_MINUTE,
        rows::TIMER_BY_ID,
        rows::SUMMARY_BY_ID,
        LOOK_AT,
        tally::FORGET_NONE,
        tally::COUNT,
        tally::COUNT_NAMESPACE,
        ownership::EPOCH,
        ownership::HOLDING,
        ownership::TAKE,
        ownership::RELEASE,
        ownership::OVERDUE,
        stats::DUE_COUNTS,
        stats::FORGET_DIGESTS,
        stats::FORGET_RECEIVERS,
        stats::OVERDUE_OF_NAMESPACES,
    ] {
        let plan = plan(&shell, sql);
        assert!(!plan.is_empty() && !plan.iter().any(|step| step.starts_with("SCAN")), "{sql}\n{plan:#?}");
    }
}

#[tokio::test]
async fn due_timers_are_sorted_only_inside_a_minute() {
    let (_place, shell) = filled().await;
    assert_eq!(plan(&shell, due::DUE), ["SEARCH due USING PRIMARY KEY (shard=? AND minute>? AND minute<?)"]);
    let in_minute = "SEARCH due USING PRIMARY KEY (shard=? AND minute=? AND id>? AND id<?)";
    assert_eq!(plan(&shell, due::DUE_IN_MINUTE), [in_minute]);
    for counts in [stats::DUE_COUNTS, stats::DUE_COUNTS_OF] {
        let plan = plan(&shell, counts);
        assert_eq!(plan[0], "SEARCH due USING PRIMARY KEY (shard=? AND minute>? AND minute<?)");
        assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:#?}");
    }
    let overdue = plan(&shell, ownership::OVERDUE);
    assert!(overdue.contains(&"USE TEMP B-TREE FOR LAST TERM OF ORDER BY".to_owned()), "{overdue:#?}");
}

/// Otherwise a million timers of one moment, which are many pages, would be read anew for each of them.
#[tokio::test]
async fn a_page_inside_a_crowded_moment_reads_what_it_shows() {
    const TIMERS: u64 = 4_000;
    const LIMIT: usize = 100;
    /// How many steps of SQLite's machine a row takes at most.
    const STEPS_PER_ROW_MAX: i32 = 20;
    for seconds in [0, 30] {
        let place = Place::new();
        let moment = NOW.saturating_add(Span::from_secs(seconds));
        create(&place.open(), (0..TIMERS).map(|n| timer("http://a.example/").numbered(n).due_at(moment).build()).collect()).await;
        let shell = place.shell();
        let steps = || {
            let of = |sql| shell.prepare_cached(sql).unwrap().reset_status(StatementStatus::VmStep);
            of(due::DUE) + of(due::DUE_IN_MINUTE)
        };
        let (mut after, mut read) = (None, Vec::new());
        while read.len() < TIMERS as usize {
            let page = due::due(&shell, &[ShardCursor { shard: Shard(0), after }], moment, LIMIT).unwrap();
            // The first page of a minute has to look whether anything is earlier, unless nothing can be.
            let is_told = after.is_some() || seconds == 0;
            let (steps, steps_max) = (steps(), LIMIT as i32 * STEPS_PER_ROW_MAX);
            assert!(!is_told || steps < steps_max, "{steps} steps for {LIMIT} entries after {after:?}");
            after = page.last().map(|last| (last.at, last.id));
            read.extend(page);
        }
        assert!(read.is_sorted() && read.len() == TIMERS as usize);
    }
}

#[tokio::test]
async fn claims_that_their_makers_will_not_settle_are_looked_for_among_claims_alone() {
    let (_place, shell) = filled().await;
    assert_eq!(plan(&shell, claims::EXPIRED), ["SCAN due USING INDEX due_claimed"]);
}

#[tokio::test]
async fn a_list_walks_along_the_index_of_its_order() {
    let (_place, shell) = filled().await;
    let tenant = AccessPath::Namespace(Namespace::parse("tenant").unwrap());
    let default = AccessPath::Namespace(Namespace::default());
    let inside_a_minute = Some("USE TEMP B-TREE FOR LAST 2 TERMS OF ORDER BY");
    for (path, sort, walk, sorted) in [
        (AccessPath::Created, Sort::CreatedAt, "INDEX definition_created", None),
        (tenant, Sort::CreatedAt, "SEARCH d USING COVERING INDEX definition_namespace (namespace=?", None),
        (default, Sort::CreatedAt, "d USING COVERING INDEX definition_default", None),
        (AccessPath::Due, Sort::ExecuteAt, "SEARCH t USING PRIMARY KEY (shard=?", inside_a_minute),
        (AccessPath::Moved, Sort::ExecuteAt, " INDEX due_moved", None),
        (AccessPath::Finished, Sort::ExecuteAt, " t", inside_a_minute),
    ] {
        for (status, namespace) in
            [(None, None), (Some(Status::Pending), Some("default")), (Some(Status::Failed), Some("tenant"))]
        {
            for order in [Order::Ascending, Order::Descending] {
                for after in [None, Some(Cursor { at: NOW, id: timer("http://a.example/").id() })] {
                    let namespace = namespace.map(|name| Namespace::parse(name).unwrap());
                    let filter = Filter {
                        status: status.into_iter().collect(),
                        namespaces: namespace.into_iter().collect(),
                        ..Filter::default()
                    };
                    let query = ListQuery { filter, sort, order, ..ListQuery::default() };
                    let (sql, _) = statement(&path, &query, after, 100);
                    let plan = plan(&shell, &sql);
                    assert!(plan[0].contains(walk), "{sql}\n{plan:#?}");
                    assert_eq!(plan.get(1).map(String::as_str), sorted, "{sql}\n{plan:#?}");
                    let is_bound = after.is_none() || plan[0].starts_with("SEARCH");
                    assert!(is_bound, "{sql}\n{plan:#?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn what_is_sorted_is_found_by_an_index() {
    let (_place, shell) = filled().await;
    let period = Period { from: Some(NOW), to: Some(LATER) };
    let filter = Filter { due: period, created: period, ..Filter::default() };
    let tenant = AccessPath::Namespace(Namespace::parse("tenant").unwrap());
    let ids = AccessPath::Ids(vec![timer("http://a.example/").id()]);
    for (path, sort, walk) in [
        (AccessPath::Status(Status::Executing), Sort::CreatedAt, "SCAN t USING INDEX due_claimed"),
        (AccessPath::Status(Status::Executing), Sort::ExecuteAt, "SCAN t USING INDEX due_claimed"),
        (AccessPath::Status(Status::Pending), Sort::CreatedAt, "SEARCH t USING PRIMARY KEY (shard=?)"),
        (AccessPath::Status(Status::Failed), Sort::CreatedAt, "SCAN t USING INDEX outcome_failed"),
        (AccessPath::Status(Status::Canceled), Sort::ExecuteAt, "SCAN t USING INDEX outcome_canceled"),
        (tenant, Sort::ExecuteAt, "SEARCH d USING INDEX definition_namespace (namespace=? AND created_at>? AND created_at<?)"),
        (AccessPath::Created, Sort::ExecuteAt, "SEARCH d USING INDEX definition_created (created_at>? AND created_at<?)"),
        (AccessPath::Due, Sort::CreatedAt, "SEARCH t USING PRIMARY KEY (shard=? AND minute>? AND minute<?)"),
        (AccessPath::Moved, Sort::CreatedAt, "SEARCH t USING INDEX due_moved (execute_at>? AND execute_at<?)"),
        (AccessPath::Finished, Sort::CreatedAt, "SEARCH t USING PRIMARY KEY (minute>? AND minute<?)"),
        (ids, Sort::CreatedAt, "SEARCH d USING INDEX sqlite_autoindex_definition_1 (id=?)"),
    ] {
        assert!(path.is_sorted_anew(sort), "{path:?}");
        let query = ListQuery { filter: filter.clone(), sort, ..ListQuery::default() };
        let (sql, _) = statement(&path, &query, None, 100);
        let plan = plan(&shell, &sql);
        assert_eq!(plan[0].replace("COVERING ", ""), walk, "{sql}\n{plan:#?}");
        let is_by_key = |step: &String| step.starts_with("SEARCH") || step.contains("TEMP B-TREE");
        assert!(plan[1..].iter().all(is_by_key), "{sql}\n{plan:#?}");
    }
}

/// Thirty thousand timers, one created and due each second; a tenth is in a namespace of its own.
async fn spread() -> (Place, SqliteStore, Vec<Timer>) {
    let place = Place::new();
    let store = place.open();
    let many = |n: u64| {
        let namespace = if n.is_multiple_of(10) { "tenant" } else { "default" };
        let at = seconds_later(u32::try_from(n).unwrap());
        timer("http://a.example/").numbered(n).group("g").namespace(namespace).due_at(at).created_at(at).build()
    };
    let timers = create(&store, (0..30_000).map(many).collect()).await;
    (place, store, timers)
}

const fn seconds_later(seconds: u32) -> Timestamp {
    NOW.saturating_add(Span::from_secs(seconds))
}

#[tokio::test]
async fn the_ends_of_a_period_are_found_without_a_walk() {
    let (_place, shell) = filled().await;
    let plan = plan(&shell, ROWS_CREATED_WITHIN);
    assert_eq!(plan.iter().filter(|step| step.starts_with("SEARCH definition")).count(), 4, "{plan:#?}");
    assert!(!plan.iter().any(|step| step.starts_with("SCAN definition")), "{plan:#?}");
}

/// Without the time to look at more than a few hundred of them.
#[tokio::test]
async fn the_timers_of_a_period_are_estimated() {
    let (_place, store, _) = spread().await;
    let period = |to| Period { from: Some(NOW), to: Some(seconds_later(to)) };
    let tenant = vec![Namespace::parse("tenant").unwrap()];
    // As many were created in one second as in all the hours before.
    let burst =
        |n: u64| timer("http://a.example/").numbered(n).due_at(seconds_later(90_000)).created_at(seconds_later(40_000)).build();
    create(&store, (30_000..60_000).map(burst).collect()).await;
    let last_second = Period { from: Some(seconds_later(40_000)), to: None };
    for (filter, truth) in [
        (Filter { created: period(900), ..Filter::default() }, 900),
        (Filter { created: period(24_000), ..Filter::default() }, 24_000),
        (Filter { created: last_second, ..Filter::default() }, 30_000),
        (Filter { created: period(900), namespaces: tenant, ..Filter::default() }, 90),
        (Filter { due: period(900), ..Filter::default() }, 900),
        (Filter { due: period(900), created: period(24_000), ..Filter::default() }, 900),
    ] {
        let count = store.count(&filter, Duration::ZERO).await.unwrap();
        assert!((count.is_estimate || truth < 100) && count.timers.abs_diff(truth) <= truth / 8, "{filter:?}: {count:?}");
    }
}

#[tokio::test]
async fn a_page_of_what_was_sorted_says_how_many_match() {
    let (_place, store, _) = spread().await;
    let due = Period { from: Some(NOW), to: Some(seconds_later(300)) };
    let groups = Filter {
        namespaces: vec![Namespace::parse("tenant").unwrap()],
        group: Some(Group::parse("g").unwrap()),
        ..Filter::default()
    };
    for (filter, total) in [(Filter { due, ..Filter::default() }, 300), (Filter { due, ..groups.clone() }, 30), (groups, 3_000)] {
        let mut query = ListQuery { filter, limit: 10, total_within: Some(Duration::from_secs(60)), ..ListQuery::default() };
        assert_eq!(store.list(&query).await.unwrap().total, Some(Count::exactly(total)), "{query:?}");
        query.total_within = Some(Duration::ZERO);
        let hurried = store.list(&query).await.unwrap().total.unwrap();
        assert!(hurried.timers.abs_diff(total) <= total / 8, "{hurried:?}");
    }
}

#[tokio::test]
async fn a_search_takes_the_access_path_on_which_least_lies_in_between() {
    let (place, store, timers) = spread().await;
    let canceled: Vec<_> = timers.iter().step_by(1_000).map(|timer| timer.id()).collect();
    store.cancel_all(&canceled, NOW).await.unwrap();
    let shell = place.shell();
    let tenant = || AccessPath::Namespace(Namespace::parse("tenant").unwrap());
    let in_due = || vec![AccessPath::Due, AccessPath::Moved];
    let minute = r#""2025-06-15T13:00:00Z""#;
    let later = r#""2025-06-15T13:01:00Z""#;
    for (filter, by_creation, by_time) in [
        ("{}".to_owned(), vec![AccessPath::Created], AccessPath::BY_TIME.to_vec()),
        (r#"{"status":["pending"]}"#.to_owned(), vec![AccessPath::Created], in_due()),
        (
            r#"{"namespace":["default"]}"#.to_owned(),
            vec![AccessPath::Namespace(Namespace::default())],
            AccessPath::BY_TIME.to_vec(),
        ),
        (r#"{"namespace":["tenant"]}"#.to_owned(), vec![tenant()], AccessPath::BY_TIME.to_vec()),
        (r#"{"namespace":["tenant"],"key_prefix":"x"}"#.to_owned(), vec![tenant()], vec![tenant()]),
        (
            r#"{"status":["canceled","failed"]}"#.to_owned(),
            vec![AccessPath::Status(Status::Canceled), AccessPath::Status(Status::Failed)],
            vec![AccessPath::Status(Status::Canceled), AccessPath::Status(Status::Failed)],
        ),
        (r#"{"status":["failed"]}"#.to_owned(), vec![], vec![]),
        (r#"{"namespace":["absent"]}"#.to_owned(), vec![], vec![]),
        (r#"{"correlation_id":"c"}"#.to_owned(), vec![AccessPath::Created], AccessPath::BY_TIME.to_vec()),
        (format!(r#"{{"due_from":{minute},"due_to":{later}}}"#), AccessPath::BY_TIME.to_vec(), AccessPath::BY_TIME.to_vec()),
        (format!(r#"{{"created_from":{minute},"created_to":{later}}}"#), vec![AccessPath::Created], vec![AccessPath::Created]),
    ] {
        for (sort, expected) in [(Sort::CreatedAt, by_creation), (Sort::ExecuteAt, by_time)] {
            let query = ListQuery { filter: serde_json::from_str(&filter).unwrap(), sort, ..ListQuery::default() };
            assert_eq!(Plan::choose(&shell, &query).unwrap().paths, expected, "{filter} {sort:?}");
        }
    }
}
