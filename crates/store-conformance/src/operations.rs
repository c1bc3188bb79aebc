//! Operations, and their progress, which is a part of the commit that changes timers.

use domain::{AccessKeyId, Span, Status};
use store::{
    BulkAction, BulkChange, BulkItem, BulkOperation, Cursor, Epoch, Filter, OperationId, OperationState, Progress, StoreError,
};

use crate::{Fixture, NOW, Stage, ahead, change_all::item, fixture::skip, secs, stage::entry, timer};

fn operation(number: u64) -> BulkOperation {
    BulkOperation {
        id: OperationId(timer("http://a.example/").numbered(number).id()),
        key: Some(AccessKeyId(timer("http://a.example/").numbered(7).id().as_uuid())),
        by: "billing 'service' é".to_owned(),
        work: "reschedule shift +60us".to_owned(),
        filter: Filter { status: vec![Status::Pending], key_prefix: Some("a'".to_owned()), ..Filter::default() },
        state: OperationState::Running,
        matched: 5_000_000_000,
        expected_max: 6_000_000_000,
        changed: 0,
        skipped: 0,
        errors: 0,
        error: None,
        cursor: None,
        started_at: NOW,
        finished_at: None,
        epoch: Epoch(0),
    }
}

/// What its owner writes when nothing has come of a page.
fn progress(taken: &BulkOperation) -> Progress {
    Progress { operation: taken.id, epoch: taken.epoch, cursor: taken.cursor, errors: 0, matched: None, lease: secs(600) }
}

pub async fn operations_come_back_as_they_were_kept_the_latest_first(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let store = &stage.store;
    assert_eq!(store.operations(None, 10).await.unwrap(), []);
    let kept: Vec<_> = (1..=4).map(operation).collect();
    for operation in &kept {
        assert!(store.add_operation(operation, 10).await.unwrap());
        assert_eq!(store.operation(operation.id).await.unwrap().as_ref(), Some(operation));
    }
    let latest_first: Vec<_> = kept.iter().rev().cloned().collect();
    assert_eq!(store.operations(None, 10).await.unwrap(), latest_first);
    assert_eq!(store.operations(Some(kept[2].id), 1).await.unwrap(), latest_first[2..3]);
    assert_eq!(store.operation(operation(9).id).await.unwrap(), None);
}

pub async fn a_key_runs_no_more_operations_than_it_may(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let store = &stage.store;
    assert!(store.add_operation(&operation(1), 2).await.unwrap());
    assert!(store.add_operation(&operation(2), 2).await.unwrap());
    assert!(!store.add_operation(&operation(3), 2).await.unwrap());
    assert!(store.add_operation(&BulkOperation { key: None, ..operation(4) }, 1).await.unwrap(), "the administrator's");
    assert!(!store.add_operation(&BulkOperation { key: None, ..operation(5) }, 1).await.unwrap());
    assert!(store.finish_operation(operation(1).id, None, OperationState::Stopped, None, NOW).await.unwrap());
    assert!(store.add_operation(&operation(3), 2).await.unwrap());
}

pub async fn an_operation_belongs_to_one_node_until_its_lease_runs_out(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let store = &stage.store;
    assert_eq!(store.take_operation(secs(600)).await.unwrap(), None);
    store.add_operation(&operation(1), 10).await.unwrap();
    store.add_operation(&operation(2), 10).await.unwrap();
    let first = store.take_operation(secs(600)).await.unwrap().unwrap();
    assert_eq!(first, BulkOperation { epoch: Epoch(1), ..operation(1) }, "both wait since their start: the first");
    let second = store.take_operation(Span::ZERO).await.unwrap().unwrap();
    assert_eq!(second.id, operation(2).id);
    let take = || async { store.take_operation(secs(600)).await.unwrap() };
    let again = stage.eventually("the lease runs out", take).await;
    assert_eq!((again.id, again.epoch), (operation(2).id, Epoch(2)));
    assert_eq!(store.take_operation(secs(600)).await.unwrap(), None);
}

pub async fn the_operation_that_has_waited_longest_is_taken_first(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let store = &stage.store;
    for number in 1..=3 {
        store.add_operation(&operation(number), 10).await.unwrap();
    }
    let latest = BulkOperation { started_at: ahead(secs(3_000_000_000)), ..operation(0) };
    store.add_operation(&latest, 10).await.unwrap();
    let mut turns = Vec::new();
    for _ in 0..6 {
        let take = || async { store.take_operation(secs(600)).await.unwrap() };
        let taken = stage.eventually("an operation is free", take).await;
        turns.push(taken.id);
        // No two leases end at the same moment.
        stage.glance_later().await;
        let given_back = Progress { lease: Span::ZERO, ..progress(&taken) };
        assert_eq!(store.change_all(&BulkAction::Fire, &[], Some(&given_back), NOW).await.unwrap(), Some(Vec::new()));
    }
    let first_to_third = [1, 2, 3].map(|number| operation(number).id);
    assert_eq!(turns, [first_to_third, first_to_third].concat(), "each has its turn, and none has two before another has one");
    for id in [first_to_third.as_slice(), &[latest.id]].concat() {
        let take = || async { store.take_operation(secs(600)).await.unwrap() };
        assert_eq!(stage.eventually("an operation is free", take).await.id, id, "what has just started waits behind the others");
    }
    assert_eq!(store.take_operation(secs(600)).await.unwrap(), None);
}

