//! A timer that cannot be read or recorded must not hold up its neighbours. Only for stores that can be made to hold one.

use domain::{Next, Status, Timer};
use store::{Cursor, Filter, ListQuery, Order, SEARCH_BUDGET, StoreError};

use crate::{
    Fixture, NOW, Stage,
    fixture::skip,
    millis,
    stage::{entry, ids_of},
    timer,
};

/// A damaged timer and a good one; `None` if this store cannot be damaged.
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
            let found = stage.store.expired_claims(&stage.shard_leases, 10).await.unwrap();
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
        filter: store::Filter { status: vec![Status::Pending], ..store::Filter::default() },
        sort: store::Sort::CreatedAt,
        order: store::Order::Ascending,
        limit: 10,
        ..ListQuery::default()
    };
    let page = stage.store.list(&query).await.unwrap();
    assert_eq!(page.timers.iter().map(|summary| summary.id).collect::<Vec<_>>(), [spoiled.id(), good.id()]);
}

pub async fn a_timer_that_no_list_can_show_leaves_its_place(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((1..=4).map(|number| timer("http://a.example/").numbered(number)).collect()).await;
    for spoiled in [&timers[0], &timers[2]] {
        if !fixture.spoil_summary(spoiled.id()).await {
            return skip("a_timer_that_no_list_can_show_leaves_its_place", "the fixture cannot spoil what a list shows");
        }
    }
    let place = |timer: &Timer| Cursor { at: timer.created_at, id: timer.id() };
    for filter in [Filter::default(), Filter { status: vec![Status::Pending], ..Filter::default() }] {
        let mut query = ListQuery { filter, order: Order::Ascending, limit: 3, ..ListQuery::default() };
        let page = stage.store.list(&query).await.unwrap();
        assert_eq!(page.timers.iter().map(|summary| summary.id).collect::<Vec<_>>(), [timers[1].id()]);
        assert_eq!(page.unreadable, [place(&timers[0]), place(&timers[2])]);
        assert_eq!((page.count(), page.next.is_some()), (3, true), "they count as a part of the page");
        query.after = page.next;
        let page = stage.store.list(&query).await.unwrap();
        assert_eq!(page.timers.iter().map(|summary| summary.id).collect::<Vec<_>>(), [timers[3].id()]);
        assert_eq!((page.unreadable, page.next), (Vec::new(), None));
        assert_eq!(stage.store.count(&query.filter, SEARCH_BUDGET).await.unwrap(), 4);
    }
}

pub async fn an_outcome_that_should_not_be_there_holds_up_no_settlement(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((1..=4).map(|number| timer("http://a.example/").numbered(number)).collect()).await;
    if !fixture.plant_outcome(timers[2].id(), timers[2].execute_at).await {
        return skip("an_outcome_that_should_not_be_there_holds_up_no_settlement", "the fixture cannot plant an outcome");
    }
    let claimed = stage.claim(&timers.iter().map(entry).collect::<Vec<_>>()).await;
    assert_eq!(claimed.len(), 4);

    let settlements: Vec<_> = claimed.iter().map(|claimed| claimed.settle(Next::Completed { at: NOW })).collect();
    assert_eq!(stage.store.settle(&settlements).await.unwrap(), [true; 4]);

    for timer in timers {
        let timer = stage.get(timer.id()).await;
        assert_eq!((timer.status, timer.attempt, timer.executed_at), (Status::Completed, 1, Some(NOW)));
    }
    assert_eq!(stage.due(NOW).await, []);
}

pub async fn a_settlement_that_the_database_refuses_is_corrupt_and_leaves_its_neighbours_alone(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let behaviour = "a_settlement_that_the_database_refuses_is_corrupt_and_leaves_its_neighbours_alone";
    let timers = stage.create_new((1..=2).map(|number| timer("http://a.example/").numbered(number)).collect()).await;
    let claimed = stage.claim(&timers.iter().map(entry).collect::<Vec<_>>()).await;
    if !fixture.refuse_to_settle(claimed[0].entry.id).await {
        return skip(behaviour, "the fixture cannot refuse a settlement");
    }
    let completed = Next::Completed { at: NOW };
    let again = Next::Pending { at: NOW.saturating_add(millis(100)), attempt: 1, error: None };

    for next in [completed.clone(), again] {
        let refused = stage.store.settle(&[claimed[0].settle(next.clone()), claimed[1].settle(next)]).await;
        assert!(matches!(refused, Err(StoreError::Corrupt(_))), "{refused:?}");
    }
    assert_eq!(stage.get(claimed[1].entry.id).await.status, Status::Executing, "nothing of a refused batch is done");
    stage.settle(&claimed[1], completed).await;
    assert_eq!(stage.get(claimed[1].entry.id).await.status, Status::Completed);
}
