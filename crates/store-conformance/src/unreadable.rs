//! A timer that cannot be read must not hold up the others. Only for stores that can be made to hold one.

use domain::{Next, Status};
use store::{ListQuery, StoreError};

use crate::{
    Fixture, NOW, Stage,
    fixture::skip,
    millis,
    stage::{entry, ids_of},
    timer,
};

/// A spoiled timer and a good one; `None` if this store has no way to spoil one.
async fn a_spoiled_and_a_good_one(
    fixture: &impl Fixture,
    stage: &Stage,
    behaviour: &str,
) -> Option<(domain::Timer, domain::Timer)> {
    let timers = stage.create_new(vec![timer("http://a.example/").numbered(1), timer("http://a.example/").numbered(2)]).await;
    if !fixture.spoil(timers[0].id()).await {
        skip(behaviour, "the fixture cannot spoil a timer");
        return None;
    }
    Some((timers[0].clone(), timers[1].clone()))
}

pub async fn a_spoiled_timer_is_claimed_as_unreadable_and_can_be_settled(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let behaviour = "a_spoiled_timer_is_claimed_as_unreadable_and_can_be_settled";
    let Some((spoiled, good)) = a_spoiled_and_a_good_one(&fixture, &stage, behaviour).await else { return };

    let mut claimed = stage.claim(&[entry(&spoiled), entry(&good)]).await;

    claimed.sort_by_key(|claimed| claimed.entry.id);
    assert_eq!(ids_of(&claimed), [spoiled.id(), good.id()]);
    assert!(claimed[0].timer.is_err(), "{claimed:?}");
    assert_eq!(claimed[1].timer.as_ref().map(domain::Timer::id), Ok(good.id()));
    stage.settle(&claimed[0], Next::Failed { at: NOW, error: "it cannot be read".to_owned() }).await;
    stage.settle(&claimed[1], Next::Completed { at: NOW }).await;
    assert_eq!(stage.due(NOW).await, []);
}

pub async fn a_spoiled_timer_is_found_among_the_expired_claims(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let behaviour = "a_spoiled_timer_is_found_among_the_expired_claims";
    let Some((spoiled, good)) = a_spoiled_and_a_good_one(&fixture, &stage, behaviour).await else { return };
    let claim = stage.claim_for(millis(1));
    stage.store.claim(&claim, &[entry(&spoiled), entry(&good)]).await.unwrap();
    let mut found = stage
        .eventually("the claims run out", || async {
            let found = stage.store.expired_claims(&stage.tenures, 10).await.unwrap();
            (found.len() == 2).then_some(found)
        })
        .await;
    found.sort_by_key(|claimed| claimed.entry.id);
    assert!(found[0].timer.is_err() && found[1].timer.is_ok(), "{found:?}");
}

pub async fn a_spoiled_timer_is_corrupt_to_get_and_still_in_lists(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let behaviour = "a_spoiled_timer_is_corrupt_to_get_and_still_in_lists";
    let Some((spoiled, good)) = a_spoiled_and_a_good_one(&fixture, &stage, behaviour).await else { return };

    let read = stage.store.get(spoiled.id()).await;
    assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
    assert_eq!(stage.get(good.id()).await, good);

    let query = ListQuery {
        filter: store::Filter { status: Some(Status::Pending), namespace: None, key_prefix: None },
        sort: store::Sort::CreatedAt,
        order: store::Order::Ascending,
        limit: 10,
        offset: 0,
        after: None,
    };
    let page = stage.store.list(&query).await.unwrap();
    assert_eq!(page.timers.iter().map(|summary| summary.id).collect::<Vec<_>>(), [spoiled.id(), good.id()]);
}
