//! The record of what happened to timers.

use std::{collections::BTreeSet, sync::Arc};

use domain::{Attempt, Missed, Next, OnConflict, Span, Status, Timer, TimerId, Timestamp, limits};
use store::{BulkAction, BulkItem, Changed, Created, Happened, PROMPT_WITHIN, Recorded, Settlement, Store, Watermark};

use crate::{
    Draft, Fixture, NOW, Stage, ago,
    fixture::skip,
    millis, secs,
    stage::{answered, entry_at},
    timer,
};

/// The moment by the database's clock.
async fn now(stage: &Stage) -> Timestamp {
    stage.store.watermark().await.unwrap().at
}

/// A timer that is registered now by the database's clock, and is due as all others are.
async fn prompt(stage: &Stage) -> Draft {
    timer("http://a.example/").created_at(now(stage).await)
}

/// All events around now.
async fn recent(stage: &Stage) -> Vec<Recorded> {
    let now = now(stage).await;
    let (after, until) = (now.saturating_sub(secs(50)), now.saturating_add(secs(50)));
    let page = stage.store.events(after, until, 1_000).await.unwrap();
    assert_eq!(page.until, until);
    assert!(page.events.is_sorted_by_key(|event| event.position));
    page.events
}

/// What happened to one timer lately, in the order of the moments.
async fn lately(stage: &Stage, id: TimerId) -> Vec<Happened> {
    recent(stage).await.into_iter().filter(|event| event.id == id).map(|event| event.what).collect()
}

async fn ended(stage: &Stage, timer: &Timer, next: Next) -> Timer {
    stage.settle(&stage.claim_one(timer).await, next).await;
    stage.get(timer.id()).await
}

pub async fn a_life_in_time_is_recorded_by_its_own_rows(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    assert_eq!(recent(&stage).await, []);
    let timer = stage.create(prompt(&stage).await).await;
    let at = now(&stage).await;
    ended(&stage, &timer, Next::Completed { at }).await;
    let canceled = stage.create(prompt(&stage).await).await;
    let canceled_at = now(&stage).await;
    let Changed::Done(_) = stage.store.cancel(canceled.id(), None, canceled_at).await.unwrap() else { panic!("it was pending") };

    let events = recent(&stage).await;
    let event = |timer: &Timer, position, what| Recorded { position, id: timer.id(), what };
    for (timer, at, status) in [(&timer, at, Status::Completed), (&canceled, canceled_at, Status::Canceled)] {
        assert!(events.contains(&event(timer, timer.created_at, Happened::Created { at: timer.created_at })), "{events:?}");
        assert!(events.contains(&event(timer, at, Happened::Finished { at, status })), "{events:?}");
    }
    assert_eq!(events.len(), 4, "{events:?}");
}

pub async fn what_is_written_late_is_an_event_of_its_moment(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let before = now(&stage).await.saturating_sub(millis(10));
    let failed = stage.create(timer("http://a.example/")).await;
    let canceled = stage.create(timer("http://a.example/")).await;
    ended(&stage, &failed, Next::Failed { at: ago(secs(5)), error: "503".to_owned() }).await;
    stage.cancel(canceled.id()).await;

    let events = recent(&stage).await;
    assert!(events.iter().all(|event| event.position >= before), "{events:?}");
    for (timer, at, status) in [(&failed, ago(secs(5)), Status::Failed), (&canceled, NOW, Status::Canceled)] {
        let expected = [Happened::Created { at: NOW }, Happened::Finished { at, status }];
        assert_eq!(lately(&stage, timer.id()).await, expected);
    }
    // Their own rows show the same at their own times.
    let page = stage.store.events(ago(secs(10)), NOW, 100).await.unwrap();
    assert_eq!(page.events.len(), 4, "{:?}", page.events);
}

