//! A page of an operation that was begun and not noted is repeated: each of its timers is changed once.

use std::sync::Arc;

use domain::{Span, SystemClock, Timer};
use store::{
    BulkAction, BulkChange, BulkItem, BulkOperation, BulkStore, Epoch, Filter, OperationId, OperationState, Progress, TimerStore,
};
use store_conformance::{NOW, ahead, secs, timer};
use store_partitioned::{Memory, PartitionedStore};

fn operation(number: u64) -> BulkOperation {
    BulkOperation {
        id: OperationId(timer("http://a.example/").numbered(number).id()),
        key: None,
        by: String::new(),
        work: String::new(),
        filter: Filter::default(),
        state: OperationState::Running,
        matched: 1,
        expected_max: 1,
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

/// Moves the timer, as it stands, in a page of this operation.
async fn moved(store: &PartitionedStore, operation: &BulkOperation, timer: &Timer) -> BulkChange {
    let BulkOperation { id, epoch, .. } = *operation;
    let progress = Progress { operation: id, epoch, cursor: None, errors: 0, matched: None, lease: Span::ZERO };
    let item = BulkItem { id: timer.id(), revision: timer.revision, status: timer.status, at: Some(ahead(secs(500))) };
    let changes = store.change_all(&BulkAction::Reschedule, &[item], Some(&progress), NOW).await.unwrap().unwrap();
    changes[0]
}

#[tokio::test]
async fn a_page_that_is_repeated_after_other_operations_changes_no_timer_twice() {
    let store = PartitionedStore::open(Arc::new(Memory::default()), Arc::new(SystemClock::default()), 1).await.unwrap();
    let id = timer("http://a.example/").numbered(9).id();
    store.create(vec![timer("http://a.example/").numbered(9).build()]).await.unwrap();
    let mut taken = Vec::new();
    for number in 1..=4 {
        assert!(store.add_operation(&operation(number), 10).await.unwrap());
        taken.push(store.take_operation(secs(600)).await.unwrap().unwrap());
    }
    let stored = async || store.get(id).await.unwrap().unwrap();
    for operation in &taken {
        let before = stored().await;
        assert!(matches!(moved(&store, operation, &before).await, BulkChange::Due(_)));
        assert_eq!(stored().await.revision, before.revision + 1);
    }
    let before = stored().await;
    for operation in &taken {
        assert_eq!(moved(&store, operation, &before).await, BulkChange::Changed, "it counts as it did the first time");
        assert_eq!(stored().await, before);
    }
}
