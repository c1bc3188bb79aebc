//! Changing and canceling: only while pending, and never unseen.

use domain::{Delivery, Key, Next, Status, Timer};
use store::Changed;

use crate::{
    Fixture, NOW, Stage, ago, ahead, micros, secs,
    stage::{entry, entry_at, retried},
    timer,
};

pub async fn an_update_replaces_content_and_time(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let old = timer("http://old.example/").key("k").payload("1").metadata("1").correlation_id("c").created_at(ago(secs(60)));
    let new = timer("https://new.example/").key("k").payload("2").header("X", "y").at_most_once().due_in(secs(90)).build();
    let before = stage.create(old).await;
    let changed = Timer { definition: new.definition.clone(), execute_at: new.execute_at, ..before.clone() };

    let after = stage.update(&changed, ahead(secs(1))).await;

    assert_eq!(after, Timer { revision: 2, updated_at: ahead(secs(1)), ..changed });
    assert_eq!(after.definition.delivery, Delivery::AtMostOnce);
    assert_eq!(after.definition.metadata, None);
    assert_eq!(after.definition.key, Some(Key::parse("k").unwrap()));
    assert_eq!(stage.get(before.id()).await, after);
    assert_eq!(stage.due(ahead(secs(600))).await, [entry(&after)]);
}

pub async fn every_update_raises_the_revision(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let mut timer = stage.create(timer("http://a.example/")).await;
    for revision in 2..6 {
        timer.execute_at = ahead(secs(revision * 40));
        timer = stage.update(&timer, ahead(secs(revision))).await;
        assert_eq!(timer.revision, revision);
        assert_eq!(stage.due(ahead(secs(6_000))).await, [entry(&timer)]);
    }
}

pub async fn an_update_of_a_stale_revision_is_told_to_read_again(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let first = stage.create(timer("http://a.example/").payload("1")).await;
    let mine = Timer { execute_at: ahead(secs(10)), ..first.clone() };
    let theirs = stage.update(&Timer { execute_at: ahead(secs(20)), ..first.clone() }, NOW).await;
    assert_eq!(stage.store.update(&mine, NOW).await.unwrap(), Changed::Moved);
    let from_the_future = Timer { revision: theirs.revision + 1, ..mine };
    assert_eq!(stage.store.update(&from_the_future, NOW).await.unwrap(), Changed::Moved);
    assert_eq!(stage.get(first.id()).await, theirs);
    assert_eq!(stage.due(ahead(secs(600))).await, [entry(&theirs)]);
}

pub async fn an_update_meets_what_is_not_pending(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for status in [Status::Executing, Status::Completed, Status::Failed, Status::Canceled] {
        let before = stage.in_status(timer("http://a.example/").key(status.as_str()), status).await;
        for revision in [before.revision, before.revision + 1] {
            let changed = Timer { execute_at: ahead(secs(60)), revision, ..before.clone() };
            assert_eq!(stage.store.update(&changed, NOW).await.unwrap(), Changed::Met(before.clone()), "{status}");
        }
        assert_eq!(stage.get(before.id()).await, before);
    }
}

pub async fn what_is_unknown_can_neither_be_updated_nor_canceled(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let mut unknown = stage.create(timer("http://a.example/").numbered(1)).await;
    unknown.definition.id = timer("http://a.example/").numbered(2).id();
    assert_eq!(stage.store.update(&unknown, NOW).await.unwrap(), Changed::NotFound);
    assert_eq!(stage.store.cancel(unknown.id(), NOW).await.unwrap(), Changed::NotFound);
    assert_eq!(stage.store.get(unknown.id()).await.unwrap(), None);
}

