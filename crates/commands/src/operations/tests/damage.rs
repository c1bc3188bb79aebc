//! What an operation does about stored data that cannot be read.

use store_testing::Model;

use super::*;

fn model(rig: &Rig) -> &Model {
    store::Decorator::inner(&*rig.store)
}

/// The ids in the order in which operations change timers.
async fn ids_in_order(rig: &Rig) -> Vec<domain::TimerId> {
    let page = rig.store.list(&ListQuery { limit: 10_000, ..in_order(Filter::default()) }).await.unwrap();
    page.timers.iter().map(|timer| timer.id).collect()
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_cannot_be_read_does_not_hold_up_the_next() {
    let rig = Rig::new();
    create_many(&rig, 1_100).await;
    let damaged = started(&rig).await;
    rig.clock.advance(Span::from_secs(1));
    let sound = started(&rig).await;
    model(&rig).spoil_operation(damaged.id);
    let mut runner = OperationRunner::new(rig.commands.clone(), DAY);
    let refused = runner.run_once().await;
    assert!(matches!(refused, Err(StoreError::Corrupt(_))), "{refused:?}");
    while runner.run_once().await.unwrap() == Ran::Page {}
    let ended = rig.commands.operation(sound.id).await.unwrap();
    assert_eq!((ended.state, ended.changed), (OperationState::Done, 1_100));
}

#[tokio::test(start_paused = true)]
async fn damage_that_stays_ends_the_operation_and_not_the_next_one() {
    // A page of eight is halved three times.
    for (call, faults, state, changed) in [
        (Operation::ChangeAll, 3, OperationState::Done, 1_100),
        (Operation::ChangeAll, 4, OperationState::Failed, 0),
        (Operation::List, 3, OperationState::Done, 1_100),
        (Operation::List, 4, OperationState::Failed, 0),
    ] {
        let rig = Rig::new();
        create_many(&rig, 1_100).await;
        let first = started(&rig).await;
        rig.clock.advance(Span::from_secs(1));
        let second = started(&rig).await;
        for _ in 0..faults {
            rig.store.plan(call, Fault::Corrupt);
        }
        let mut runner = OperationRunner::new(rig.commands.clone(), DAY);
        while runner.run_once().await.unwrap() == Ran::Page {}
        let first = rig.commands.operation(first.id).await.unwrap();
        assert_eq!((first.state, first.changed, first.errors), (state, changed, 0), "{faults} faults of {call:?}");
        let sentence = "stored data that it needs cannot be read; the log of the service says which";
        assert_eq!(first.error.as_deref(), (state == OperationState::Failed).then_some(sentence));
        assert_eq!(rig.commands.operation(second.id).await.unwrap().changed, 1_100, "{faults} faults of {call:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_cannot_be_changed_because_it_cannot_be_read_is_an_error() {
    let rig = Rig::new();
    create_many(&rig, 1_100).await;
    let operation = started(&rig).await;
    model(&rig).spoil(ids_in_order(&rig).await[0]);
    for _ in 0..3 {
        rig.store.plan(Operation::ChangeAll, Fault::Corrupt);
    }
    let mut runner = OperationRunner::new(rig.commands.clone(), DAY);
    while runner.run_once().await.unwrap() == Ran::Page {}
    let ended = rig.commands.operation(operation.id).await.unwrap();
    assert_eq!((ended.state, ended.changed, ended.skipped, ended.errors), (OperationState::Done, 1_099, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn timers_that_no_search_can_show_are_errors_and_counted_once() {
    for fault in [None, Some(Fault::NotDone), Some(Fault::NotDoneUnknown), Some(Fault::DoneUnknown)] {
        let rig = Rig::new();
        create_many(&rig, 1_100).await;
        let ids = ids_in_order(&rig).await;
        for place in [0, 1, 300, 555, 1_098, 1_099] {
            model(&rig).spoil_summary(ids[place]);
        }
        let (commands, operation) = estimated(&rig, 7, shift(), 1_100).await;
        if let Some(fault) = fault {
            rig.store.plan(Operation::FinishOperation, fault);
            rig.store.plan_none(Operation::ChangeAll);
            rig.store.plan(Operation::ChangeAll, fault);
        }
        let mut runner = OperationRunner::new(commands, DAY);
        run_to_the_end(&rig, &mut runner).await;
        let ended = rig.commands.operation(operation.id).await.unwrap();
        assert_eq!((ended.state, ended.matched), (OperationState::Done, 1_100), "{fault:?}");
        assert_eq!((ended.changed, ended.skipped, ended.errors), (1_094, 0, 6), "{fault:?}");
    }
}
