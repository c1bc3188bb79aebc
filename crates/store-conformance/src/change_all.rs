//! Many timers changed by one call: in one commit, or each by itself where a store does not promise that.

use std::{collections::HashSet, sync::Arc};

use domain::{Event, Expiry, Missed, Next, Status, Timer, TimerId, Timestamp};
use futures_util::future::join_all;
use store::{BulkAction, BulkChange, BulkItem, Changed, EXPIRED_BY_CLIENT, Filter, MISSED_WHILE_PAUSED};
use tokio::task::JoinHandle;

use crate::{
    Fixture, NOW, Stage, ahead, secs,
    stage::{answered, entry, entry_at, retried},
    timer,
};

pub(crate) fn item(timer: &Timer) -> BulkItem {
    BulkItem { id: timer.id(), revision: timer.revision, status: timer.status, at: Some(ahead(secs(500))) }
}

async fn change(stage: &Stage, action: &BulkAction, items: &[BulkItem]) -> Vec<BulkChange> {
    stage.store.change_all(action, items, None, ahead(secs(60))).await.unwrap().unwrap()
}

async fn one_in_each_status(stage: &Stage, round: usize) -> Vec<Timer> {
    let mut timers = Vec::new();
    for status in Status::ALL {
        timers.push(stage.in_status(timer("http://a.example/").key(&format!("{round} {status}")), status).await);
    }
    timers
}

/// Timers that expire before they would be due by a bulk change, and after it. All of them are due at [`NOW`].
async fn one_of_each_expiry(stage: &Stage, round: usize) -> Vec<Timer> {
    let mut timers = Vec::new();
    for expiry in [
        Expiry::At(ahead(secs(60))),
        Expiry::At(ahead(secs(500))),
        Expiry::At(ahead(secs(501))),
        Expiry::After(secs(500)),
        Expiry::After(secs(501)),
    ] {
        for status in [Status::Pending, Status::Paused, Status::Failed] {
            let draft = timer("http://a.example/").key(&format!("{round} {status} {expiry:?}")).expiring(expiry);
            timers.push(stage.in_status(draft, status).await);
        }
    }
    timers
}

/// Timers whose end is told; one of them waits for a retry.
async fn one_of_each_that_tells(stage: &Stage, round: usize) -> Vec<Timer> {
    let draft = |name: &str| timer("http://a.example/").key(&format!("{round} told {name}")).telling("http://told.example/");
    let mut timers = vec![retried(stage, draft("retried"), ahead(secs(90))).await];
    for status in [Status::Pending, Status::Paused, Status::Executing, Status::Failed] {
        timers.push(stage.in_status(draft(status.as_str()), status).await);
    }
    timers
}

fn every_action() -> Vec<BulkAction> {
    vec![
        BulkAction::Cancel,
        BulkAction::Fire,
        BulkAction::Retry,
        BulkAction::Reschedule,
        BulkAction::Pause { note: Some("n".to_owned()) },
        BulkAction::Resume { missed: Missed::Fire },
        BulkAction::Resume { missed: Missed::Expire },
        BulkAction::Expire,
        BulkAction::Delete,
    ]
}

/// What an action makes of a timer, as the single changes would.
fn expected(action: &BulkAction, before: &Timer) -> Option<Timer> {
    let now = ahead(secs(60));
    let ended = |status, error: Option<&str>| Timer {
        status,
        pause: None,
        updated_at: now,
        last_error: error.map(str::to_owned).or(before.last_error.clone()),
        ..before.clone()
    };
    let moved = |execute_at| Timer {
        execute_at,
        updated_at: now,
        revision: before.revision + 1,
        attempt: 0,
        last_error: None,
        ..before.clone()
    };
    let pending = |timer: Timer| Timer { status: Status::Pending, pause: None, executed_at: None, ..timer };
    let is_before_expiry = |at: Timestamp, timer: &Timer| timer.expires_at().is_none_or(|expires_at| at < expires_at);
    let tells = before.definition.options.on_failure.is_some();
    let let_expire = |error: &str| {
        let timer =
            Timer { last_error: Some(error.to_owned()), updated_at: now, revision: before.revision + 1, ..before.clone() };
        Some(pending(timer))
    };
    let in_time = |timer: Timer| Some(timer).filter(|timer| is_before_expiry(timer.execute_at, timer));
    match (action, before.status) {
        (BulkAction::Cancel, Status::Pending | Status::Paused) => Some(ended(Status::Canceled, None)),
        (BulkAction::Expire, Status::Pending | Status::Paused) if tells => let_expire(EXPIRED_BY_CLIENT),
        (BulkAction::Expire, Status::Pending | Status::Paused) => Some(ended(Status::Expired, Some(EXPIRED_BY_CLIENT))),
        (BulkAction::Fire, Status::Pending) => in_time(moved(now)),
        (BulkAction::Reschedule, Status::Pending | Status::Paused) => in_time(moved(ahead(secs(500)))),
        (BulkAction::Pause { note }, Status::Pending) => Some(Timer {
            status: Status::Paused,
            pause: Some(domain::Pause { at: now, note: note.clone() }),
            updated_at: now,
            revision: before.revision + 1,
            ..before.clone()
        }),
        (BulkAction::Resume { missed: Missed::Expire }, Status::Paused) if tells => let_expire(store::MISSED_WHILE_PAUSED),
        (BulkAction::Resume { missed: Missed::Expire }, Status::Paused) => {
            Some(ended(Status::Expired, Some(store::MISSED_WHILE_PAUSED)))
        }
        (BulkAction::Resume { .. }, Status::Paused) => {
            Some(pending(Timer { updated_at: now, revision: before.revision + 1, ..before.clone() }))
        }
        (BulkAction::Retry, status) if status.after(Event::Reopen).is_some() => {
            is_before_expiry(ahead(secs(500)), before).then(|| pending(moved(before.execute_at)))
        }
        _ => None,
    }
}

