//! Listing and counting: filters, orders, pages.

use domain::{Namespace, Next, Status, TimerId};
use store::{Changed, Cursor, DueEntry, Filter, ListQuery, Order, Page, Sort, Summary};

use crate::{
    Draft, Fixture, NOW, Stage, ago, ahead, secs,
    stage::{entry, retried},
    timer,
};

const SORTS: [Sort; 2] = [Sort::CreatedAt, Sort::ExecuteAt];
const ORDERS: [Order; 2] = [Order::Ascending, Order::Descending];

fn everything() -> ListQuery {
    ListQuery { order: Order::Ascending, limit: 1_000, ..ListQuery::default() }
}

async fn page(stage: &Stage, query: &ListQuery) -> Page {
    stage.store.list(query).await.unwrap()
}

fn ids(page: &Page) -> Vec<TimerId> {
    page.timers.iter().map(|summary| summary.id).collect()
}

/// All matching timers, page by page.
async fn read_on(stage: &Stage, query: &ListQuery) -> Vec<TimerId> {
    let (mut read, mut after) = (Vec::new(), None);
    loop {
        let page = page(stage, &ListQuery { after, ..query.clone() }).await;
        read.extend(ids(&page));
        after = page.next;
        if after.is_none() {
            return read;
        }
    }
}

/// Forty timers whose times repeat, so that the id must decide; created and due in different orders.
async fn a_crowd(stage: &Stage) -> Vec<Summary> {
    let draft = |n: u32| {
        timer("http://a.example/")
            .numbered(u64::from(n * 37 % 40))
            .created_at(ago(secs(n % 4)))
            .due_in(secs(60 * (n % 3) + n % 2))
    };
    stage.create_new((0..40).map(draft).collect()).await;
    let page = page(stage, &everything()).await;
    assert_eq!(page.timers.len(), 40);
    page.timers
}

fn in_order(mut summaries: Vec<Summary>, sort: Sort, order: Order) -> Vec<TimerId> {
    let place = |summary: &Summary| (summary.cursor(sort).at, summary.id);
    summaries.sort_by_key(place);
    if order == Order::Descending {
        summaries.reverse();
    }
    summaries.iter().map(|summary| summary.id).collect()
}

pub async fn an_empty_store_lists_and_counts_nothing(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    assert_eq!(page(&stage, &everything()).await, Page::default());
    assert_eq!(stage.store.count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 0);
}

pub async fn a_summary_shows_what_get_shows(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let full = |key: &str| {
        timer("http://a.example/").namespace("tenant").key(key).group("g").correlation_id("c").created_at(ago(secs(9)))
    };
    for status in Status::ALL {
        stage.in_status(full(status.as_str()), status).await;
    }
    stage.create(timer("http://a.example/").publishing("a.b")).await;
    retried(&stage, full("retried"), ahead(secs(5))).await;

    let page = page(&stage, &everything()).await;

    assert_eq!(page.timers.len(), Status::ALL.len() + 2);
    for summary in page.timers {
        let timer = stage.get(summary.id).await;
        let expected = Summary {
            id: timer.id(),
            namespace: timer.definition.namespace.clone(),
            key: timer.definition.key.clone(),
            group: timer.definition.group.clone(),
            callback_kind: timer.definition.callback.kind().to_owned(),
            correlation_id: timer.definition.correlation_id.clone(),
            execute_at: timer.execute_at,
            status: timer.status,
            attempt: timer.attempt,
            last_error: timer.last_error.clone(),
            executed_at: timer.executed_at,
            created_at: timer.created_at,
            updated_at: timer.updated_at,
            revision: timer.revision,
        };
        assert_eq!(summary, expected);
    }
}

