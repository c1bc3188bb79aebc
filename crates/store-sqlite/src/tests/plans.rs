//! No statement may walk through a whole table once it is large: SQLite says how it would run each of them.

use domain::{Namespace, Next, Status};
use store::{Cursor, Filter, ListQuery, Order, Sort, Store};
use store_conformance::{NOW, timer};

use super::{LATER, Place, claim, create, numbered, own};
use crate::{
    change, claim as claims, create as creates, due, ownership, purge,
    read::{self, Walk},
    rows, settle,
};

async fn filled() -> (Place, rusqlite::Connection) {
    let place = Place::new();
    let store = place.open();
    let tenures = own(&store, 1).await;
    let timers = create(&store, numbered(0..4000)).await;
    create(&store, (4000..5000).map(|n| timer("http://a.example/").numbered(n).namespace("tenant").build()).collect()).await;
    let claimed = claim(&store, &tenures, &timers[..2000]).await;
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
        due::DUE_FROM_START,
        due::DUE_AFTER,
        claims::STANDING,
        claims::TAKE,
        claims::DEFINITION_BY_ID,
        claims::EXPIRED,
        settle::FINISH,
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
        change::CANCEL,
        rows::TIMER_BY_ID,
        ownership::EPOCH,
    ] {
        let plan = plan(&shell, sql);
        assert!(!plan.is_empty() && !plan.iter().any(|step| step.starts_with("SCAN")), "{sql}\n{plan:#?}");
    }
}

#[tokio::test]
async fn due_timers_are_sorted_only_inside_a_minute() {
    let (_place, shell) = filled().await;
    for sql in [due::DUE_FROM_START, due::DUE_AFTER] {
        let plan = plan(&shell, sql);
        assert!(plan.contains(&"USE TEMP B-TREE FOR LAST 2 TERMS OF ORDER BY".to_owned()), "{sql}\n{plan:#?}");
    }
}

#[tokio::test]
async fn a_list_walks_along_the_index_of_its_order() {
    let (_place, shell) = filled().await;
    let statuses = [None].into_iter().chain(Status::ALL.map(Some));
    for status in statuses {
        for namespace in [None, Some("default"), Some("tenant")] {
            for (sort, order) in [Sort::CreatedAt, Sort::ExecuteAt]
                .into_iter()
                .flat_map(|sort| [(sort, Order::Ascending), (sort, Order::Descending)])
            {
                for after in [None, Some(Cursor { at: NOW, id: timer("http://a.example/").id() })] {
                    let namespace = namespace.map(|name| Namespace::parse(name).unwrap());
                    let query = ListQuery { filter: Filter { status, namespace, key_prefix: None }, sort, order, limit: 50, offset: 0, after };
                    assert_walks_in_order(&shell, &query);
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

#[tokio::test]
async fn a_list_of_a_rare_status_starts_from_those_that_have_it() {
    let (_place, shell) = filled().await;
    for (status, start) in [
        (Status::Executing, "SEARCH u USING PRIMARY KEY (shard=?)"),
        (Status::Pending, "SEARCH u USING PRIMARY KEY (shard=?)"),
        (Status::Failed, "SCAN o USING INDEX outcome_failed"),
        (Status::Canceled, "SCAN o USING INDEX outcome_canceled"),
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
