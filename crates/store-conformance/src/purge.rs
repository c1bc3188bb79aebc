//! Purging timers that have ended.

use domain::{Next, OnConflict, Status, Timer};
use store::{Created, Filter};

use crate::{Draft, Fixture, NOW, Stage, ago, ahead, secs, timer};

/// A timer that completed that long ago.
async fn finished(stage: &Stage, draft: Draft, seconds_ago: u32) -> Timer {
    let claimed = stage.claim_one(&stage.create(draft.due_ago(secs(9_000)).created_at(ago(secs(9_000)))).await).await;
    stage.settle(&claimed, Next::Completed { at: ago(secs(seconds_ago)) }).await;
    stage.get(claimed.entry.id).await
}

pub async fn what_ended_before_is_removed_and_nothing_else(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let old = finished(&stage, timer("http://a.example/"), 61).await;
    let at_the_edge = finished(&stage, timer("http://a.example/"), 60).await;
    let young = finished(&stage, timer("http://a.example/"), 59).await;
    assert_eq!(stage.store.purge(ago(secs(60)), 100).await.unwrap(), 1);
    assert_eq!(stage.store.get(old.id()).await.unwrap(), None);
    assert_eq!(stage.get(at_the_edge.id()).await, at_the_edge);
    assert_eq!(stage.get(young.id()).await, young);
    assert_eq!(stage.store.count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 2);
    assert_eq!(stage.store.purge(ago(secs(60)), 100).await.unwrap(), 0);
}

pub async fn every_way_to_end_is_purged_and_no_other_status(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let mut all = Vec::new();
    for status in Status::ALL {
        all.push(stage.in_status(timer("http://a.example/").key(status.as_str()), status).await);
    }
    let ended = Status::ALL.into_iter().filter(|status| status.is_finished()).count();
    assert_eq!(stage.store.purge(ahead(secs(1)), 100).await.unwrap(), ended);
    for timer in all {
        let left = stage.store.get(timer.id()).await.unwrap();
        assert_eq!(left.is_some(), !timer.status.is_finished(), "{}", timer.status);
    }
}

pub async fn the_oldest_go_first_and_no_more_than_the_limit(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let mut by_age = Vec::new();
    // They end in another order than that of their creation and that of their ids.
    for n in 0..10_u32 {
        let seconds_ago = 100 + n * 7 % 10;
        let timer = finished(&stage, timer("http://a.example/").numbered(u64::from(n)), seconds_ago).await;
        by_age.push((std::cmp::Reverse(seconds_ago), timer.id()));
    }
    by_age.sort_unstable();
    assert_eq!(stage.store.purge(NOW, 4).await.unwrap(), 4);
    for (place, (_, id)) in by_age.iter().enumerate() {
        assert_eq!(stage.store.get(*id).await.unwrap().is_some(), place >= 4, "the one at place {place}");
    }
    assert_eq!(stage.store.purge(NOW, 100).await.unwrap(), 6);
}

pub async fn a_purged_key_is_free_again(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let old = finished(&stage, timer("http://a.example/").key("k").payload("1"), 60).await;
    assert_eq!(stage.store.purge(NOW, 100).await.unwrap(), 1);
    let new = stage.create(timer("http://a.example/").key("k").payload("2")).await;
    assert_eq!((new.id(), new.revision, new.created_at), (old.id(), 1, NOW));
    stage.claim_one(&new).await;
}

pub async fn a_revived_timer_is_not_purged_for_its_former_life(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let old = finished(&stage, timer("http://a.example/").key("k"), 60).await;
    let again = timer("http://a.example/").key("k").on_conflict(OnConflict::Replace);
    let Created::Replaced(revived) = stage.create_all(vec![again]).await.remove(0) else { panic!("it had ended") };
    assert_eq!(stage.store.purge(ahead(secs(60)), 100).await.unwrap(), 0);
    assert_eq!(stage.get(old.id()).await, revived);
}

pub async fn purged_timers_leave_no_trace_in_lists(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for n in 0..5 {
        finished(&stage, timer("http://a.example/").numbered(n), 60).await;
    }
    let left = stage.create(timer("http://a.example/").numbered(9)).await;
    assert_eq!(stage.store.purge(NOW, 100).await.unwrap(), 5);
    let query = store::ListQuery {
        sort: store::Sort::CreatedAt,
        order: store::Order::Descending,
        limit: 100,
        ..store::ListQuery::default()
    };
    let page = stage.store.list(&query).await.unwrap();
    assert_eq!(page.timers.iter().map(|summary| summary.id).collect::<Vec<_>>(), [left.id()]);
    for status in [Status::Completed, Status::Failed, Status::Canceled, Status::Expired] {
        assert_eq!(
            stage.store.count(&Filter { status: vec![status], ..Filter::default() }, store::SEARCH_BUDGET).await.unwrap(),
            0
        );
    }
}