/// From one timer of the first status up, in each of two namespaces: every filter has a count of its own.
async fn more_and_more_of_each(stage: &Stage) -> Vec<(Filter, usize)> {
    let namespace = |name: &str| Some(Namespace::parse(name).unwrap());
    let mut filters = Vec::new();
    let mut by_status = [0; Status::ALL.len()];
    for (name, factor) in [("default", 1), ("tenant", 2)] {
        let mut in_namespace = 0;
        for (index, status) in Status::ALL.into_iter().enumerate() {
            let count = (index + 1) * factor;
            for n in 0..count {
                stage.in_status(timer("http://a.example/").namespace(name).key(&format!("{status}-{n}")), status).await;
            }
            filters.push((
                Filter { status: vec![status], namespaces: namespace(name).into_iter().collect(), ..Filter::default() },
                count,
            ));
            by_status[index] += count;
            in_namespace += count;
        }
        filters.push((Filter { namespaces: namespace(name).into_iter().collect(), ..Filter::default() }, in_namespace));
    }
    for (status, count) in Status::ALL.into_iter().zip(by_status) {
        filters.push((Filter { status: vec![status], ..Filter::default() }, count));
    }
    filters.push((Filter::default(), by_status.iter().sum()));
    filters.push((Filter { namespaces: namespace("absent").into_iter().collect(), ..Filter::default() }, 0));
    filters.push((Filter { namespaces: namespace("Tenant").into_iter().collect(), ..Filter::default() }, 0));
    filters
}

pub async fn every_filter_lists_and_counts_what_matches(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for (filter, count) in more_and_more_of_each(&stage).await {
        assert_eq!(stage.store.count(&filter, store::SEARCH_BUDGET).await.unwrap(), count as u64, "count of {filter:?}");
        for (sort, order) in [(Sort::CreatedAt, Order::Descending), (Sort::ExecuteAt, Order::Ascending)] {
            let listed = page(&stage, &ListQuery { filter: filter.clone(), sort, order, ..everything() }).await;
            assert_eq!(listed.timers.len(), count, "list of {filter:?} by {sort:?}");
            for summary in listed.timers {
                assert!(filter.fits_status(summary.status), "{filter:?} {summary:?}");
                assert!(filter.namespaces.is_empty() || filter.namespaces.contains(&summary.namespace), "{filter:?} {summary:?}");
            }
        }
    }
}

pub async fn a_key_prefix_narrows_lists_and_counts(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let draft = || timer("http://a.example/").namespace("mine");
    let mut wanted = Vec::new();
    for (n, key) in ["k%", "k%1", "k_1", "kx1", "K%1", "x"].into_iter().enumerate() {
        let made = stage.create(draft().key(key).due_in(secs(n as u32))).await;
        wanted.push((key, made.id()));
    }
    stage.create(draft()).await;
    stage.create(timer("http://a.example/").namespace("theirs").key("k%1")).await;
    stage.in_status(draft().key("k%2"), Status::Canceled).await;
    for prefix in ["k", "k%", "k_", "K", "kx1", "kx12", "y"] {
        let namespace = Some(Namespace::parse("mine").unwrap());
        let filter = Filter {
            status: vec![Status::Pending],
            namespaces: namespace.into_iter().collect(),
            key_prefix: Some(prefix.to_owned()),
            ..Filter::default()
        };
        let expected: Vec<_> = wanted.iter().filter(|(key, _)| key.starts_with(prefix)).map(|(_, id)| *id).collect();
        let query = ListQuery { filter: filter.clone(), sort: Sort::ExecuteAt, ..everything() };
        assert_eq!(ids(&page(&stage, &query).await), expected, "{prefix}");
        assert_eq!(stage.store.count(&filter, store::SEARCH_BUDGET).await.unwrap(), expected.len() as u64, "{prefix}");
        assert_eq!(read_on(&stage, &ListQuery { limit: 1, ..query }).await, expected, "{prefix}, one by one");
    }
}

pub async fn every_order_is_by_time_then_by_id(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let crowd = a_crowd(&stage).await;
    for sort in SORTS {
        for order in ORDERS {
            let listed = page(&stage, &ListQuery { sort, order, ..everything() }).await;
            assert_eq!(ids(&listed), in_order(crowd.clone(), sort, order), "{sort:?} {order:?}");
            assert_eq!(listed.next, None, "everything fits on this page");
        }
    }
}

pub async fn pages_by_offset_follow_one_another(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let crowd = a_crowd(&stage).await;
    for sort in SORTS {
        for order in ORDERS {
            let mut read = Vec::new();
            for offset in (0..45).step_by(7) {
                read.extend(ids(&page(&stage, &ListQuery { sort, order, limit: 7, offset, ..everything() }).await));
            }
            assert_eq!(read, in_order(crowd.clone(), sort, order), "{sort:?} {order:?}");
        }
    }
    let behind = page(&stage, &ListQuery { offset: 40, ..everything() }).await;
    assert_eq!((behind.timers, behind.next, behind.complete), (vec![], None, true));
}