pub async fn every_raised_revision_is_an_event(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let draft = prompt(&stage).await.key("k");
    let created = stage.create(draft.clone()).await;
    let updated = stage.update(&Timer { execute_at: ago(secs(1)), ..created.clone() }, NOW).await;
    for mode in [OnConflict::Replace, OnConflict::Keep] {
        let again = draft.clone().payload("1").due_ago(secs(2)).on_conflict(mode);
        let Created::Replaced(_) = stage.create_all(vec![again]).await.remove(0) else { panic!("it was pending") };
    }
    let moved = stage.get(created.id()).await;
    let again = ended(&stage, &moved, Next::Again { at: NOW }).await;
    let failed = ended(&stage, &again, Next::Failed { at: now(&stage).await, error: "503".to_owned() }).await;
    let Changed::Done(reopened) = stage.store.reopen(created.id(), None, NOW).await.unwrap() else { panic!("it had failed") };
    assert_eq!((updated.revision, failed.revision, reopened.revision), (2, 5, 6));
    let Changed::Done(_) = stage.store.pause(created.id(), None, None, NOW).await.unwrap() else { panic!("it was pending") };
    let resumed = stage.store.resume(created.id(), None, Missed::Fire, NOW).await.unwrap();
    assert!(matches!(resumed, Changed::Done(Timer { revision: 8, .. })), "{resumed:?}");
    let revisions = lately(&stage, created.id()).await.into_iter().filter_map(|what| match what {
        Happened::Changed { revision } => Some(revision),
        _ => None,
    });
    assert_eq!(revisions.collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7, 8]);
}

pub async fn what_is_changed_with_many_is_an_event_as_alone(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timer = stage.create(prompt(&stage).await).await;
    let actions = [
        (BulkAction::Reschedule, true),
        (BulkAction::Pause { note: None }, true),
        (BulkAction::Resume { missed: Missed::Fire }, true),
        (BulkAction::Expire, false),
        (BulkAction::Retry, true),
        (BulkAction::Fire, true),
        (BulkAction::Cancel, false),
    ];
    let (mut revision, mut changes) = (1, Vec::new());
    for (action, is_raised) in actions {
        let status = stage.get(timer.id()).await.status;
        let item = BulkItem { id: timer.id(), revision, status, at: Some(ago(secs(1))) };
        let at = now(&stage).await;
        let changed = stage.store.change_all(&action, &[item], None, at).await.unwrap().unwrap();
        assert!(changed[0].is_change(), "{action:?}");
        if is_raised {
            revision += 1;
            changes.push(Happened::Changed { revision });
        }
    }
    let happened = lately(&stage, timer.id()).await;
    let is_of = |kind: i16| happened.iter().filter(move |what| what.kind() == kind).copied().collect::<Vec<_>>();
    assert_eq!(is_of(Happened::CHANGED), changes, "{happened:?}");
    for (kind, status) in [(Happened::ENDED, Status::Expired), (Happened::FINISHED, Status::Canceled)] {
        let ends = is_of(kind);
        let is_meant = |what: &Happened| matches!(what, Happened::Ended { status: end, .. } | Happened::Finished { status: end, .. } if *end == status);
        assert!(ends.len() == 1 && is_meant(&ends[0]), "{happened:?}");
    }
    let item = BulkItem { id: timer.id(), revision, status: Status::Canceled, at: None };
    stage.store.change_all(&BulkAction::Delete, &[item], None, NOW).await.unwrap();
    assert!(
        lately(&stage, timer.id()).await.iter().all(|what| !matches!(what, Happened::Ended { status: Status::Canceled, .. }))
    );
}

pub async fn a_refused_change_is_no_event(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let draft = prompt(&stage).await.key("k");
    let timer = stage.create(draft.clone()).await;
    let before = recent(&stage).await;
    stage.create_all(vec![draft.clone(), draft.payload("1")]).await;
    let stale = Timer { revision: 7, ..timer.clone() };
    assert!(!matches!(stage.store.update(&stale, NOW).await.unwrap(), Changed::Done(_)));
    assert!(!matches!(stage.store.reopen(timer.id(), None, NOW).await.unwrap(), Changed::Done(_)));
    assert_eq!(recent(&stage).await, before);
}

