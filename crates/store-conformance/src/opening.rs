//! Opening a database that exists already, or that another process opens at this moment.

use std::sync::Arc;

use domain::{Next, Status, Timer};
use store::{Member, NodeId, Store};

use crate::{
    Fixture, NOW, Stage, ahead,
    fixture::skip,
    secs,
    stage::{LONG, entry, entry_at, ids_of, retried},
    timer,
};

fn reopens(fixture: &impl Fixture, behaviour: &str) -> bool {
    if !fixture.reopens() {
        skip(behaviour, "the store is open to one at a time");
    }
    fixture.reopens()
}

pub async fn what_was_acknowledged_is_there_after_closing_and_opening_again(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let mut timers = Vec::new();
    for status in Status::ALL {
        timers.push(stage.in_status(timer("http://a.example/").key(status.as_str()).payload("1.10"), status).await);
    }
    let retried = retried(&stage, timer("http://a.example/").key("retried"), ahead(secs(90))).await;
    timers.push(retried.clone());
    let (due, shards) = (stage.due(ahead(secs(600))).await, stage.store.shards());
    assert_eq!(due, [entry(&timers[0]), entry_at(&retried, ahead(secs(90)))]);
    let (node, shard_leases) = (stage.node, stage.shard_leases.clone());
    drop(stage);

    let again = Stage::unowned(&fixture).await;

    assert_eq!(again.store.shards(), shards);
    for timer in timers {
        assert_eq!(again.get(timer.id()).await, timer);
    }
    assert_eq!(again.due(ahead(secs(600))).await, due);
    // A store for a single process knows that the old owner is gone; in a shared store the owner lives on. Epochs only rise.
    let standing = again.live(node).await.held;
    let taken = again.join(NodeId(2)).await;
    for old in shard_leases {
        let is_taken_later = taken.iter().any(|new| new.shard == old.shard && new.epoch > old.epoch);
        assert_ne!(standing.contains(&old), is_taken_later, "{old:?}");
    }
}

pub async fn opening_twice_is_harmless_and_shows_the_same_data(fixture: impl Fixture) {
    if !reopens(&fixture, "opening_twice_is_harmless_and_shows_the_same_data") {
        return;
    }
    let stage = Stage::set(&fixture).await;
    let mut timers = Vec::new();
    for status in Status::ALL {
        timers.push(stage.in_status(timer("http://a.example/").key(status.as_str()), status).await);
    }
    let again = fixture.open().await;
    assert_eq!(again.shards(), stage.store.shards());
    for timer in timers {
        assert_eq!(again.get(timer.id()).await.unwrap(), Some(timer));
    }
    assert_eq!(again.heartbeat(&Member::new(stage.node), LONG).await.unwrap().held, stage.shard_leases);
}

pub async fn many_may_open_a_new_database_at_once(fixture: impl Fixture) {
    if !reopens(&fixture, "many_may_open_a_new_database_at_once") {
        return;
    }
    let (a, b, c, d) = tokio::join!(fixture.open(), fixture.open(), fixture.open(), fixture.open());
    let stores = [a, b, c, d];
    for (number, store) in (0..).zip(&stores) {
        let timer = timer("http://a.example/").numbered(number).build();
        assert_eq!(store.create(vec![timer]).await.unwrap().len(), 1);
    }
    for store in &stores {
        assert_eq!(store.count(&store::Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 4);
        assert_eq!(store.shards(), stores[0].shards());
    }
}

pub async fn what_one_handle_acknowledged_the_other_claims(fixture: impl Fixture) {
    if !reopens(&fixture, "what_one_handle_acknowledged_the_other_claims") {
        return;
    }
    let stage = Stage::set(&fixture).await;
    let other: Arc<dyn Store> = fixture.open().await;
    for round in 0..20_u32 {
        let before = stage.create(timer("http://a.example/").payload("0")).await;
        let mut changed = before.clone();
        changed.definition.callback = timer("http://a.example/").payload(&round.to_string()).build().definition.callback;
        changed.execute_at = ahead(secs(round % 2 * 61));
        let after = stage.update(&changed, NOW).await;

        let claimed = other.claim(&stage.new_claim(), &[entry(&after)]).await.unwrap().remove(0);

        assert_eq!(claimed.timer, Ok(Timer { status: Status::Executing, attempt: 1, ..after }));
        assert_eq!(stage.claim(&[claimed.entry]).await, [], "what the other one claimed is taken");
        assert_eq!(stage.store.settle(&[claimed.settle(Next::Completed { at: NOW })]).await.unwrap(), [true]);
        assert_eq!(other.get(before.id()).await.unwrap().map(|timer| timer.status), Some(Status::Completed));

        let canceled = stage.create(timer("http://a.example/")).await;
        other.cancel(canceled.id(), None, NOW).await.unwrap();
        assert_eq!(ids_of(&stage.claim(&[entry(&canceled)]).await), []);
    }
}