pub async fn a_moved_timer_can_no_longer_be_claimed_at_its_old_time(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    // By a microsecond, within the minute, to another one, and back in time.
    for (n, at) in [ahead(micros(1)), ahead(secs(30)), ahead(secs(90)), ago(secs(90))].into_iter().enumerate() {
        let before = stage.create(timer("http://a.example/").key(&n.to_string())).await;
        let after = stage.update(&Timer { execute_at: at, ..before.clone() }, NOW).await;
        assert_eq!(stage.claim(&[entry(&before)]).await, [], "moved to {at}");
        let claimed = stage.claim_one(&after).await;
        assert_eq!(claimed.timer.unwrap().execute_at, at);
    }
}

pub async fn a_claim_after_an_update_carries_the_new_content(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let before = stage.create(timer("http://old.example/").payload("1")).await;
    let mut changed = before.clone();
    changed.definition.callback = timer("http://new.example/").payload("2").build().definition.callback;
    let after = stage.update(&changed, NOW).await;
    assert_eq!(stage.due(NOW).await, [entry(&after)]);
    // The entry was read before the update. Its time still holds, so it may be claimed; what comes back is new.
    let claimed = stage.claim(&[entry(&before)]).await.remove(0);
    assert_eq!(claimed.timer.unwrap().definition, after.definition);
}

pub async fn an_update_starts_the_attempts_over(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let tried = retried(&stage, timer("http://a.example/"), ahead(secs(200))).await;
    assert_eq!((tried.attempt, tried.last_error.as_deref()), (1, Some("HTTP 503")));
    let after = stage.update(&Timer { execute_at: ahead(secs(10)), ..tried.clone() }, NOW).await;
    assert_eq!((after.attempt, after.last_error.clone()), (0, None));
    assert_eq!(stage.due(ahead(secs(600))).await, [entry(&after)]);
    assert_eq!(stage.claim(&[entry_at(&after, ahead(secs(200)))]).await, [], "the old retry is gone");
    assert_eq!(stage.claim_one(&after).await.attempt, 1);
}

pub async fn a_canceled_timer_is_never_due_and_never_claimed(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let before = stage.create(timer("http://a.example/").created_at(ago(secs(5)))).await;
    let Changed::Done(canceled) = stage.store.cancel(before.id(), ahead(secs(1))).await.unwrap() else {
        panic!("a pending timer can be canceled");
    };
    let expected = Timer { status: Status::Canceled, updated_at: ahead(secs(1)), ..before.clone() };
    assert_eq!(canceled, expected);
    assert_eq!(stage.get(before.id()).await, expected);
    assert_eq!(stage.due(ahead(secs(600))).await, []);
    assert_eq!(stage.claim(&[entry(&before)]).await, []);
    assert_eq!(stage.get(before.id()).await, expected);
}

pub async fn a_cancel_meets_what_is_not_pending(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for status in [Status::Executing, Status::Completed, Status::Failed, Status::Canceled] {
        let before = stage.in_status(timer("http://a.example/").key(status.as_str()), status).await;
        let answer = stage.store.cancel(before.id(), ahead(secs(1))).await.unwrap();
        assert_eq!(answer, Changed::Met(before.clone()), "{status}");
        assert_eq!(stage.get(before.id()).await, before, "{status}");
    }
}

pub async fn a_canceled_timer_keeps_the_record_of_its_attempts(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let tried = retried(&stage, timer("http://a.example/"), ahead(secs(60))).await;
    let canceled = stage.cancel(tried.id()).await;
    assert_eq!((canceled.attempt, canceled.last_error.as_deref()), (1, Some("HTTP 503")));
    assert_eq!(stage.get(tried.id()).await, canceled);
}

pub async fn a_timer_that_failed_once_can_still_be_changed_and_canceled(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let claimed = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
    stage.settle(&claimed, Next::Again { at: ahead(secs(120)) }).await;
    let again = stage.get(claimed.entry.id).await;
    let changed = stage.update(&Timer { execute_at: ahead(secs(240)), ..again.clone() }, NOW).await;
    assert_eq!(stage.due(ahead(secs(600))).await, [entry(&changed)]);
    stage.cancel(changed.id()).await;
    assert_eq!(stage.due(ahead(secs(600))).await, []);
}
