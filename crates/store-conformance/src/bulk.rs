//! Finding and canceling many timers at once, and trying a failed one again.

use std::{collections::BTreeMap, sync::Arc};

use domain::{Event, Group, Namespace, Next, Status, Timer, TimerId};
use store::{Changed, Filter, ListQuery, Promise};

use crate::{
    Fixture, NOW, Stage, ahead,
    fixture::skip,
    secs,
    stage::{entry, entry_at},
    timer,
};

/// The ids of the timers that match, in their order.
async fn found(stage: &Stage, filter: &Filter) -> Vec<TimerId> {
    let page = stage.store.list(&ListQuery { filter: filter.clone(), ..ListQuery::default() }).await.unwrap();
    let mut ids: Vec<_> = page.timers.iter().map(|timer| timer.id).collect();
    ids.sort_unstable();
    ids
}

pub async fn a_key_prefix_is_taken_literally(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let mut by_key = Vec::new();
    for key in ["a%b", "a%bc", "a_b", "axb", "A%B", "a\\b", "é", "éa", "e\u{301}", "a"] {
        by_key.push((key, stage.create(timer("http://a.example/").key(key)).await.id()));
    }
    for prefix in ["a%", "a_", "a\\", "é", "a", "A", "e", "zz", "a%bc"] {
        let filter = Filter { key_prefix: Some(prefix.to_owned()), ..Filter::default() };
        let mut expected: Vec<_> = by_key.iter().filter(|(key, _)| key.starts_with(prefix)).map(|(_, id)| *id).collect();
        expected.sort_unstable();
        assert_eq!(found(&stage, &filter).await, expected, "{prefix}");
        assert_eq!(stage.store.count(&filter, store::SEARCH_BUDGET).await.unwrap(), expected.len() as u64, "{prefix}");
    }
}

pub async fn every_condition_of_a_filter_must_hold(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let wanted = stage.create(timer("http://a.example/").namespace("t").key("k-1")).await;
    stage.create(timer("http://a.example/").namespace("u").key("k-1")).await;
    stage.create(timer("http://a.example/").namespace("t").key("x-1")).await;
    stage.in_status(timer("http://a.example/").namespace("t").key("k-2"), Status::Canceled).await;
    let filter = Filter {
        status: vec![Status::Pending],
        namespaces: vec![Namespace::parse("t").unwrap()],
        key_prefix: Some("k-".to_owned()),
        ..Filter::default()
    };
    assert_eq!(found(&stage, &filter).await, [wanted.id()]);
    assert_eq!(stage.store.count(&filter, store::SEARCH_BUDGET).await.unwrap(), 1);
}

pub async fn of_many_those_that_are_pending_or_paused_are_canceled(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let mut timers = Vec::new();
    for status in Status::ALL {
        timers.push(stage.in_status(timer("http://a.example/").key(status.as_str()), status).await);
    }
    let unknown = TimerId::random(NOW);
    let mut all: Vec<_> = timers.iter().map(|timer| timer.id()).collect();
    all.push(unknown);
    // An id that is named twice is canceled once.
    all.push(timers[0].id());
    let canceled = stage.store.cancel_all(&all, ahead(secs(1))).await.unwrap();
    let is_canceled = |timer: &Timer| timer.status.after(Event::Cancel).is_some();
    assert_eq!(canceled, timers.iter().map(is_canceled).chain([false, false]).collect::<Vec<_>>());
    for timer in &timers {
        let now = stage.get(timer.id()).await;
        let canceled = Timer { status: Status::Canceled, updated_at: ahead(secs(1)), pause: None, ..timer.clone() };
        assert_eq!(now, if is_canceled(timer) { canceled } else { timer.clone() });
    }
    assert!(stage.claim(&[entry(&timers[0])]).await.is_empty());
    assert!(stage.due_of(timers[0].id()).await.is_empty());
}

pub async fn a_thousand_timers_are_canceled_at_once(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..1_000).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let all: Vec<_> = timers.iter().map(|timer| timer.id()).collect();
    assert!(stage.store.cancel_all(&all, NOW).await.unwrap().iter().all(|canceled| *canceled));
    let filter = Filter { status: vec![Status::Canceled], ..Filter::default() };
    assert_eq!(stage.store.count(&filter, store::SEARCH_BUDGET).await.unwrap(), 1_000);
}

pub async fn a_reader_beside_a_bulk_cancel_sees_all_of_it_or_nothing(fixture: impl Fixture) {
    const TIMERS: u64 = 1_000;
    let stage = Stage::set(&fixture).await;
    if stage.store.lacks().contains(&Promise::BulkChangesInOneCommit) {
        return skip("a_reader_beside_a_bulk_cancel_sees_all_of_it_or_nothing", "the store changes each timer by itself");
    }
    let drafts = (0..TIMERS).map(|number| timer("http://a.example/").numbered(number).group("g")).collect();
    let all: Vec<TimerId> = stage.create_new(drafts).await.iter().map(Timer::id).collect();
    let store = Arc::clone(&stage.store);
    let canceling = tokio::spawn(async move { store.cancel_all(&all, NOW).await.unwrap() });
    let (namespace, group) = (Namespace::parse("default").unwrap(), Group::parse("g").unwrap());
    let all_are = |status: Status| BTreeMap::from([(status, TIMERS)]);
    loop {
        let is_over = canceling.is_finished();
        let counted = stage.store.count_group(&namespace, &group).await.unwrap().by_status;
        assert!(counted == all_are(Status::Canceled) || (!is_over && counted == all_are(Status::Pending)), "{counted:?}");
        if is_over {
            break;
        }
    }
    assert!(canceling.await.unwrap().iter().all(|is_canceled| *is_canceled));
}

pub async fn a_failed_timer_can_be_tried_again(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let failed = stage.in_status(timer("http://a.example/"), Status::Failed).await;
    let later = ahead(secs(100));
    let Changed::Done(reopened) = stage.store.reopen(failed.id(), None, later).await.unwrap() else {
        panic!("a failed timer is reopened")
    };
    assert_eq!(reopened, stage.get(failed.id()).await);
    assert_eq!((reopened.status, reopened.attempt, &reopened.last_error), (Status::Pending, 0, &None));
    assert_eq!((reopened.execute_at, reopened.executed_at, reopened.updated_at), (failed.execute_at, None, later));
    assert_eq!((reopened.revision, reopened.webhook_id()), (failed.revision + 1, failed.webhook_id()));
    let due = stage.due(later).await;
    assert_eq!(due, [entry_at(&reopened, later)]);
    let claimed = stage.claim(&due).await.remove(0);
    assert_eq!(claimed.attempt, 1);
    stage.settle(&claimed, Next::Completed { at: later }).await;
    assert_eq!(stage.get(failed.id()).await.status, Status::Completed);
}

pub async fn only_what_has_failed_is_tried_again(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for status in Status::ALL.into_iter().filter(|status| status.after(Event::Reopen).is_none()) {
        let timer = stage.in_status(timer("http://a.example/").key(status.as_str()), status).await;
        assert_eq!(
            stage.store.reopen(timer.id(), None, ahead(secs(1))).await.unwrap(),
            Changed::WrongStatus(timer.clone()),
            "{status}"
        );
        assert_eq!(stage.get(timer.id()).await, timer);
    }
    assert_eq!(stage.store.reopen(TimerId::random(NOW), None, NOW).await.unwrap(), Changed::NotFound);
}
