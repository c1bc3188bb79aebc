//! Updates and cancels: only of pending timers, and never of an unseen version.

use domain::{Delivery, Event, Key, Next, OnConflict, Status, Timer};
use store::{Changed, Created};

use crate::{
    Draft, Fixture, NOW, Stage, ago, ahead, micros, secs,
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
    assert_eq!(stage.store.update(&mine, NOW).await.unwrap(), Changed::StaleRevision(theirs.clone()));
    let from_the_future = Timer { revision: theirs.revision + 1, ..mine };
    assert_eq!(stage.store.update(&from_the_future, NOW).await.unwrap(), Changed::StaleRevision(theirs.clone()));
    assert_eq!(stage.get(first.id()).await, theirs);
    assert_eq!(stage.due(ahead(secs(600))).await, [entry(&theirs)]);
}

pub async fn an_update_meets_what_is_not_pending(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for status in Status::ALL.into_iter().filter(|status| status.after(Event::Update).is_none()) {
        let before = stage.in_status(timer("http://a.example/").key(status.as_str()), status).await;
        for revision in [before.revision, before.revision + 1] {
            let changed = Timer { execute_at: ahead(secs(60)), revision, ..before.clone() };
            assert_eq!(stage.store.update(&changed, NOW).await.unwrap(), Changed::WrongStatus(before.clone()), "{status}");
        }
        assert_eq!(stage.get(before.id()).await, before);
    }
}

pub async fn what_is_unknown_can_neither_be_updated_nor_canceled(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let mut unknown = stage.create(timer("http://a.example/").numbered(1)).await;
    unknown.definition.id = timer("http://a.example/").numbered(2).id();
    assert_eq!(stage.store.update(&unknown, NOW).await.unwrap(), Changed::NotFound);
    assert_eq!(stage.store.cancel(unknown.id(), None, NOW).await.unwrap(), Changed::NotFound);
    assert_eq!(stage.store.get(unknown.id()).await.unwrap(), None);
}

pub async fn a_moved_timer_can_no_longer_be_claimed_at_its_old_time(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    // By a microsecond, within the minute, to another minute, and back in time.
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
    // The entry was read before the update. Its time still holds, so it may be claimed, and the claim returns the new content.
    let claimed = stage.claim(&[entry(&before)]).await.remove(0);
    assert_eq!(claimed.timer.unwrap().definition, after.definition);
}

pub async fn an_update_to_another_time_starts_the_attempts_over(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let retry = ahead(secs(200));
    // Moving it to the very time of the retry counts as a new due time, too.
    for at in [ahead(secs(10)), retry] {
        let tried = retried(&stage, timer("http://a.example/"), retry).await;
        assert_eq!((tried.attempt, tried.last_error.as_deref()), (1, Some("HTTP 503")));
        let after = stage.update(&Timer { execute_at: at, ..tried.clone() }, NOW).await;
        assert_eq!((after.attempt, after.last_error.clone()), (0, None));
        assert_eq!(stage.due_of(after.id()).await, [entry(&after)], "the old retry is gone");
        assert_eq!(stage.claim_one(&after).await.attempt, 1);
    }
}

pub async fn an_update_that_keeps_the_time_keeps_the_next_attempt(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    // The retry is due in the minute of the due time, and in another one.
    for at in [ahead(secs(1)), ahead(secs(200))] {
        let tried = retried(&stage, timer("http://old.example/"), at).await;
        let mut changed = tried.clone();
        changed.definition.callback = timer("http://new.example/").payload("2").build().definition.callback;

        let after = stage.update(&changed, ahead(secs(5))).await;

        let expected = Timer { revision: tried.revision + 1, updated_at: ahead(secs(5)), ..changed };
        assert_eq!(after, expected, "attempts and the last error stay");
        assert_eq!(stage.get(after.id()).await, expected);
        assert_eq!(stage.claim(&[entry(&after)]).await, [], "it does not fire before its retry");
        assert_eq!(stage.due_of(after.id()).await, [entry_at(&after, at)], "the destination is the new one");
        let claimed = stage.claim(&[entry_at(&after, at)]).await.remove(0);
        assert_eq!((claimed.attempt, claimed.entry), (2, entry_at(&after, at)));
        let timer = claimed.timer.clone().unwrap();
        assert_eq!((timer.definition, timer.last_error.as_deref()), (after.definition, Some("HTTP 503")));
        stage.settle(&claimed, Next::Completed { at: NOW }).await;
    }
}

pub async fn an_update_made_before_a_retry_keeps_that_retry(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let before = stage.create(timer("http://old.example/")).await;
    let claimed = stage.claim_one(&before).await;
    let retry = Next::Pending { at: ahead(secs(90)), attempt: 1, error: Some("HTTP 503".to_owned()) };
    stage.settle(&claimed, retry).await;

    // The update does not know of the attempt, which is no conflict: neither the content nor the due time has changed since.
    let after = stage.update(&before, NOW).await;

    assert_eq!((after.revision, after.attempt, after.last_error.as_deref()), (2, 1, Some("HTTP 503")));
    assert_eq!(stage.due_of(after.id()).await, [entry_at(&after, ahead(secs(90)))]);
}

