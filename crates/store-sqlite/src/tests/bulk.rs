//! However the search for what matches is begun, it finds the same.

use domain::{Namespace, Status, TimerId};
use store::{Filter, TimerStore};
use store_conformance::{NOW, timer};

use super::{LATER, Place, create, one_in_each_status};
use crate::{
    SqliteStore,
    bulk::{Start, matching_from},
    read::{self, FEW, Walk},
};

const PAGE: usize = 3;

/// Timers in every status, in two namespaces, with keys and without.
async fn filled(store: &SqliteStore) {
    one_in_each_status(store).await;
    for namespace in ["default", "tenant"] {
        let keyed = |n: usize| timer("http://a.example/").namespace(namespace).key(&format!("{}-{n}", ["a", "b"][n % 2])).build();
        let timers = create(store, (0..20).map(keyed).collect()).await;
        let some: Vec<_> = timers.iter().skip(1).step_by(3).map(|timer| timer.id()).collect();
        assert!(store.cancel_all(&some, NOW).await.unwrap().into_iter().all(|canceled| canceled));
    }
}

fn every_filter() -> impl Iterator<Item = Filter> {
    let statuses = [None].into_iter().chain(Status::ALL.map(Some));
    let namespaces = [None, Some("default"), Some("tenant"), Some("nobody")];
    let prefixes = [None, Some(""), Some("a-"), Some("b-1"), Some("c")];
    statuses.flat_map(move |status| {
        namespaces.into_iter().flat_map(move |namespace| {
            let namespace = namespace.map(|name| Namespace::parse(name).unwrap());
            prefixes.map(|prefix| Filter { status, namespace: namespace.clone(), key_prefix: prefix.map(str::to_owned) })
        })
    })
}

fn every_start(filter: &Filter) -> Vec<Start> {
    let named = filter.namespace.as_ref().filter(|namespace| namespace.as_str() != Namespace::DEFAULT);
    let mut starts = vec![Start::Ids];
    starts.extend(filter.status.map(Start::Status));
    starts.extend(named.map(|_| Start::Namespace));
    starts
}

#[tokio::test]
async fn every_start_finds_the_same_and_counts_agree() {
    let place = Place::new();
    let store = place.open();
    filled(&store).await;
    let shell = place.shell();
    let mut found_in_all = 0;
    for filter in every_filter() {
        let expected: Vec<_> = store.matching(&filter, None, 1000).await.unwrap();
        assert!(expected.is_sorted(), "{filter:?}");
        for start in every_start(&filter) {
            let mut found = Vec::new();
            loop {
                let after: Option<TimerId> = found.last().copied();
                let page = matching_from(&shell, start, &filter, after, PAGE).unwrap();
                let is_last = page.len() < PAGE;
                found.extend(page);
                if is_last {
                    break;
                }
            }
            assert_eq!(found, expected, "{start:?} {filter:?}");
        }
        assert_eq!(store.count(&filter).await.unwrap(), expected.len() as u64, "{filter:?}");
        for walk in [Walk::InOrder, Walk::Few, Walk::Namespace] {
            let Some(prefix) = &filter.key_prefix else { continue };
            let (sql, parameters) = read::count_statement(&filter, prefix, walk);
            let parameters = rusqlite::params_from_iter(parameters);
            let count: i64 = shell.query_row(&sql, parameters, |row| row.get(0)).unwrap();
            assert_eq!(count, expected.len() as i64, "{walk:?} {filter:?}");
        }
        found_in_all += expected.len();
    }
    assert!(found_in_all > 200, "only {found_in_all} timers were found by all filters together");
}

#[tokio::test]
async fn pages_by_prefix_follow_one_another_though_only_the_last_is_read_from_the_file() {
    let place = Place::new();
    let store = place.open();
    let many = usize::try_from(FEW).unwrap() + 1;
    create(&store, (0..many).map(|n| timer("http://a.example/").key(&format!("{}-{n}", n % 1000)).build()).collect()).await;
    let filter = Filter { key_prefix: Some("7-".to_owned()), status: Some(Status::Pending), ..Filter::default() };
    assert_eq!(Start::choose(&place.shell(), &filter).unwrap(), Start::Ids);
    let all = store.matching(&filter, None, 1000).await.unwrap();
    assert_eq!(all.len(), many / 1000);
    assert!(all.is_sorted());
    for limit in [0, 1, 4, 9, 10] {
        let first = store.matching(&filter, None, limit).await.unwrap();
        assert_eq!(first, all[..limit]);
        let rest = store.matching(&filter, first.last().copied(), 1000).await.unwrap();
        assert_eq!(rest, all[limit..]);
    }
}

#[tokio::test]
async fn the_search_starts_where_least_is_in_the_way() {
    let place = Place::new();
    let store = place.open();
    let many = FEW + 1;
    create(&store, (0..many).map(|n| timer("http://a.example/").numbered(n).namespace("large").build()).collect()).await;
    create(&store, vec![timer("http://a.example/").namespace("small").build()]).await;
    let shell = place.shell();
    for (status, namespace, start) in [
        (None, None, Start::Ids),
        (None, Some("default"), Start::Ids),
        (None, Some("large"), Start::Ids),
        (None, Some("small"), Start::Namespace),
        (Some(Status::Pending), None, Start::Ids),
        (Some(Status::Pending), Some("large"), Start::Ids),
        (Some(Status::Pending), Some("small"), Start::Namespace),
        (Some(Status::Executing), None, Start::Status(Status::Executing)),
        (Some(Status::Failed), Some("large"), Start::Status(Status::Failed)),
        (Some(Status::Completed), None, Start::Status(Status::Completed)),
    ] {
        let namespace = namespace.map(|name| Namespace::parse(name).unwrap());
        let filter = Filter { status, namespace, key_prefix: None };
        assert_eq!(Start::choose(&shell, &filter).unwrap(), start, "{filter:?}");
    }
    let ids = store.matching(&Filter::default(), None, 1000).await.unwrap();
    assert_eq!(store.cancel_all(&ids, LATER).await.unwrap(), vec![true; 1000]);
    let pending = Filter { status: Some(Status::Pending), ..Filter::default() };
    assert_eq!(Start::choose(&shell, &pending).unwrap(), Start::Status(Status::Pending), "few are left");
}