pub async fn pages_by_cursor_neither_repeat_nor_miss_a_timer(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let crowd = a_crowd(&stage).await;
    for sort in SORTS {
        for order in ORDERS {
            // Eight divides forty: the last page is full, and still says that it is the last.
            for limit in [1, 7, 8, 39, 40, 41] {
                let (mut read, mut after, mut pages) = (Vec::new(), None, 0);
                loop {
                    let page = page(&stage, &ListQuery { sort, order, limit, after, ..everything() }).await;
                    assert!(page.timers.len() <= limit as usize);
                    assert_eq!(page.next.is_some(), page.next == page.timers.last().map(|last| last.cursor(sort)));
                    read.extend(ids(&page));
                    (after, pages) = (page.next, pages + 1);
                    if after.is_none() {
                        break;
                    }
                }
                assert_eq!(read, in_order(crowd.clone(), sort, order), "{sort:?} {order:?} in pages of {limit}");
                assert_eq!(pages, 40_u32.div_ceil(limit), "{sort:?} {order:?} in pages of {limit}");
            }
        }
    }
}

pub async fn cursors_work_together_with_filters(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let drafts = |namespace: &'static str| {
        (0..10).map(move |n: u32| timer("http://a.example/").namespace(namespace).key(&n.to_string()).due_in(secs(n / 2)))
    };
    stage.create_new(drafts("mine").chain(drafts("theirs")).collect::<Vec<Draft>>()).await;
    let filter =
        Filter { status: vec![Status::Pending], namespaces: vec![Namespace::parse("mine").unwrap()], ..Filter::default() };
    for sort in SORTS {
        for order in ORDERS {
            let query = ListQuery { filter: filter.clone(), sort, order, ..everything() };
            let whole = ids(&page(&stage, &query).await);
            let read = read_on(&stage, &ListQuery { limit: 3, ..query }).await;
            assert_eq!((read.len(), read), (10, whole), "{sort:?} {order:?}");
        }
    }
}

pub async fn an_offset_counts_from_the_cursor(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let crowd = a_crowd(&stage).await;
    for sort in SORTS {
        for order in ORDERS {
            let whole = in_order(crowd.clone(), sort, order);
            let first = page(&stage, &ListQuery { sort, order, limit: 10, ..everything() }).await;
            let query = ListQuery { sort, order, limit: 5, offset: 3, after: first.next, ..everything() };
            assert_eq!(ids(&page(&stage, &query).await), whole[13..18], "{sort:?} {order:?}");
        }
    }
}

pub async fn timers_that_come_and_go_do_not_shift_pages_by_cursor(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    a_crowd(&stage).await;
    let query = ListQuery { sort: Sort::CreatedAt, order: Order::Descending, limit: 10, ..everything() };
    let whole = ids(&page(&stage, &ListQuery { limit: 40, ..query.clone() }).await);
    let first = page(&stage, &query).await;

    // Newer timers come in front, and one that was read ends and is purged: the cursor's own row is gone.
    stage.create(timer("http://a.example/").numbered(1_000).created_at(ahead(secs(5)))).await;
    stage.cancel(first.next.unwrap().id).await;
    assert_eq!(stage.store.purge(ahead(secs(1)), 10).await.unwrap(), 1);

    let second = page(&stage, &ListQuery { after: first.next, ..query }).await;
    assert_eq!(ids(&second), whole[10..20]);
}

pub async fn a_cursor_may_lie_between_timers(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let drafts = (0..4).map(|n: u32| timer("http://a.example/").numbered(u64::from(n)).due_in(secs(n * 10)));
    let timers = stage.create_new(drafts.collect()).await;
    let after = Some(Cursor { at: ahead(secs(15)), id: timer("http://a.example/").numbered(0).id() });
    let query = ListQuery { sort: Sort::ExecuteAt, after, ..everything() };
    assert_eq!(ids(&page(&stage, &query).await), [timers[2].id(), timers[3].id()]);
    let query = ListQuery { order: Order::Descending, ..query };
    assert_eq!(ids(&page(&stage, &query).await), [timers[1].id(), timers[0].id()]);
}

