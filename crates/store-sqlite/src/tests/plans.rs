//! No statement may walk through a whole table once it is large: SQLite says how it would run each of them.

use domain::{Namespace, Next, Status};
use store::{Cursor, DueStore, Filter, ListQuery, Order, Sort};
use store_conformance::{NOW, timer};

use super::{LATER, Place, claim, create, numbered, own};
use crate::{
    attempts, bulk,
    by_time::{self, Source},
    change, claim as claims, create as creates, due, ownership, purge,
    read::{self, Walk},
    rows, settle, stats, tally,
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
        claims::STANDING,
        claims::TAKE,
        rows::DEFINITION_BY_ID,
        settle::CLAIMED,
        settle::DELETE_DUE,
        settle::RELEASE,
        settle::FOLLOW_DUE,
        settle::FOLLOW_AGAIN,
        purge::FINISHED_BEFORE,
        creates::DELETE_OUTCOME,
        creates::DELETE_DEFINITION,
        change::REPLACE_DEFINITION,
        change::MOVE_DEFINITION,
        change::RESET_DUE,
        change::ADVANCE_DUE,
        change::READDRESS_DUE,
        change::PENDING,
        change::REOPEN_DEFINITION,
        attempts::LAST_SEQ,
        attempts::FORGET_EARLIER,
        attempts::DELETE_ATTEMPTS,
        attempts::ATTEMPTS,
        bulk::DUE_MINUTE,
        rows::TIMER_BY_ID,
        rows::SUMMARY_BY_ID,
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
    for counts in [stats::DUE_COUNTS, stats::DUE_COUNTS_OF] {
        let plan = plan(&shell, counts);
        assert_eq!(plan[0], "SEARCH due USING PRIMARY KEY (shard=? AND minute>? AND minute<?)");
        assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:#?}");
    }
    let overdue = plan(&shell, ownership::OVERDUE);
    assert!(overdue.contains(&"USE TEMP B-TREE FOR LAST TERM OF ORDER BY".to_owned()), "{overdue:#?}");
}

#[tokio::test]
async fn claims_that_their_makers_will_not_settle_are_looked_for_among_claims_alone() {
    let (_place, shell) = filled().await;
    assert_eq!(plan(&shell, claims::EXPIRED), ["SCAN due USING INDEX due_claimed"]);
}

#[tokio::test]
async fn a_list_walks_along_the_index_of_its_order() {
    let (_place, shell) = filled().await;
    let statuses = [None].into_iter().chain(Status::ALL.map(Some));
    for status in statuses {
        for namespace in [None, Some("default"), Some("tenant")] {
            for order in [Order::Ascending, Order::Descending] {
                for after in [None, Some(Cursor { at: NOW, id: timer("http://a.example/").id() })] {
                    let namespace = namespace.map(|name| Namespace::parse(name).unwrap());
                    let query = ListQuery {
                        filter: Filter {
                            status: status.into_iter().collect(),
                            namespaces: namespace.into_iter().collect(),
                            ..Filter::default()
                        },
                        sort: Sort::CreatedAt,
                        order,
                        limit: 50,
                        offset: 0,
                        after,
                        budget: store::SEARCH_BUDGET,
                    };
                    assert_walks_in_order(&shell, &query);
                    assert_walks_in_order_of_time(&shell, &ListQuery { sort: Sort::ExecuteAt, ..query });
                }
            }
        }
    }
}

/// Nothing is read but along an index, and nothing is sorted as a whole, save the one namespace that is asked for.
fn assert_walks_in_order(shell: &rusqlite::Connection, query: &ListQuery) {
    let (sql, _) = read::list_statement(query, Walk::InOrder);
    let plan = plan(shell, &sql);
    let is_bare = |step: &String| step.starts_with("SCAN") && !step.contains("USING INDEX definition_");
    assert!(!plan.iter().any(is_bare), "{sql}\n{plan:#?}");
    let sorts_all = plan.contains(&"USE TEMP B-TREE FOR ORDER BY".to_owned());
    let of_one_namespace = plan.iter().any(|step| step.contains("definition_namespace (namespace=?"));
    assert!(!sorts_all || of_one_namespace, "{sql}\n{plan:#?}");
}

/// Along the tables that are clustered by time; only inside a minute something is sorted.
fn assert_walks_in_order_of_time(shell: &rusqlite::Connection, query: &ListQuery) {
    for source in Source::ALL.into_iter().filter(|source| source.holds(query.filter.status_alone())) {
        let (sql, _) = by_time::statement(query, source);
        let plan = plan(shell, &sql);
        let (walk, sort) = (plan[0].as_str(), plan.get(1).map(String::as_str));
        let inside_a_minute = Some("USE TEMP B-TREE FOR LAST 2 TERMS OF ORDER BY");
        let is_in_order = match source {
            Source::Due => walk.starts_with("SEARCH t USING PRIMARY KEY (shard=?") && sort == inside_a_minute,
            Source::Moved => walk.contains(" INDEX due_moved") && sort.is_none(),
            Source::Finished if query.after.is_none() => walk == "SCAN t" && sort == inside_a_minute,
            Source::Finished => walk.starts_with("SEARCH t USING PRIMARY KEY (minute") && sort == inside_a_minute,
        };
        assert!(is_in_order, "{sql}\n{plan:#?}");
    }
}

#[tokio::test]
async fn a_list_by_time_of_a_small_namespace_starts_from_it() {
    let (_place, shell) = filled().await;
    for status in [None].into_iter().chain(Status::ALL.map(Some)) {
        let query = ListQuery {
            filter: Filter {
                status: status.into_iter().collect(),
                namespaces: Some(Namespace::parse("tenant").unwrap()).into_iter().collect(),
                ..Filter::default()
            },
            sort: Sort::ExecuteAt,
            order: Order::Descending,
            limit: 50,
            offset: 0,
            after: None,
            budget: store::SEARCH_BUDGET,
        };
        let (sql, _) = read::list_statement(&query, Walk::Namespace);
        let plan = plan(&shell, &sql);
        assert_eq!(plan[0], "SEARCH d USING INDEX definition_namespace (namespace=?)", "{sql}\n{plan:#?}");
    }
}

#[tokio::test]
async fn a_list_of_a_rare_status_starts_from_those_that_have_it() {
    let (_place, shell) = filled().await;
    for (status, start) in [
        (Status::Executing, "SCAN u USING INDEX due_claimed"),
        (Status::Pending, "SEARCH u USING PRIMARY KEY (shard=?)"),
        (Status::Failed, "SCAN o USING INDEX outcome_failed"),
        (Status::Canceled, "SCAN o USING INDEX outcome_canceled"),
        (Status::Expired, "SCAN o USING INDEX outcome_expired"),
    ] {
        let query = ListQuery {
            filter: Filter { status: vec![status], ..Filter::default() },
            sort: Sort::CreatedAt,
            order: Order::Descending,
            limit: 50,
            offset: 0,
            after: None,
            budget: store::SEARCH_BUDGET,
        };
        let (sql, _) = read::list_statement(&query, Walk::Few);
        let plan = plan(&shell, &sql);
        assert_eq!(plan[0], start, "{sql}\n{plan:#?}");
    }
}
