//! Finding and canceling many timers at once, and trying a failed one again.

use domain::{Event, Namespace, Next, Status, TimerId};
use store::{Changed, Filter};

use crate::{
    Fixture, NOW, Stage, ahead, secs,
    stage::{entry, entry_at},
    timer,
};

pub async fn what_matches_is_found_by_id_a_page_at_a_time(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let mut all = Vec::new();
    for n in 0..7 {
        let draft = timer("http://a.example/").key(&format!("order-{n}"));
        all.push(stage.create(draft).await.id());
    }
    stage.create(timer("http://a.example/")).await;
    all.sort_unstable();
    let filter = Filter { key_prefix: Some("order-".to_owned()), ..Filter::default() };
    let mut found = Vec::new();
    loop {
        let page = stage.store.matching(&filter, found.last().copied(), 3).await.unwrap();
        if page.is_empty() {
            break;
        }
        assert!(page.len() <= 3);
        found.extend(page);
    }
    assert_eq!(found, all);
}

pub async fn metadata_comes_as_far_as_it_fits(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let mut ids = vec![TimerId::random(NOW), stage.create(timer("http://a.example/")).await.id()];
    let texts: Vec<_> = (0..4).map(|n| format!(r#"{{"n":{n}.0, "e":"é"}}"#)).collect();
    for text in &texts {
        ids.push(stage.create(timer("http://a.example/").metadata(text)).await.id());
    }
    // An id that is named twice counts twice.
    ids.push(ids[2]);
    let expected: Vec<_> = [None, None].into_iter().chain(texts.iter().map(Some)).chain([texts.first()]).collect();
    let bytes = texts[0].len();
    for (bytes_max, count) in [(0, 2), (bytes - 1, 2), (bytes, 3), (2 * bytes - 1, 3), (2 * bytes, 4), (5 * bytes, 7)] {
        let found = stage.store.metadata(&ids, bytes_max).await.unwrap();
        let found: Vec<_> = found.iter().map(|metadata| metadata.as_ref().map(|metadata| metadata.as_str())).collect();
        let expected: Vec<_> = expected[..count].iter().map(|text| text.map(String::as_str)).collect();
        assert_eq!(found, expected, "{bytes_max}");
    }
    let first = stage.store.metadata(&ids[2..], 0).await.unwrap();
    assert_eq!(first.iter().flatten().map(|metadata| metadata.as_str()).collect::<Vec<_>>(), [texts[0].as_str()]);
    assert_eq!(stage.store.metadata(&[], 100).await.unwrap(), []);
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
        assert_eq!(stage.store.matching(&filter, None, 100).await.unwrap(), expected, "{prefix}");
        assert_eq!(stage.store.count(&filter).await.unwrap(), expected.len() as u64, "{prefix}");
    }
}

pub async fn every_condition_of_a_filter_must_hold(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let wanted = stage.create(timer("http://a.example/").namespace("t").key("k-1")).await;
    stage.create(timer("http://a.example/").namespace("u").key("k-1")).await;
    stage.create(timer("http://a.example/").namespace("t").key("x-1")).await;
    stage.in_status(timer("http://a.example/").namespace("t").key("k-2"), Status::Canceled).await;
    let filter = Filter {
        status: Some(Status::Pending),
        namespace: Some(Namespace::parse("t").unwrap()),
        key_prefix: Some("k-".to_owned()),
    };
    assert_eq!(stage.store.matching(&filter, None, 100).await.unwrap(), [wanted.id()]);
    assert_eq!(stage.store.count(&filter).await.unwrap(), 1);
}

pub async fn of_many_those_that_are_pending_are_canceled(fixture: impl Fixture) {
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
    let only_the_first: Vec<bool> = (0..all.len()).map(|place| place == 0).collect();
    assert_eq!(canceled, only_the_first);
    let now = stage.get(timers[0].id()).await;
    assert_eq!((now.status, now.updated_at), (Status::Canceled, ahead(secs(1))));
    for timer in &timers[1..] {
        assert_eq!(stage.get(timer.id()).await, *timer);
    }
    assert!(stage.claim(&[entry(&timers[0])]).await.is_empty());
    assert!(stage.due_of(timers[0].id()).await.is_empty());
}

pub async fn a_thousand_timers_are_canceled_at_once(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..1_000).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let all: Vec<_> = timers.iter().map(|timer| timer.id()).collect();
    assert!(stage.store.cancel_all(&all, NOW).await.unwrap().iter().all(|canceled| *canceled));
    let filter = Filter { status: Some(Status::Canceled), ..Filter::default() };
    assert_eq!(stage.store.count(&filter).await.unwrap(), 1_000);
}

pub async fn a_failed_timer_can_be_tried_again(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let failed = stage.in_status(timer("http://a.example/"), Status::Failed).await;
    let later = ahead(secs(100));
    let Changed::Done(reopened) = stage.store.reopen(failed.id(), later).await.unwrap() else {
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
            stage.store.reopen(timer.id(), ahead(secs(1))).await.unwrap(),
            Changed::WrongStatus(timer.clone()),
            "{status}"
        );
        assert_eq!(stage.get(timer.id()).await, timer);
    }
    assert_eq!(stage.store.reopen(TimerId::random(NOW), NOW).await.unwrap(), Changed::NotFound);
}
