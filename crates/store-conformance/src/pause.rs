//! A paused timer is out of what is due until it is resumed.

use domain::{Event, Missed, Next, Pause, Status, Timer, TimerId, limits};
use store::{Changed, Filter, ListQuery, MISSED_WHILE_PAUSED, Order, SEARCH_BUDGET, Sort};

use crate::{
    Fixture, NOW, Stage, ahead, secs,
    stage::{entry, entry_at, retried},
    timer,
};

pub async fn a_paused_timer_is_never_due_and_never_claimed(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let before = stage.create(timer("http://a.example/")).await;
    let answer = stage.store.pause(before.id(), None, Some("maintenance"), ahead(secs(1))).await.unwrap();
    let pause = Pause { at: ahead(secs(1)), note: Some("maintenance".to_owned()) };
    let expected = Timer {
        status: Status::Paused,
        updated_at: ahead(secs(1)),
        revision: before.revision + 1,
        pause: Some(pause),
        ..before.clone()
    };
    assert_eq!(answer, Changed::Done(expected.clone()));
    assert_eq!(stage.get(before.id()).await, expected);
    assert_eq!(stage.due(ahead(secs(600))).await, []);
    assert_eq!(stage.claim(&[entry(&before)]).await, []);
    assert_eq!(stage.store.purge(ahead(secs(600)), 10).await.unwrap(), 0);
    assert_eq!(stage.get(before.id()).await, expected);
}

pub async fn a_resumed_timer_goes_on_where_it_was(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let before = stage.create(timer("http://a.example/").due_in(secs(300))).await;
    stage.pause(before.id()).await;
    for missed in [Missed::Fire, Missed::Expire] {
        let paused = stage.get(before.id()).await;
        let answer = stage.store.resume(before.id(), None, missed, ahead(secs(2))).await.unwrap();
        let expected = Timer { updated_at: ahead(secs(2)), revision: paused.revision + 1, ..before.clone() };
        assert_eq!(answer, Changed::Done(expected.clone()));
        assert_eq!(stage.get(before.id()).await, expected);
        assert_eq!(stage.due(ahead(secs(600))).await, [entry(&before)]);
        stage.pause(before.id()).await;
    }
    let resumed = stage.resume(before.id(), ahead(secs(3))).await;
    let claimed = stage.claim_one(&resumed).await;
    assert_eq!(claimed.timer.unwrap().definition, before.definition);
}

pub async fn a_timer_that_was_due_meanwhile_fires_when_it_is_resumed_or_expires(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for (missed, second) in [(Missed::Fire, 60), (Missed::Fire, 0), (Missed::Expire, 60), (Missed::Expire, 0)] {
        let paused = stage.in_status(timer("http://a.example/"), Status::Paused).await;
        let now = ahead(secs(second));
        let answer = stage.store.resume(paused.id(), None, missed, now).await.unwrap();
        let resumed = Timer { status: Status::Pending, pause: None, updated_at: now, ..paused };
        let expected = match missed {
            Missed::Fire => Timer { revision: resumed.revision + 1, ..resumed },
            Missed::Expire => Timer { status: Status::Expired, last_error: Some(MISSED_WHILE_PAUSED.to_owned()), ..resumed },
        };
        assert_eq!(answer, Changed::Done(expected.clone()));
        assert_eq!(stage.get(expected.id()).await, expected);
        let due = if missed == Missed::Fire { vec![entry_at(&expected, now)] } else { Vec::new() };
        assert_eq!(stage.due_of(expected.id()).await, due, "execute_at stays, and the attempt is due now");
    }
}

pub async fn what_waits_for_a_retry_goes_on_waiting_when_it_is_resumed(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let at = ahead(secs(90));
    let tried = retried(&stage, timer("http://a.example/").payload("1"), at).await;
    let paused = stage.pause(tried.id()).await;
    assert_eq!((paused.attempt, paused.last_error.as_deref()), (1, Some("HTTP 503")));
    // New content leaves the next attempt when it was.
    let changed = Timer { execute_at: paused.execute_at, ..paused.clone() };
    let changed = stage.update(&changed, ahead(secs(1))).await;
    assert_eq!((changed.status, changed.attempt, changed.last_error), (Status::Paused, 1, Some("HTTP 503".to_owned())));
    let resumed = stage.resume(tried.id(), ahead(secs(5))).await;
    assert_eq!((resumed.status, resumed.attempt), (Status::Pending, 1));
    assert_eq!(stage.due_of(tried.id()).await, [entry_at(&tried, at)]);
    let claimed = stage.claim(&[entry_at(&tried, at)]).await.remove(0);
    assert_eq!(claimed.attempt, 2);
    stage.settle(&claimed, Next::Completed { at }).await;
}

pub async fn only_what_is_pending_is_paused_and_only_what_is_paused_is_resumed(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for status in Status::ALL {
        let timer = stage.in_status(timer("http://a.example/").key(status.as_str()), status).await;
        if status.after(Event::Pause).is_none() {
            let answer = stage.store.pause(timer.id(), None, None, ahead(secs(1))).await.unwrap();
            assert_eq!(answer, Changed::WrongStatus(timer.clone()), "{status}");
        }
        if status.after(Event::Resume).is_none() {
            let answer = stage.store.resume(timer.id(), None, Missed::Fire, ahead(secs(1))).await.unwrap();
            assert_eq!(answer, Changed::WrongStatus(timer.clone()), "{status}");
        }
        assert_eq!(stage.get(timer.id()).await, timer);
    }
    let unknown = TimerId::random(NOW);
    assert_eq!(stage.store.pause(unknown, None, None, NOW).await.unwrap(), Changed::NotFound);
    assert_eq!(stage.store.resume(unknown, None, Missed::Fire, NOW).await.unwrap(), Changed::NotFound);
}