pub async fn a_moved_timer_moves_in_the_list(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let early = stage.create(timer("http://a.example/").numbered(1).due_in(secs(10))).await;
    let late = stage.create(timer("http://a.example/").numbered(2).due_in(secs(20))).await;
    let mut changed = early.clone();
    changed.execute_at = ahead(secs(3_600));
    stage.update(&changed, NOW).await;
    let query = ListQuery { sort: Sort::ExecuteAt, ..everything() };
    assert_eq!(ids(&page(&stage, &query).await), [late.id(), early.id()]);

    let claimed = stage.claim_one(&late).await;
    stage.settle(&claimed, Next::Again { at: ahead(secs(7_200)) }).await;
    assert_eq!(ids(&page(&stage, &query).await), [early.id(), late.id()]);
}

pub async fn a_timer_that_is_tried_again_keeps_its_place_in_the_list(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let drafts = (1..=3).map(|n: u32| timer("http://a.example/").numbered(u64::from(n)).due_in(secs(n * 50)));
    let timers = stage.create_new(drafts.collect()).await;
    let expected: Vec<_> = timers.iter().map(|timer| timer.id()).collect();
    let in_place = async |what: &str| {
        for order in ORDERS {
            let query = ListQuery { sort: Sort::ExecuteAt, order, limit: 1, ..everything() };
            let mut read = read_on(&stage, &query).await;
            if order == Order::Descending {
                read.reverse();
            }
            assert_eq!(read, expected, "{what}, {order:?}");
        }
    };
    // Later in the same minute, then long after all other timers.
    let mut middle = timers[1].clone();
    let mut at = middle.execute_at;
    for later in [ahead(secs(110)), ahead(secs(7_200))] {
        let claimed = stage.claim(&[DueEntry { at, ..entry(&middle) }]).await;
        stage.settle(&claimed[0], Next::Pending { at: later, attempt: 1, error: Some("timeout".to_owned()) }).await;
        at = later;
        in_place("before a retry").await;
    }
    let claimed = stage.claim(&[DueEntry { at, ..entry(&middle) }]).await;
    in_place("during a retry").await;
    stage.settle(&claimed[0], Next::Failed { at: NOW, error: "HTTP 500".to_owned() }).await;
    in_place("after the last retry").await;
    assert!(matches!(stage.store.reopen(middle.id(), None, ahead(secs(9_000))).await.unwrap(), Changed::Done(_)));
    in_place("opened again").await;
    middle = stage.cancel(middle.id()).await;
    assert_eq!(middle.execute_at, timers[1].execute_at);
    in_place("canceled").await;
}

pub async fn counts_follow_a_timer_through_its_life(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for name in ["default", "tenant"] {
        let is_in = async |expected: Option<Status>| {
            for status in [None].into_iter().chain(Status::ALL.map(Some)) {
                let filter = Filter {
                    status: status.into_iter().collect(),
                    namespaces: Some(Namespace::parse(name).unwrap()).into_iter().collect(),
                    ..Filter::default()
                };
                let there = expected.is_some() && (status.is_none() || status == expected);
                let everywhere = Filter { namespaces: vec![], ..filter.clone() };
                for filter in [filter, everywhere] {
                    assert_eq!(
                        stage.store.count(&filter, store::SEARCH_BUDGET).await.unwrap(),
                        u64::from(there),
                        "{expected:?}, {filter:?}"
                    );
                }
            }
        };
        let timer = stage.create(timer("http://a.example/").namespace(name).key("k")).await;
        is_in(Some(Status::Pending)).await;
        let claimed = stage.claim_one(&timer).await;
        is_in(Some(Status::Executing)).await;
        stage.settle(&claimed, Next::Pending { at: timer.execute_at, attempt: 1, error: None }).await;
        is_in(Some(Status::Pending)).await;
        let claimed = stage.claim_one(&timer).await;
        stage.settle(&claimed, Next::Failed { at: NOW, error: "HTTP 500".to_owned() }).await;
        is_in(Some(Status::Failed)).await;
        assert!(matches!(stage.store.reopen(timer.id(), None, NOW).await.unwrap(), Changed::Done(_)));
        is_in(Some(Status::Pending)).await;
        stage.cancel(timer.id()).await;
        is_in(Some(Status::Canceled)).await;
        assert_eq!(stage.store.purge(ahead(secs(1)), 10).await.unwrap(), 1);
        is_in(None).await;
    }
}
