use domain::{Namespace, NewTimer};
use store::{Filter, ListQuery, TimerStore};
use store_conformance::timer;

use super::{Place, create, numbered};
use crate::{SqliteStore, default_index};

fn of_tenant(numbers: std::ops::Range<u64>) -> Vec<NewTimer> {
    numbers.map(|n| timer("http://a.example/").numbered(n).namespace("tenant").build()).collect()
}

/// How many timers a list of the default namespace finds, and how many it looks at.
async fn listed(store: &SqliteStore) -> (usize, u64) {
    let filter = Filter { namespaces: vec![Namespace::default()], ..Filter::default() };
    let page = store.list(&ListQuery { filter, limit: 10, ..ListQuery::default() }).await.unwrap();
    (page.timers.len(), page.scanned)
}

#[tokio::test]
async fn it_is_built_with_the_first_timer_of_another_namespace() {
    let place = Place::new();
    let store = place.open();
    create(&store, numbered(0..1)).await;
    assert!(!default_index::is_there(&place.shell()).unwrap());
    create(&store, of_tenant(1..500)).await;
    assert!(default_index::is_there(&place.shell()).unwrap());
    assert_eq!(listed(&store).await, (1, 1));
}

#[tokio::test]
async fn where_there_are_many_timers_it_is_built_at_the_next_start() {
    let place = Place::new();
    let store = place.open();
    create(&store, numbered(0..10_001)).await;
    create(&store, of_tenant(20_000..20_500)).await;
    assert!(!default_index::is_there(&place.shell()).unwrap());
    assert!(listed(&store).await.1 > 500);
    drop(store);
    let store = place.open();
    assert!(default_index::is_there(&place.shell()).unwrap());
    assert_eq!(listed(&store).await, (10, 11));
}