pub async fn a_pause_and_its_end_count_only_for_the_expected_revision(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timer = stage.create(timer("http://a.example/")).await;
    let (id, now) = (timer.id(), ahead(secs(1)));
    for stale in [0, 2] {
        let answer = stage.store.pause(id, Some(stale), None, now).await.unwrap();
        assert!(matches!(answer, Changed::StaleRevision(_)), "{answer:?}");
    }
    assert!(matches!(stage.store.pause(id, Some(1), None, now).await.unwrap(), Changed::Done(_)));
    for stale in [1, 3] {
        let answer = stage.store.resume(id, Some(stale), Missed::Fire, now).await.unwrap();
        assert!(matches!(answer, Changed::StaleRevision(_)), "{answer:?}");
    }
    assert!(matches!(stage.store.resume(id, Some(2), Missed::Fire, now).await.unwrap(), Changed::Done(_)));
    assert_eq!(stage.get(id).await.revision, 3);
}

pub async fn a_paused_timer_can_be_changed_and_stays_paused(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let paused = stage.in_status(timer("http://a.example/"), Status::Paused).await;
    let mut changed = Timer { execute_at: ahead(secs(200)), ..paused.clone() };
    changed.definition.callback = timer("http://new.example/").build().definition.callback;
    let updated = stage.update(&changed, ahead(secs(1))).await;
    let expected = Timer { revision: paused.revision + 1, updated_at: ahead(secs(1)), ..changed };
    assert_eq!(updated, expected);
    assert_eq!(stage.get(paused.id()).await, expected);
    assert_eq!(stage.due(ahead(secs(600))).await, []);
    let stale = stage.store.update(&paused, NOW).await.unwrap();
    assert!(matches!(stale, Changed::StaleRevision(_)), "{stale:?}");

    let resumed = stage.resume(paused.id(), ahead(secs(2))).await;

    assert_eq!(resumed.execute_at, ahead(secs(200)));
    assert_eq!(stage.due(ahead(secs(600))).await, [entry(&resumed)], "with the new time and the new destination");
}

pub async fn a_paused_timer_can_be_canceled_and_keeps_the_record_of_its_attempts(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let tried = retried(&stage, timer("http://a.example/"), ahead(secs(60))).await;
    let paused = stage.pause(tried.id()).await;
    let canceled = stage.cancel(tried.id()).await;
    let expected = Timer { status: Status::Canceled, pause: None, updated_at: NOW, ..paused };
    assert_eq!(canceled, expected);
    assert_eq!(stage.get(tried.id()).await, expected);
    assert_eq!((canceled.attempt, canceled.last_error.as_deref()), (1, Some("HTTP 503")));
    assert_eq!(stage.store.purge(ahead(secs(1)), 10).await.unwrap(), 1);
    assert_eq!(stage.store.get(tried.id()).await.unwrap(), None);
}

pub async fn notes_come_back_as_written(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let longest = "é".repeat(limits::PAUSE_NOTE_CHARS_MAX);
    for note in ["", "a 'quoted' \\ note", "😀", &longest] {
        let id = stage.create(timer("http://a.example/")).await.id();
        stage.store.pause(id, None, Some(note), NOW).await.unwrap();
        assert_eq!(stage.get(id).await.pause.unwrap().note.as_deref(), Some(note));
    }
}

pub async fn paused_timers_are_listed_and_counted(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let mut paused = Vec::new();
    for n in 0..30 {
        let draft = timer("http://a.example/").numbered(n).due_in(secs(u32::try_from(n * 7 % 30).unwrap() * 10));
        let timer = stage.create(draft).await;
        if n % 3 == 0 {
            paused.push(stage.pause(timer.id()).await);
        }
    }
    let filter = Filter { status: vec![Status::Paused], ..Filter::default() };
    assert_eq!(stage.store.count(&filter, SEARCH_BUDGET).await.unwrap(), 10);
    assert_eq!(stage.store.count(&Filter::default(), SEARCH_BUDGET).await.unwrap(), 30);
    for sort in [Sort::CreatedAt, Sort::ExecuteAt] {
        let query = ListQuery { filter: filter.clone(), sort, order: Order::Ascending, limit: 4, ..ListQuery::default() };
        let mut expected = paused.clone();
        expected.sort_by_key(|timer| match sort {
            Sort::CreatedAt => (timer.created_at, timer.id()),
            Sort::ExecuteAt => (timer.execute_at, timer.id()),
        });
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = stage.store.list(&ListQuery { after, ..query.clone() }).await.unwrap();
            found.extend(page.timers.iter().map(|summary| (summary.id, summary.status)));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, expected.iter().map(|timer| (timer.id(), Status::Paused)).collect::<Vec<_>>(), "{sort:?}");
    }
}
