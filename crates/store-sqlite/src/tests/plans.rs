//! No statement may walk through a whole table once it is large: SQLite says how it would run each of them.

use domain::{Namespace, Next, Status};
use store::{Cursor, DueStore, Filter, ListQuery, Order, Sort};
use store_conformance::{NOW, timer};

use super::{LATER, Place, claim, create, numbered, own};
use crate::{
    attempts,
    bulk::{self, Start},
    by_time::{self, Source},
    change, claim as claims, create as creates, due, ownership, purge,
    read::{self, Walk},
    rows, settle, tally,
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
    ] {
        let plan = plan(&shell, sql);
        assert!(!plan.is_empty() && !plan.iter().any(|step| step.starts_with("SCAN")), "{sql}\n{plan:#?}");
    }
}

#[tokio::test]
async fn due_timers_are_sorted_only_inside_a_minute() {
    let (_place, shell) = filled().await;
    assert_eq!(plan(&shell, due::DUE), ["SEARCH due USING PRIMARY KEY (shard=? AND minute>? AND minute<?)"]);
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
                        filter: Filter { status, namespace, key_prefix: None },
                        sort: Sort::CreatedAt,
                        order,
                        limit: 50,
                        offset: 0,
                        after,
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
    for source in Source::ALL.into_iter().filter(|source| source.holds(query.filter.status)) {
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
            filter: Filter { status, namespace: Some(Namespace::parse("tenant").unwrap()), key_prefix: None },
            sort: Sort::ExecuteAt,
            order: Order::Descending,
            limit: 50,
            offset: 0,
            after: None,
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
            filter: Filter { status: Some(status), namespace: None, key_prefix: None },
            sort: Sort::CreatedAt,
            order: Order::Descending,
            limit: 50,
            offset: 0,
            after: None,
        };
        let (sql, _) = read::list_statement(&query, Walk::Few);
        let plan = plan(&shell, &sql);
        assert_eq!(plan[0], start, "{sql}\n{plan:#?}");
    }
}

#[tokio::test]
async fn a_search_for_what_matches_goes_by_an_index_and_sorts_only_the_few() {
    let (_place, shell) = filled().await;
    let after = Some(timer("http://a.example/").id());
    let plan_of = |start, status, namespace: Option<&str>, prefix: Option<&str>| {
        let namespace = namespace.map(|name| Namespace::parse(name).unwrap());
        let filter = Filter { status, namespace, key_prefix: prefix.map(str::to_owned) };
        let plans = [None, after].map(|after| plan(&shell, &bulk::matching_statement(&filter, start, after, 1000).0));
        assert_eq!(plans[0], plans[1]);
        // Where nothing but the id is asked for, the index alone has it.
        let from_the_index = |line: &String| {
            line.replace("SCAN d USING COVERING INDEX sqlite_autoindex_definition_1", "SCAN d")
                .replace("SEARCH d USING COVERING", "SEARCH d USING")
        };
        plans[0].iter().map(from_the_index).collect::<Vec<_>>()
    };
    let by_id = "SEARCH d USING INDEX sqlite_autoindex_definition_1 (id>?)";
    let in_due = "SEARCH u USING PRIMARY KEY (shard=? AND minute=? AND id=?)";
    let in_outcome = "SEARCH o USING COVERING INDEX outcome_failed (id=? AND minute=?)";
    let definition = "SEARCH d USING INDEX sqlite_autoindex_definition_1 (id=?)";
    let of_namespace = "SEARCH d USING INDEX definition_namespace (namespace=?)";
    let sort = "USE TEMP B-TREE FOR ORDER BY";
    for prefix in [None, Some("order-")] {
        for namespace in [None, Some("default"), Some("tenant")] {
            let file = |status| plan_of(Start::File, status, namespace, prefix);
            assert_eq!(file(None), ["SCAN d"]);
            assert_eq!(file(Some(Status::Pending)), ["SCAN d", in_due]);
            let ids = |status| plan_of(Start::Ids, status, namespace, prefix);
            assert_eq!(ids(None), [by_id]);
            assert_eq!(ids(Some(Status::Pending)), [by_id, in_due]);
            for (status, first) in [
                (Status::Failed, "SEARCH o USING COVERING INDEX outcome_failed (id>?)"),
                (Status::Canceled, "SEARCH o USING COVERING INDEX outcome_canceled (id>?)"),
                (Status::Expired, "SEARCH o USING COVERING INDEX outcome_expired (id>?)"),
            ] {
                assert_eq!(plan_of(Start::Status(status), Some(status), namespace, prefix), [first, definition]);
            }
            for (status, first) in [
                (Status::Pending, "SEARCH u USING PRIMARY KEY (shard=?)"),
                (Status::Executing, "SCAN u USING INDEX due_claimed"),
                (Status::Completed, "SCAN o"),
            ] {
                let plan = plan_of(Start::Status(status), Some(status), namespace, prefix);
                assert_eq!(plan, [first, definition, sort]);
            }
        }
        let of_tenant = |status| plan_of(Start::Namespace, status, Some("tenant"), prefix);
        assert_eq!(of_tenant(None), [of_namespace, sort]);
        assert_eq!(of_tenant(Some(Status::Pending)), [of_namespace, in_due, sort]);
        assert_eq!(of_tenant(Some(Status::Failed)), [of_namespace, in_outcome, sort]);
    }
}