pub async fn a_new_life_keeps_the_creation_and_the_end_of_the_former_one(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for revived in [true, false] {
        let draft = prompt(&stage).await.key(if revived { "revived" } else { "reopened" });
        let timer = stage.create(draft.clone()).await;
        let at = now(&stage).await;
        ended(&stage, &timer, Next::Failed { at, error: "503".to_owned() }).await;
        let created_at = now(&stage).await;
        if revived {
            let again = draft.created_at(created_at).on_conflict(OnConflict::Replace);
            let Created::Replaced(_) = stage.create_all(vec![again]).await.remove(0) else { panic!("it had ended") };
        } else {
            let Changed::Done(_) = stage.store.reopen(timer.id(), None, NOW).await.unwrap() else { panic!("it had failed") };
        }
        let happened = lately(&stage, timer.id()).await;
        let end = Happened::Ended { at, status: Status::Failed };
        let created = Happened::Created { at: if revived { created_at } else { timer.created_at } };
        let began = revived.then_some(Happened::Began { at: timer.created_at });
        let expected: Vec<_> = [end, Happened::Changed { revision: 2 }, created].into_iter().chain(began).collect();
        for expected in &expected {
            assert!(happened.contains(expected), "{expected:?} is not in {happened:?}");
        }
        assert_eq!(happened.len(), expected.len(), "{happened:?}");
    }
}

fn attempt(number: u32) -> Attempt {
    Attempt {
        number,
        started_at: NOW,
        took: millis(12),
        outcome: "status_5xx".to_owned(),
        status: Some(503),
        detail: Some("busy".to_owned()),
        node: None,
        answer: None,
    }
}

pub async fn recorded_attempts_are_events(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timer = stage.create(prompt(&stage).await).await;
    let count = u32::try_from(limits::ATTEMPTS_KEPT).unwrap() + 1;
    for number in 1..=count {
        let claimed = stage.claim(&[entry_at(&timer, NOW)]).await.remove(0);
        let retry = Next::Pending { at: NOW, attempt: number, error: None };
        let settlement = Settlement { attempt: Some(attempt(number)), ..claimed.settle(retry) };
        assert_eq!(stage.store.settle(&[settlement]).await.unwrap(), [true]);
    }
    let attempted = lately(&stage, timer.id()).await.into_iter().filter_map(|what| match what {
        Happened::Attempted { seq } => Some((timer.id(), seq)),
        _ => None,
    });
    let of: Vec<_> = attempted.collect();
    assert_eq!(of.len(), count as usize);
    let attempts = stage.store.attempts_at(&of).await.unwrap();
    // The first is kept no more.
    let expected: Vec<_> = (1..=count).map(|number| (number > 1).then(|| attempt(number))).collect();
    assert_eq!(attempts, expected);
    assert_eq!(stage.store.attempts_at(&[(TimerId::random(NOW), 1), of[1]]).await.unwrap(), [None, Some(attempt(2))]);
    assert_eq!(stage.store.attempts_at(&[]).await.unwrap(), []);
}

pub async fn pages_of_events_neither_repeat_nor_miss_one(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let start = now(&stage).await;
    let (mut expected, mut base) = (BTreeSet::new(), start);
    for n in 0..20_u32 {
        // Not in their order, and never so long ago that the journal has them as well.
        if n % 3 == 0 {
            base = now(&stage).await;
        }
        let created_at = base.saturating_add(Span::from_micros(n * 7 % 20));
        let timer = stage.create(timer("http://a.example/").created_at(created_at)).await;
        expected.insert((timer.id(), Happened::CREATED));
        if n % 2 == 0 {
            let at = now(&stage).await;
            stage.store.cancel(timer.id(), None, at).await.unwrap();
            expected.insert((timer.id(), Happened::FINISHED));
        } else {
            stage.update(&timer, NOW).await;
            expected.insert((timer.id(), Happened::CHANGED));
        }
    }
    let (mut after, until) = (start.saturating_sub(secs(1)), start.saturating_add(secs(50)));
    let mut seen = Vec::new();
    while after < until {
        let page = stage.store.events(after, until, 3).await.unwrap();
        assert!(page.until > after && page.events.iter().all(|event| after < event.position && event.position <= page.until));
        seen.extend(page.events.iter().map(|event| (event.id, event.what.kind())));
        after = page.until;
    }
    assert_eq!(seen.len(), expected.len());
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), expected);
}

pub async fn many_events_of_one_moment_come_together(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let drafts = (0..50).map(|n| timer("http://a.example/").numbered(n)).collect();
    stage.create_new(drafts).await;
    let page = stage.store.events(ago(secs(1)), NOW, 3).await.unwrap();
    assert_eq!((page.events.len(), page.until), (50, NOW));
}