pub async fn each_action_changes_what_it_concerns_and_nothing_else(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for (round, action) in every_action().into_iter().enumerate() {
        let mut timers = one_in_each_status(&stage, round).await;
        timers.extend(one_of_each_expiry(&stage, round).await);
        timers.extend(one_of_each_that_tells(&stage, round).await);
        let items: Vec<_> = timers.iter().map(item).collect();
        let changes = change(&stage, &action, &items).await;
        for (before, change) in timers.iter().zip(changes) {
            let case = format!("{action:?} {} {:?}", before.status, before.expires_at());
            if action == BulkAction::Delete && before.status.is_finished() {
                assert_eq!((change, stage.store.get(before.id()).await.unwrap()), (BulkChange::Changed, None), "{case}");
                continue;
            }
            let after = expected(&action, before);
            assert_eq!(change.is_change(), after.is_some(), "{case}");
            let now = stage.get(before.id()).await;
            assert_eq!(now, after.clone().unwrap_or(before.clone()), "{case}");
            let due = stage.due_of(before.id()).await;
            assert_eq!(due.len(), usize::from(now.status == Status::Pending), "{case}");
            if let BulkChange::Due(told) = change {
                assert_eq!(due, [told], "{case}");
                let asked = [BulkAction::Retry, BulkAction::Reschedule].contains(&action);
                assert!(!asked || told.at == ahead(secs(500)), "{case}: due when it was asked for");
            } else {
                assert!(after.is_none_or(|after| after.status != Status::Pending), "{case}: the scheduler must learn of it");
            }
        }
        let again = change(&stage, &action, &items).await;
        assert!(again.iter().all(|change| !change.is_change()), "{action:?}: a second time nothing is changed");
    }
}

pub async fn an_end_that_is_told_is_left_to_the_claim(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let now = ahead(secs(60));
    let draft = |key: &str| timer("http://a.example/").key(key).due_in(secs(90)).telling("http://told.example/");
    let pending = stage.create(draft("pending")).await;
    let paused = stage.in_status(draft("paused"), Status::Paused).await;
    let missed = stage.in_status(draft("missed").due_in(secs(5)), Status::Paused).await;
    change(&stage, &BulkAction::Expire, &[item(&pending), item(&paused)]).await;
    let resumed = stage.store.resume(missed.id(), None, Missed::Expire, now).await.unwrap();
    assert_eq!(resumed, Changed::Done(stage.get(missed.id()).await));
    for (before, error) in [(pending, EXPIRED_BY_CLIENT), (paused, EXPIRED_BY_CLIENT), (missed, MISSED_WHILE_PAUSED)] {
        let expected = Timer {
            status: Status::Pending,
            pause: None,
            last_error: Some(error.to_owned()),
            updated_at: now,
            revision: before.revision + 1,
            ..before
        };
        assert_eq!(stage.get(expected.id()).await, expected);
        let due = entry_at(&expected, now);
        assert_eq!(stage.due_of(expected.id()).await, [due]);
        let claimed = stage.claim(&[due]).await.remove(0);
        let met = claimed.timer.clone().unwrap();
        assert_eq!(
            (met.last_error.as_deref(), met.execute_at, met.revision),
            (Some(error), expected.execute_at, expected.revision)
        );
        stage.settle(&claimed, Next::Expired { at: now, error: error.to_owned(), is_called: false }).await;
        let ended = stage.get(expected.id()).await;
        assert_eq!(ended, Timer { status: Status::Expired, executed_at: Some(now), ..expected });
        // It can be tried again, as one that had no end to tell.
        let again = change(&stage, &BulkAction::Retry, &[item(&ended)]).await;
        assert!(again[0].is_change());
        assert_eq!(stage.get(ended.id()).await.last_error, None);
    }
}