pub async fn an_update_made_before_the_timer_was_due_again_is_told_to_read_again(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for at in [NOW, ahead(secs(1)), ahead(secs(200))] {
        let before = stage.create(timer("http://a.example/")).await;
        let claimed = stage.claim_one(&before).await;
        stage.settle(&claimed, Next::Again { at }).await;
        let again = stage.get(before.id()).await;
        assert_eq!((again.revision, again.execute_at), (before.revision + 1, at));
        let changed = Timer { execute_at: ahead(secs(60)), ..before };
        assert_eq!(stage.store.update(&changed, NOW).await.unwrap(), Changed::StaleRevision(again.clone()));
        assert_eq!(stage.get(again.id()).await, again);
        assert_eq!(stage.due_of(again.id()).await, [entry(&again)]);
    }
}

pub async fn an_update_made_in_a_former_life_is_told_to_read_again(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for status in Status::ALL.into_iter().filter(|status| status.is_finished()) {
        let draft = timer("http://a.example/").key(status.as_str());
        let before = stage.in_status(draft.clone(), status).await;
        let answer = stage.create_all(vec![draft.on_conflict(OnConflict::Replace)]).await.remove(0);
        let Created::Replaced(revived) = answer else { panic!("{status}: {answer:?}") };
        assert_eq!(revived.revision, before.revision + 1, "{status}");
        let changed = Timer { execute_at: ahead(secs(60)), ..before };
        assert_eq!(stage.store.update(&changed, NOW).await.unwrap(), Changed::StaleRevision(revived.clone()), "{status}");
        assert_eq!(stage.get(revived.id()).await, revived, "{status}");
    }
}

pub async fn a_new_life_begins_only_after_the_end_and_as_it_was_read(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let changed = |before: &Timer| {
        let definition = timer("http://new.example/").with_id(before.id()).namespace("tenant").build().definition;
        Timer { definition, execute_at: ahead(secs(60)), ..before.clone() }
    };
    for status in Status::ALL {
        let before = stage.in_status(timer("http://old.example/").created_at(ago(secs(5))), status).await;
        let answer = stage.store.revive(&changed(&before), ahead(secs(1))).await.unwrap();
        if status.after(Event::Revive).is_none() {
            assert_eq!(answer, Changed::WrongStatus(before.clone()), "{status}");
            assert_eq!(stage.get(before.id()).await, before, "{status}");
            continue;
        }
        let expected = Timer {
            status: Status::Pending,
            attempt: 0,
            last_error: None,
            executed_at: None,
            created_at: ahead(secs(1)),
            updated_at: ahead(secs(1)),
            revision: before.revision + 1,
            ..changed(&before)
        };
        assert_eq!(answer, Changed::Done(expected.clone()), "{status}");
        assert_eq!(stage.get(before.id()).await, expected, "{status}");
        assert_eq!(stage.due_of(before.id()).await, [entry(&expected)], "{status}");
        stage.settle(&stage.claim_one(&expected).await, Next::Completed { at: NOW }).await;
        // What was read in the former life says nothing about this one.
        let stale = stage.store.revive(&changed(&before), NOW).await.unwrap();
        assert!(matches!(stale, Changed::StaleRevision(_)), "{status} {stale:?}");
        assert_eq!(stage.get(before.id()).await.status, Status::Completed, "{status}");
    }
    let unknown = as_created(timer("http://a.example/"));
    assert_eq!(stage.store.revive(&unknown, NOW).await.unwrap(), Changed::NotFound);
}

fn as_created(draft: Draft) -> Timer {
    let new = draft.build();
    Timer {
        definition: new.definition,
        execute_at: new.execute_at,
        status: Status::Pending,
        attempt: 0,
        last_error: None,
        executed_at: None,
        created_at: new.created_at,
        updated_at: new.created_at,
        revision: 1,
        pause: None,
    }
}

pub async fn a_canceled_timer_is_never_due_and_never_claimed(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let before = stage.create(timer("http://a.example/").created_at(ago(secs(5)))).await;
    let Changed::Done(canceled) = stage.store.cancel(before.id(), None, ahead(secs(1))).await.unwrap() else {
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
    for status in Status::ALL.into_iter().filter(|status| status.after(Event::Cancel).is_none()) {
        let before = stage.in_status(timer("http://a.example/").key(status.as_str()), status).await;
        let answer = stage.store.cancel(before.id(), None, ahead(secs(1))).await.unwrap();
        assert_eq!(answer, Changed::WrongStatus(before.clone()), "{status}");
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