pub async fn an_operation_that_cannot_be_read_holds_up_no_other(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let store = &stage.store;
    for number in 1..=2 {
        store.add_operation(&operation(number), 10).await.unwrap();
    }
    if !fixture.spoil_operation(operation(1).id).await {
        return skip("an_operation_that_cannot_be_read_holds_up_no_other", "the fixture cannot spoil an operation");
    }
    // It is passed over, or an error once.
    let taken = match store.take_operation(secs(600)).await {
        Err(StoreError::Corrupt(_)) => store.take_operation(secs(600)).await.unwrap(),
        taken => taken.unwrap(),
    };
    assert_eq!(taken, Some(BulkOperation { epoch: Epoch(1), ..operation(2) }));
    let again = store.take_operation(secs(600)).await;
    assert!(matches!(again, Ok(None) | Err(StoreError::Corrupt(_))), "{again:?}");
    assert!(store.finish_operation(operation(2).id, None, OperationState::Done, None, NOW).await.unwrap());
    assert_eq!(store.purge_operations(ahead(secs(5)), 10).await.unwrap(), 1);
}

pub async fn progress_is_written_with_the_changes_and_only_by_the_owner(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..3).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    stage.store.add_operation(&operation(1), 10).await.unwrap();
    let taken = stage.store.take_operation(secs(600)).await.unwrap().unwrap();
    let cursor = Some(Cursor { at: NOW, id: timers[1].id() });
    let progress = Progress { cursor, errors: 2, ..progress(&taken) };
    let stale = BulkItem { revision: 9, ..item(&timers[1]) };
    let change = async |progress: &Progress, items: &[BulkItem]| {
        stage.store.change_all(&BulkAction::Fire, items, Some(progress), NOW).await.unwrap()
    };
    let changes = change(&progress, &[item(&timers[0]), stale]).await.unwrap();
    assert_eq!(changes.iter().filter(|change| change.is_change()).count(), 1);
    let kept = stage.store.operation(taken.id).await.unwrap().unwrap();
    assert_eq!((kept.changed, kept.skipped, kept.errors, kept.cursor), (1, 1, 2, cursor));
    assert_eq!(kept.matched, taken.matched, "they were not counted");

    // What was counted is kept, also without a change.
    let counted = Progress { errors: 0, matched: Some(4_000_000_000), ..progress };
    assert_eq!(change(&counted, &[]).await, Some(Vec::new()));
    let kept = stage.store.operation(taken.id).await.unwrap().unwrap();
    assert_eq!((kept.matched, kept.changed, kept.skipped, kept.errors), (4_000_000_000, 1, 1, 2));

    // Another epoch changes nothing, nor does anything after the end.
    for epoch in [Epoch(0), Epoch(2)] {
        assert_eq!(change(&Progress { epoch, ..progress }, &[item(&timers[2])]).await, None);
    }
    assert!(!stage.store.finish_operation(taken.id, Some(Epoch(7)), OperationState::Done, None, NOW).await.unwrap());
    assert!(stage.store.finish_operation(taken.id, Some(taken.epoch), OperationState::Failed, Some("é"), NOW).await.unwrap());
    assert!(!stage.store.finish_operation(taken.id, None, OperationState::Stopped, None, NOW).await.unwrap(), "it has ended");
    assert_eq!(change(&progress, &[item(&timers[2])]).await, None);
    assert_eq!(stage.get(timers[2].id()).await, timers[2]);
    let ended = stage.store.operation(taken.id).await.unwrap().unwrap();
    assert_eq!((ended.state, ended.error.as_deref(), ended.finished_at), (OperationState::Failed, Some("é"), Some(NOW)));
    assert_eq!(ended.changed, 1);
}

pub async fn a_timer_whose_options_cannot_be_read_is_an_error_of_its_operation(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..3).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    if !fixture.spoil_options(timers[1].id()).await {
        let behaviour = "a_timer_whose_options_cannot_be_read_is_an_error_of_its_operation";
        return skip(behaviour, "the fixture cannot spoil the options of a timer");
    }
    stage.store.add_operation(&operation(1), 10).await.unwrap();
    let taken = stage.store.take_operation(secs(600)).await.unwrap().unwrap();
    let progress = Progress { errors: 2, ..progress(&taken) };
    let items = [item(&timers[0]), item(&timers[1]), BulkItem { revision: 9, ..item(&timers[2]) }];
    let changes = stage.store.change_all(&BulkAction::Reschedule, &items, Some(&progress), NOW).await.unwrap().unwrap();
    assert!(matches!(changes[..], [BulkChange::Due(_), BulkChange::Unreadable, BulkChange::Skipped]), "{changes:?}");
    let kept = stage.store.operation(taken.id).await.unwrap().unwrap();
    assert_eq!((kept.changed, kept.skipped, kept.errors), (1, 1, 3));
    let left = stage.due_of(timers[1].id()).await;
    assert_eq!(left, [entry(&timers[1])], "it is due when it was");
}

pub async fn operations_that_ended_are_removed_and_no_others(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for number in 1..=3 {
        stage.store.add_operation(&operation(number), 10).await.unwrap();
    }
    for (number, at) in [(1, NOW), (2, ahead(secs(10)))] {
        stage.store.finish_operation(operation(number).id, None, OperationState::Done, None, at).await.unwrap();
    }
    assert_eq!(stage.store.purge_operations(ahead(secs(5)), 10).await.unwrap(), 1);
    let left: Vec<_> = stage.store.operations(None, 10).await.unwrap().iter().map(|operation| operation.id).collect();
    assert_eq!(left, [operation(3).id, operation(2).id]);
    assert_eq!(stage.store.purge_operations(ahead(secs(60)), 10).await.unwrap(), 1);
}