pub async fn a_change_since_it_was_read_wins(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for (number, action) in (0..).zip(every_action()) {
        for status in Status::ALL {
            let draft = timer("http://a.example/").key(&format!("{number} {status}"));
            let before = stage.in_status(draft, status).await;
            for revision in [before.revision + 1, before.revision.saturating_sub(1)] {
                let changes = change(&stage, &action, &[BulkItem { revision, ..item(&before) }]).await;
                assert_eq!(changes, [BulkChange::Skipped], "{action:?} {status}");
            }
            assert_eq!(stage.get(before.id()).await, before, "{action:?} {status}");
        }
    }
    let unknown = BulkItem { id: TimerId::random(NOW), revision: 1, status: Status::Pending, at: Some(NOW) };
    assert_eq!(change(&stage, &BulkAction::Cancel, &[unknown]).await, [BulkChange::Skipped]);
    assert_eq!(change(&stage, &BulkAction::Cancel, &[]).await, []);
}

/// A claim and an end leave the revision as it is.
pub async fn a_timer_that_ended_since_it_was_read_is_left_alone(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for (number, action) in (0..).zip(every_action()) {
        for status in Status::ALL.into_iter().filter(|status| status.is_finished()) {
            let draft = timer("http://a.example/").key(&format!("{number} {status}"));
            let ended = stage.in_status(draft, status).await;
            for read in [Status::Pending, Status::Executing] {
                let changes = change(&stage, &action, &[BulkItem { status: read, ..item(&ended) }]).await;
                assert_eq!(changes, [BulkChange::Skipped], "{action:?} {read}, now {status}");
            }
            assert_eq!(stage.get(ended.id()).await, ended, "{action:?} {status}");
        }
    }
}

pub async fn what_waits_for_a_retry_is_changed_as_well(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let at = ahead(secs(90));
    let tried = retried(&stage, timer("http://a.example/").key("moved"), at).await;
    let changes = change(&stage, &BulkAction::Reschedule, &[item(&tried)]).await;
    assert_eq!(changes, [BulkChange::Due(entry_at(&tried, ahead(secs(500))))]);
    let moved = stage.get(tried.id()).await;
    assert_eq!((moved.attempt, moved.last_error.clone(), moved.execute_at), (0, None, ahead(secs(500))));
    assert_eq!(stage.due_of(tried.id()).await, [entry(&moved)]);
    let tried = retried(&stage, timer("http://a.example/").key("paused"), at).await;
    change(&stage, &BulkAction::Pause { note: None }, &[item(&tried)]).await;
    let paused = stage.get(tried.id()).await;
    let resumed = change(&stage, &BulkAction::Resume { missed: Missed::Expire }, &[item(&paused)]).await;
    assert_eq!(resumed, [BulkChange::Due(entry_at(&tried, at))], "its retry was not missed");
    assert_eq!(stage.get(tried.id()).await.attempt, 1);
}

pub async fn a_thousand_timers_are_changed_at_once(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..1_000).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let items: Vec<_> = timers.iter().map(item).collect();
    let changes = change(&stage, &BulkAction::Reschedule, &items).await;
    assert!(changes.iter().all(|change| change.is_change()));
    assert!(stage.due(ahead(secs(600))).await.iter().all(|entry| entry.at == ahead(secs(500))));
    let again: Vec<_> = items.iter().map(|item| BulkItem { revision: item.revision + 1, ..*item }).collect();
    let pause = BulkAction::Pause { note: None };
    assert!(change(&stage, &pause, &again).await.iter().all(|change| change.is_change()));
    let filter = Filter { status: vec![Status::Paused], ..Filter::default() };
    assert_eq!(stage.store.count(&filter, store::SEARCH_BUDGET).await.unwrap(), 1_000);
    assert_eq!(stage.due(ahead(secs(600))).await, []);
}

/// Runs both, each in a task of its own. Which of them begins alternates; in some rounds it has ended before the other begins, in the rest
/// they overlap.
async fn race<A: Send + 'static, B: Send + 'static>(
    round: u32,
    one: impl Future<Output = A> + Send + 'static,
    other: impl Future<Output = B> + Send + 'static,
) -> (A, B) {
    if round.is_multiple_of(2) {
        let first = tokio::spawn(one);
        begun(round, &first).await;
        let second = tokio::spawn(other);
        (first.await.unwrap(), second.await.unwrap())
    } else {
        let first = tokio::spawn(other);
        begun(round, &first).await;
        let second = tokio::spawn(one);
        let other = first.await.unwrap();
        (second.await.unwrap(), other)
    }
}

