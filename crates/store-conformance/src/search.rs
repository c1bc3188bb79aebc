//! Searching: every condition of a filter, alone and together, in every order, page by page, and on a budget.

use std::time::Duration;

use domain::{Group, Namespace, Next, Status, Timer, TimerId};
use store::{Filter, ListQuery, Order, SEARCH_BUDGET, Sort};

use crate::{Fixture, NOW, Stage, ago, ahead, secs, timer};

const SORTS: [Sort; 2] = [Sort::CreatedAt, Sort::ExecuteAt];
const ORDERS: [Order; 2] = [Order::Ascending, Order::Descending];
/// Much longer than it takes, on a machine that is busy with other things.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Timers that differ in all that a filter can ask for.
async fn a_variety(stage: &Stage) -> Vec<Timer> {
    let mut ids = Vec::new();
    for (n, status) in (0..3).flat_map(|n| Status::ALL.map(|status| (n, status))) {
        for namespace in ["default", "shop", "a,b"] {
            let draft = timer(if n == 1 { "http://b.example:81/x" } else { "https://a.example/hook" });
            let mut draft = draft.namespace(namespace).created_at(ago(secs(n * 100))).due_ago(secs(n * 60)).correlation_id("c-1");
            if n != 2 {
                draft = draft
                    .key(&format!("order-{status}-{n}"))
                    .metadata(&format!(r#"{{"customer": {{"id": {n}}}, "s": "{status}"}}"#))
                    .group(if n == 0 { "g" } else { "G" });
            } else {
                draft = draft
                    .metadata(r#" {"customer":{"id":"0"},"s":"a\u0062c\u0000","list":[{"x":1.10},null]} "#)
                    .publishing("a.b");
            }
            ids.push(stage.in_status(draft, status).await.id());
        }
    }
    let bare = stage.create(timer("http://a.example/")).await;
    let claimed = stage.claim_one(&bare).await;
    stage.settle(&claimed, Next::Failed { at: NOW, error: "HTTP 500: it's \"50%\" broken_".to_owned() }).await;
    ids.push(bare.id());
    let mut timers = Vec::new();
    for id in ids {
        timers.push(stage.get(id).await);
    }
    timers
}

fn filters() -> Vec<Filter> {
    let minute_ago = ago(secs(60)).to_string();
    let past_a_minute_ago = ago(secs(59)).to_string();
    let key = format!("order-{}-1", Status::Canceled);
    [
        "{}".to_owned(),
        r#"{"status":["failed","canceled"]}"#.to_owned(),
        r#"{"status":["pending","completed"]}"#.to_owned(),
        r#"{"status":["executing"]}"#.to_owned(),
        r#"{"status":["pending","executing","failed"],"namespace":["shop"]}"#.to_owned(),
        r#"{"namespace":["default","a,b"]}"#.to_owned(),
        r#"{"namespace":["shop","a,b"]}"#.to_owned(),
        r#"{"namespace":["default","absent"]}"#.to_owned(),
        format!(r#"{{"key":"{key}"}}"#),
        format!(r#"{{"key":"{key}","namespace":["shop","default","absent"]}}"#),
        format!(r#"{{"key":"{key}","namespace":["shop"],"status":["pending"]}}"#),
        r#"{"key":"nothing","namespace":["shop"]}"#.to_owned(),
        r#"{"key_prefix":"order-p"}"#.to_owned(),
        format!(r#"{{"due_from":"{minute_ago}"}}"#),
        format!(r#"{{"due_to":"{minute_ago}"}}"#),
        format!(r#"{{"due_from":"{minute_ago}","due_to":"{past_a_minute_ago}"}}"#),
        format!(r#"{{"due_from":"{minute_ago}","status":["pending","failed"]}}"#),
        format!(r#"{{"due_from":"{minute_ago}","namespace":["shop","default"]}}"#),
        format!(r#"{{"due_to":"{past_a_minute_ago}","status":["executing","paused"],"namespace":["a,b"]}}"#),
        format!(r#"{{"due_from":"{minute_ago}","created_from":"{}"}}"#, ago(secs(99))),
        format!(r#"{{"due_to":"{past_a_minute_ago}","created_to":"{}","namespace":["shop"]}}"#, ago(secs(99))),
        format!(r#"{{"due_from":"{minute_ago}","error":"5"}}"#),
        format!(r#"{{"group":"g","namespace":["shop"],"due_from":"{minute_ago}"}}"#),
        format!(r#"{{"group":"G","namespace":["shop","a,b"],"created_from":"{}","created_to":"{NOW}"}}"#, ago(secs(100))),
        format!(r#"{{"created_from":"{}","created_to":"{NOW}","namespace":["a,b","shop"]}}"#, ago(secs(100))),
        format!(r#"{{"status":["canceled"],"created_to":"{NOW}","due_from":"{minute_ago}"}}"#),
        format!(r#"{{"created_from":"{}","created_to":"{}"}}"#, ago(secs(100)), ago(secs(50))),
        format!(r#"{{"created_from":"{}","status":["failed"],"namespace":["shop","default"]}}"#, ago(secs(100))),
        r#"{"group":"g"}"#.to_owned(),
        r#"{"group":"G","namespace":["shop"]}"#.to_owned(),
        r#"{"group":"g","namespace":["default","a,b","absent"]}"#.to_owned(),
        r#"{"group":"G","status":["paused"]}"#.to_owned(),
        r#"{"group":"g","namespace":["a,b"],"status":["pending","failed"]}"#.to_owned(),
        r#"{"group":"absent"}"#.to_owned(),
        r#"{"correlation_id":"c-1","status":["completed"]}"#.to_owned(),
        r#"{"correlation_id":"c"}"#.to_owned(),
        r#"{"destination":"a.example:443"}"#.to_owned(),
        r#"{"destination":"b.example:81","namespace":["shop"]}"#.to_owned(),
        r#"{"destination":"a.example:80"}"#.to_owned(),
        r#"{"destination":"a.b"}"#.to_owned(),
        r#"{"destination":"example"}"#.to_owned(),
        r#"{"metadata":{"customer.id":"1"}}"#.to_owned(),
        r#"{"metadata":{"customer.id":"0"}}"#.to_owned(),
        r#"{"metadata":{"customer.id":"1","s":"failed"},"namespace":["a,b"]}"#.to_owned(),
        r#"{"metadata":{"s":"abc\u0000"}}"#.to_owned(),
        r#"{"metadata":{"list.0.x":"1.10"}}"#.to_owned(),
        r#"{"metadata":{"list.0.x":"1.1"}}"#.to_owned(),
        r#"{"metadata":{"list.1":"null"}}"#.to_owned(),
        r#"{"metadata":{"customer":"1"}}"#.to_owned(),
        r#"{"members":{"customer":"{\"id\":1}"}}"#.to_owned(),
        r#"{"members":{"s":"\"failed\""}}"#.to_owned(),
        r#"{"error":"HTTP 500"}"#.to_owned(),
        r#"{"error":"it's \"50%\" broken_"}"#.to_owned(),
        r#"{"error":"http"}"#.to_owned(),
        r#"{"error":"a\u0000b"}"#.to_owned(),
        r#"{"error":"5","status":["pending"]}"#.to_owned(),
    ]
    .iter()
    .map(|json| serde_json::from_str(json).expect(json))
    .collect()
}

fn expected(timers: &[Timer], filter: &Filter, sort: Sort, order: Order) -> Vec<TimerId> {
    let place = |timer: &&Timer| match sort {
        Sort::CreatedAt => (timer.created_at, timer.id()),
        Sort::ExecuteAt => (timer.execute_at, timer.id()),
    };
    let mut found: Vec<_> = timers.iter().filter(|timer| filter.fits(timer)).collect();
    found.sort_by_key(place);
    if order == Order::Descending {
        found.reverse();
    }
    found.into_iter().map(Timer::id).collect()
}

/// All that match, page by page, with how many pages and whether every one was complete.
async fn read_on(stage: &Stage, query: &ListQuery) -> (Vec<TimerId>, usize, bool) {
    let (mut found, mut pages, mut complete) = (Vec::new(), 0, true);
    let mut query = query.clone();
    loop {
        let page = stage.store.list(&query).await.unwrap();
        assert!(page.timers.len() <= query.limit as usize);
        assert!(page.complete || page.next.is_some(), "what is not complete goes on");
        found.extend(page.timers.iter().map(|timer| timer.id));
        pages += 1;
        complete &= page.complete;
        assert!(page.next.is_none() || page.next != query.after, "every page comes further");
        query.after = page.next;
        if page.next.is_none() {
            return (found, pages, complete);
        }
    }
}

pub async fn every_condition_finds_what_matches_in_every_order(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = a_variety(&stage).await;
    for filter in filters() {
        for (sort, order) in SORTS.into_iter().flat_map(|sort| ORDERS.map(|order| (sort, order))) {
            let wanted = expected(&timers, &filter, sort, order);
            for limit in [100, 4] {
                let query = ListQuery { filter: filter.clone(), sort, order, limit, budget: TIMEOUT, ..ListQuery::default() };
                let (found, _, _) = read_on(&stage, &query).await;
                assert_eq!(found, wanted, "{filter:?} {sort:?} {order:?} {limit}");
            }
            let query =
                ListQuery { filter: filter.clone(), sort, order, offset: 2, limit: 3, budget: TIMEOUT, ..ListQuery::default() };
            let page = stage.store.list(&query).await.unwrap();
            assert_eq!(page.total, None, "a total that was not asked for");
            let found: Vec<_> = page.timers.iter().map(|timer| timer.id).collect();
            assert_eq!(found, wanted.iter().copied().skip(2).take(3).collect::<Vec<_>>(), "{filter:?} {sort:?} {order:?}");
        }
    }
}

/// Of those that look at all that match, to find a page of them.
pub async fn a_page_says_how_many_match_or_leaves_that_to_another_search(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = a_variety(&stage).await;
    for filter in filters() {
        for (sort, order) in SORTS.into_iter().flat_map(|sort| ORDERS.map(|order| (sort, order))) {
            let wanted = expected(&timers, &filter, sort, order).len() as u64;
            let mut query =
                ListQuery { filter: filter.clone(), sort, order, limit: 4, total_within: Some(TIMEOUT), ..ListQuery::default() };
            query.offset = 1;
            query.budget = TIMEOUT;
            loop {
                let page = stage.store.list(&query).await.unwrap();
                assert!(
                    page.total.is_none_or(|total| total == wanted),
                    "{filter:?} {sort:?} {order:?} {:?} {wanted}",
                    page.total
                );
                query = ListQuery { after: page.next, offset: 0, ..query };
                if query.after.is_none() {
                    break;
                }
            }
        }
    }
}

pub async fn every_condition_counts_what_matches(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = a_variety(&stage).await;
    for filter in filters() {
        let wanted = timers.iter().filter(|timer| filter.fits(timer)).count() as u64;
        assert_eq!(stage.store.count(&filter, TIMEOUT).await.unwrap(), wanted, "{filter:?}");
    }
    // Counted by hand: one in each status and namespace.
    for (group, timers) in [("g", 21), ("G", 21), ("absent", 0)] {
        let filter = Filter { group: Some(Group::parse(group).unwrap()), ..Filter::default() };
        assert_eq!(stage.store.count(&filter, TIMEOUT).await.unwrap(), timers, "{group}");
    }
}

/// Three thousand timers, one of a hundred in a namespace of its own, one of five hundred with metadata.
async fn a_crowd(stage: &Stage) -> Vec<Timer> {
    let draft = |n: u32| {
        let namespace = if n.is_multiple_of(100) { "rare" } else { "default" };
        let draft = timer("http://a.example/").numbered(u64::from(n * 7 % 3_000)).namespace(namespace);
        let draft = draft.created_at(ago(secs(n / 3))).due_in(secs(n / 2));
        if n.is_multiple_of(500) { draft.metadata(r#"{"wanted": true}"#) } else { draft }
    };
    stage.create_new((0..3_000).map(draft).collect()).await
}

pub async fn a_search_without_time_goes_on_and_finds_everything_once(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = a_crowd(&stage).await;
    for json in [
        r#"{"metadata":{"wanted":"true"}}"#,
        r#"{"key_prefix":"x"}"#,
        r#"{"namespace":["rare"],"metadata":{"wanted":"true"}}"#,
        "{}",
    ] {
        let filter: Filter = serde_json::from_str(json).unwrap();
        for (sort, order) in SORTS.into_iter().flat_map(|sort| ORDERS.map(|order| (sort, order))) {
            let query =
                ListQuery { filter: filter.clone(), sort, order, limit: 200, budget: Duration::ZERO, ..ListQuery::default() };
            let (found, pages, complete) = read_on(&stage, &query).await;
            assert_eq!(found, expected(&timers, &filter, sort, order), "{json} {sort:?} {order:?}");
            let is_rare = filter.namespaces.is_empty() && filter != Filter::default();
            assert!(!is_rare || (pages > 1 && !complete), "{json} {sort:?}: {pages} pages");
        }
    }
}

pub async fn a_search_says_how_many_timers_it_looked_at(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    a_crowd(&stage).await;
    let scanned = async |json: &str, limit| {
        let filter = serde_json::from_str(json).unwrap();
        stage.store.list(&ListQuery { filter, limit, budget: TIMEOUT, ..ListQuery::default() }).await.unwrap().scanned
    };
    assert!((10..=3_000).contains(&scanned("{}", 10).await));
    assert_eq!(scanned(r#"{"metadata":{"wanted":"true"}}"#, 100).await, 3_000);
    assert!(scanned(r#"{"namespace":["rare"],"metadata":{"wanted":"true"}}"#, 100).await <= 3_000);
}

/// A timer that moves while its list is read is shown where it is then; those that stay are shown once.
pub async fn timers_that_stay_are_shown_once_while_others_come_and_go(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = a_crowd(&stage).await;
    let rare = Filter { namespaces: vec![Namespace::parse("rare").unwrap()], ..Filter::default() };
    let mut query =
        ListQuery { filter: rare.clone(), order: Order::Ascending, limit: 7, budget: SEARCH_BUDGET, ..ListQuery::default() };
    let mut found = Vec::new();
    let mut round = 0;
    loop {
        let page = stage.store.list(&query).await.unwrap();
        found.extend(page.timers.iter().map(|timer| timer.id));
        let Some(next) = page.next else { break };
        query.after = Some(next);
        stage.create(timer("http://a.example/").namespace("rare").created_at(ago(secs(5_000 + round)))).await;
        stage.create(timer("http://a.example/").namespace("other").created_at(ahead(secs(round)))).await;
        round += 1;
    }
    assert_eq!(found, expected(&timers, &rare, Sort::CreatedAt, Order::Ascending));
}
