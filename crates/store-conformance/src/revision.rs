//! Changes that expect a revision: they are made from exactly that one, or not at all.

use std::sync::Arc;

use domain::{Event, Status, Timer};
use store::Changed;
use tokio::task::JoinSet;

use crate::{
    Fixture, NOW, Stage, ahead, secs,
    stage::{answered, entry, entry_at},
    timer,
};

pub async fn a_cancel_of_another_revision_changes_nothing(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let first = stage.create(timer("http://a.example/")).await;
    let second = stage.update(&Timer { execute_at: ahead(secs(60)), ..first.clone() }, NOW).await;
    for expected in [first.revision, second.revision + 1, 0, u32::MAX] {
        let answer = stage.store.cancel(first.id(), Some(expected), ahead(secs(1))).await.unwrap();
        assert_eq!(answer, Changed::StaleRevision(second.clone()), "{expected}");
        assert_eq!(stage.get(first.id()).await, second);
    }
    assert_eq!(stage.due(ahead(secs(600))).await, [entry(&second)]);
    let answer = stage.store.cancel(first.id(), Some(second.revision), ahead(secs(1))).await.unwrap();
    let canceled = Timer { status: Status::Canceled, updated_at: ahead(secs(1)), ..second };
    assert_eq!(answer, Changed::Done(canceled.clone()));
    assert_eq!(stage.get(first.id()).await, canceled);
    assert_eq!(stage.due(ahead(secs(600))).await, []);
}

pub async fn a_reopen_of_another_revision_changes_nothing(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let failed = stage.in_status(timer("http://a.example/"), Status::Failed).await;
    for expected in [failed.revision + 1, 0, u32::MAX] {
        let answer = stage.store.reopen(failed.id(), Some(expected), ahead(secs(1))).await.unwrap();
        assert_eq!(answer, Changed::StaleRevision(failed.clone()), "{expected}");
        assert_eq!(stage.get(failed.id()).await, failed);
    }
    let answer = stage.store.reopen(failed.id(), Some(failed.revision), ahead(secs(1))).await.unwrap();
    let Changed::Done(reopened) = answer else { panic!("{answer:?}") };
    assert_eq!((reopened.status, reopened.revision), (Status::Pending, failed.revision + 1));
    assert_eq!(stage.due(ahead(secs(600))).await, [entry_at(&reopened, ahead(secs(1)))]);
}

pub async fn the_status_is_decided_before_the_revision(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for status in Status::ALL {
        let before = stage.in_status(timer("http://a.example/").key(status.as_str()), status).await;
        for expected in [before.revision, before.revision + 1] {
            if status.after(Event::Cancel).is_none() {
                let canceled = stage.store.cancel(before.id(), Some(expected), NOW).await.unwrap();
                assert_eq!(canceled, Changed::WrongStatus(before.clone()), "{status}");
            }
            if status.after(Event::Reopen).is_none() {
                let reopened = stage.store.reopen(before.id(), Some(expected), NOW).await.unwrap();
                assert_eq!(reopened, Changed::WrongStatus(before.clone()), "{status}");
            }
        }
        assert_eq!(stage.get(before.id()).await, before, "{status}");
    }
    let unknown = timer("http://a.example/").id();
    assert_eq!(stage.store.cancel(unknown, Some(1), NOW).await.unwrap(), Changed::NotFound);
    assert_eq!(stage.store.reopen(unknown, Some(1), NOW).await.unwrap(), Changed::NotFound);
}

/// Updates that leave the timer at its time, updates that move it, and a cancel.
pub async fn of_many_changes_of_one_revision_one_counts(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for round in 0..20 {
        let before = stage.create(timer("http://a.example/")).await;
        let mut tasks = JoinSet::new();
        for n in 0..6 {
            let (store, before) = (Arc::clone(&stage.store), before.clone());
            let mut changed = before.clone();
            changed.definition.callback = timer("http://b.example/").payload(&n.to_string()).build().definition.callback;
            changed.execute_at = ahead(secs([0, 30, 90][n % 3]));
            tasks.spawn(async move {
                // The cancel stands at another position in each round.
                match n == round % 6 {
                    true => answered(|| store.cancel(before.id(), Some(before.revision), NOW)).await,
                    false => answered(|| store.update(&changed, NOW)).await,
                }
            });
        }
        let mut done = Vec::new();
        while let Some(answer) = tasks.join_next().await {
            match answer.unwrap() {
                Changed::Done(timer) => done.push(timer),
                Changed::WrongStatus(met) => assert_eq!((met.status, met.revision), (Status::Canceled, before.revision)),
                Changed::StaleRevision(met) => assert_eq!((met.status, met.revision), (Status::Pending, before.revision + 1)),
                Changed::NotFound => panic!("the timer is there"),
            }
        }
        assert_eq!(done, [stage.get(before.id()).await]);
    }
}

pub async fn of_many_reopens_of_one_revision_one_counts(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for _ in 0..5 {
        let failed = stage.in_status(timer("http://a.example/"), Status::Failed).await;
        let mut tasks = JoinSet::new();
        for n in 1..=6 {
            let (store, failed) = (Arc::clone(&stage.store), failed.clone());
            tasks.spawn(async move { answered(|| store.reopen(failed.id(), Some(failed.revision), ahead(secs(n)))).await });
        }
        let mut done = Vec::new();
        while let Some(answer) = tasks.join_next().await {
            match answer.unwrap() {
                Changed::Done(timer) => done.push(timer),
                other => assert!(matches!(other, Changed::WrongStatus(_)), "{other:?}"),
            }
        }
        assert_eq!(done, [stage.get(failed.id()).await]);
        // It fails again: what was expected of its former failure no longer holds.
        let due = stage.due_of(failed.id()).await;
        let claimed = stage.claim(&due).await.remove(0);
        stage.settle(&claimed, domain::Next::Failed { at: NOW, error: "HTTP 500".to_owned() }).await;
        let again = stage.get(failed.id()).await;
        let answer = stage.store.reopen(failed.id(), Some(failed.revision), NOW).await.unwrap();
        assert_eq!(answer, Changed::StaleRevision(again));
    }
}

pub async fn a_cancel_of_one_revision_is_before_the_claim_or_refused(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..60).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let mut tasks = JoinSet::new();
    for (n, timer) in timers.iter().enumerate() {
        let (store, claim, timer) = (Arc::clone(&stage.store), stage.new_claim(), timer.clone());
        tasks.spawn(async move {
            let entries = [entry(&timer)];
            let cancel = answered(|| store.cancel(timer.id(), Some(timer.revision), NOW));
            let claim = answered(|| store.claim(&claim, &entries));
            // The order of polling alternates.
            let (canceled, claimed) = if n % 2 == 0 {
                tokio::join!(cancel, claim)
            } else {
                let (claimed, canceled) = tokio::join!(claim, cancel);
                (canceled, claimed)
            };
            (timer.id(), canceled, claimed.len())
        });
    }
    while let Some(result) = tasks.join_next().await {
        let (id, canceled, claimed) = result.unwrap();
        let status = stage.get(id).await.status;
        match canceled {
            Changed::Done(_) => assert_eq!((claimed, status), (0, Status::Canceled)),
            Changed::WrongStatus(met) => assert_eq!((met.status, claimed, status), (Status::Executing, 1, Status::Executing)),
            other => panic!("{other:?}"),
        }
    }
}