/// In every third pair of rounds the first one has ended before the second begins.
async fn begun<T>(round: u32, first: &JoinHandle<T>) {
    while (round / 2).is_multiple_of(3) && !first.is_finished() {
        tokio::task::yield_now().await;
    }
}

/// Rounds of a race: as many begin with the one as with the other, and of both some are certain.
const ROUNDS: u32 = 6;

pub async fn a_bulk_change_that_meets_a_claim_is_before_or_after_it(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for (number, action) in (0..).zip([BulkAction::Pause { note: None }, BulkAction::Cancel, BulkAction::Reschedule]) {
        let (mut won, mut lost) = (0, 0);
        for round in 0..ROUNDS {
            let first = u64::from((number * ROUNDS + round) * 1_000);
            let numbers = first..first + 50;
            let timers = stage.create_new(numbers.map(|n| timer("http://a.example/").numbered(n)).collect()).await;
            let items: Vec<_> = timers.iter().map(item).collect();
            let entries: Vec<_> = timers.iter().map(entry).collect();
            let in_bulk = {
                let (store, action) = (Arc::clone(&stage.store), action.clone());
                async move { answered(|| store.change_all(&action, &items, None, ahead(secs(60)))).await.unwrap() }
            };
            let claim = {
                let (store, claim) = (Arc::clone(&stage.store), stage.new_claim());
                async move { answered(|| store.claim(&claim, &entries)).await }
            };
            let (changes, claimed) = race(round, in_bulk, claim).await;
            let claimed: HashSet<_> = claimed.into_iter().map(|claimed| claimed.entry.id).collect();
            won += changes.iter().filter(|change| change.is_change()).count();
            lost += claimed.len();
            for (timer, change) in timers.iter().zip(changes) {
                let now = stage.get(timer.id()).await;
                let is_claimed = claimed.contains(&timer.id());
                assert_ne!(change.is_change(), is_claimed && now.status == Status::Executing, "{action:?}: {now:?}");
                assert!(!(change.is_change() && is_claimed), "{action:?}: both changed and claimed");
            }
        }
        assert!(won > 0 && lost > 0, "{action:?}: no race: {won} changed, {lost} claimed");
    }
}

pub async fn a_bulk_change_that_meets_single_changes_counts_once_for_each_timer(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let (mut won, mut lost) = (0, 0);
    for round in 0..ROUNDS {
        let first = u64::from(round * 1_000);
        let timers = stage.create_new((first..first + 50).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
        let items: Vec<_> = timers.iter().map(item).collect();
        let in_bulk = {
            let store = Arc::clone(&stage.store);
            async move { answered(|| store.change_all(&BulkAction::Reschedule, &items, None, ahead(secs(60)))).await.unwrap() }
        };
        let singles = {
            let (store, timers) = (Arc::clone(&stage.store), timers.clone());
            let single = move |(n, timer): (usize, Timer)| {
                let store = Arc::clone(&store);
                async move {
                    let moved = Timer { execute_at: ahead(secs(300)), ..timer };
                    match n % 2 {
                        0 => answered(|| store.cancel(moved.id(), None, NOW)).await,
                        _ => answered(|| store.update(&moved, NOW)).await,
                    }
                }
            };
            async move { join_all(timers.into_iter().enumerate().map(single)).await }
        };
        let (changes, singles) = race(round, in_bulk, singles).await;
        for (n, ((timer, in_bulk), single)) in timers.iter().zip(changes).zip(singles).enumerate() {
            let now = stage.get(timer.id()).await;
            match (n % 2, in_bulk.is_change(), single) {
                // A cancel asks for no revision: it comes before the bulk change, or after it.
                (0, moved, Changed::Done(_)) => {
                    assert_eq!((now.status, now.revision), (Status::Canceled, 1 + u32::from(moved)), "{now:?}");
                }
                // Both have read the same revision: one of them counts.
                (1, true, Changed::StaleRevision(_)) => {
                    won += 1;
                    assert_eq!((now.execute_at, now.revision), (ahead(secs(500)), 2));
                }
                (1, false, Changed::Done(after)) => {
                    lost += 1;
                    assert_eq!((now.revision, &now), (2, &after));
                }
                other => panic!("{other:?} {now:?}"),
            }
            assert_eq!(stage.due_of(timer.id()).await.len(), usize::from(now.status == Status::Pending));
        }
    }
    assert!(won > 0 && lost > 0, "no race: {won} changed in bulk, {lost} by themselves");
}
