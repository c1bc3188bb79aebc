//! Reading one timer, and the small calls.

use domain::Status;

use crate::{Fixture, NOW, Stage, fixture::skip, secs, timer};

pub async fn an_unknown_id_is_none(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    stage.create(timer("http://a.example/").numbered(1)).await;
    assert_eq!(stage.store.get(timer("http://a.example/").numbered(2).id()).await.unwrap(), None);
}

pub async fn a_timer_in_any_status_can_be_read(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for status in Status::ALL {
        let timer = stage.in_status(timer("http://a.example/").key(status.as_str()), status).await;
        assert_eq!(stage.get(timer.id()).await, timer);
    }
}

pub async fn a_store_says_which_promises_it_does_not_keep(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    for promise in stage.store.lacks() {
        skip(promise.as_str(), "the store does not promise it");
    }
    let preferred = stage.store.shard_for_new();
    assert!(preferred.is_none_or(|shard| shard.0 < stage.store.shards()), "{preferred:?}");
}

pub async fn a_live_store_answers_a_ping(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    stage.store.ping().await.unwrap();
}

pub async fn empty_batches_are_no_trouble(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let pending = stage.create(timer("http://a.example/")).await;
    let store = &stage.store;

    assert_eq!(store.create(vec![]).await.unwrap(), []);
    assert_eq!(store.due(&[], NOW, 10).await.unwrap(), []);
    assert_eq!(store.claim(&stage.new_claim(), &[]).await.unwrap(), []);
    assert!(store.settle(&[]).await.unwrap().is_empty());
    assert_eq!(store.expired_claims(&[], 10).await.unwrap(), []);
    assert_eq!(store.expired_claims(&stage.shard_leases, 0).await.unwrap(), []);
    assert_eq!(store.purge(NOW.saturating_add(secs(60)), 0).await.unwrap(), 0);
    assert_eq!(store.acquire(stage.node, &[]).await.unwrap(), []);
    store.nudge(&[]).await.unwrap();
    store.release(stage.node, &[]).await.unwrap();

    assert_eq!(stage.get(pending.id()).await, pending);
    assert_eq!(stage.live(stage.node).await.held, stage.shard_leases);
}

pub async fn a_probe_is_taken_and_leaves_nothing_behind(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timer = stage.create(timer("http://a.example/")).await;
    for _ in 0..3 {
        stage.store.probe().await.unwrap();
    }
    assert_eq!(stage.get(timer.id()).await, timer);
    assert_eq!(stage.store.count(&store::Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 1);
}