pub async fn an_event_that_is_recorded_later_lies_behind_the_watermark(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let first = stage.store.watermark().await.unwrap();
    let written = stage.create(prompt(&stage).await).await;
    stage.update(&written, NOW).await;
    let second = stage.store.watermark().await.unwrap();
    assert!(second.at >= first.at && second.next >= first.next && second.open <= second.next);
    let events = lately(&stage, written.id()).await;
    assert_eq!(events.len(), 2, "{events:?}");
    assert!(recent(&stage).await.iter().all(|event| event.position >= first.at.saturating_sub(PROMPT_WITHIN)));
    // Nothing is being written any more, unless another database of the same server has been.
    stage
        .eventually("a watermark past the second", || async {
            stage.store.watermark().await.unwrap().is_past(&second).then_some(())
        })
        .await;
}

/// Follows the events as the tail of a process does: never reads again what lies before the last watermark that is past.
async fn follow(store: Arc<dyn Store>, mut position: Timestamp, all: &BTreeSet<TimerId>) {
    let mut marks: Vec<Watermark> = Vec::new();
    let mut seen = BTreeSet::new();
    while !all.is_subset(&seen) {
        let watermark = store.watermark().await.unwrap();
        let page = store.events(position, watermark.at.saturating_add(secs(3)), 100_000).await.unwrap();
        seen.extend(page.events.iter().filter(|event| event.what.kind() == Happened::CREATED).map(|event| event.id));
        if let Some(past) = marks.iter().rposition(|mark| watermark.is_past(mark)) {
            position = position.max(marks[past].at.saturating_sub(PROMPT_WITHIN).saturating_sub(millis(10)));
            marks.drain(..=past);
        }
        marks.push(watermark);
        tokio::task::yield_now().await;
    }
}

pub async fn a_reader_behind_the_watermark_misses_nothing(fixture: impl Fixture) {
    let stage = Arc::new(Stage::set(&fixture).await);
    let drafts: Vec<Draft> = (0..240).map(|n| timer("http://a.example/").numbered(n)).collect();
    let all: BTreeSet<TimerId> = drafts.iter().map(Draft::id).collect();
    let start = now(&stage).await.saturating_sub(secs(3));
    let follower = {
        tokio::spawn({
            let (store, all) = (Arc::clone(&stage.store), all.clone());
            async move { follow(store, start, &all).await }
        })
    };
    let mut writers = Vec::new();
    for part in drafts.chunks(40) {
        let (stage, part) = (Arc::clone(&stage), part.to_vec());
        writers.push(tokio::spawn(async move {
            for draft in part {
                let created_at = now(&stage).await;
                let new = draft.created_at(created_at).build();
                answered(|| stage.store.create(vec![new.clone()])).await;
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    follower.await.unwrap();
}

pub async fn timers_of_events_come_as_far_as_they_can_be_read(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..3).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let mut ids: Vec<_> = timers.iter().map(Timer::id).collect();
    ids.push(TimerId::random(NOW));
    let mut found = stage.store.timers(&ids).await.unwrap();
    found.sort_by_key(Timer::id);
    assert_eq!(found, timers);
    assert_eq!(stage.store.timers(&[]).await.unwrap(), []);
    if !fixture.spoil(ids[1]).await {
        return skip("timers_of_events_come_as_far_as_they_can_be_read", "the fixture cannot spoil a timer");
    }
    let mut found: Vec<_> = stage.store.timers(&ids).await.unwrap().iter().map(Timer::id).collect();
    found.sort_unstable();
    assert_eq!(found, [ids[0], ids[2]]);
}

pub async fn old_entries_of_the_journal_are_forgotten(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timer = stage.create(prompt(&stage).await).await;
    let timer = stage.update(&timer, NOW).await;
    stage.update(&timer, NOW).await;
    let now = now(&stage).await;
    assert_eq!(stage.store.forget_events(now.saturating_sub(secs(60)), 10).await.unwrap(), 0);
    assert_eq!(stage.store.forget_events(now.saturating_add(secs(1)), 1).await.unwrap(), 1);
    assert_eq!(lately(&stage, timer.id()).await.len(), 2);
    assert_eq!(stage.store.forget_events(now.saturating_add(secs(1)), 10).await.unwrap(), 1);
    assert_eq!(lately(&stage, timer.id()).await, [Happened::Created { at: timer.created_at }]);
}
