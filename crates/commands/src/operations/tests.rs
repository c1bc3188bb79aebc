mod damage;
mod late_page;

use std::{collections::HashMap, sync::Arc};

use domain::{Access, AccessKey, Caller, Namespace, Namespaces, Rights, Status};
use store::{Filter, Operation, TimerStore};
use store_testing::Fault;

use self::late_page::LatePage;
use super::{leased::TIME_SLICE, pace::FIRST_PAGE_TIMERS, *};
use crate::{
    BulkAnswer, OPERATIONS_RUNNING_MAX, Reschedule, Shift,
    bulk::tests::{create_many, request},
    estimating::Estimating,
    rig::{NOW, Rig},
};

const DAY: Span = Span::from_secs(86_400);

fn shift() -> BulkWork {
    BulkWork::Reschedule(Reschedule::Shift(Shift::parse("shift", "+1h").unwrap()))
}

async fn started(rig: &Rig) -> BulkOperation {
    match rig.commands.bulk(&request(shift(), 1_000_000)).await.unwrap() {
        BulkAnswer::Started(operation) => *operation,
        other => panic!("{other:?}"),
    }
}

/// Until no operation is running. After an error, and where there is nothing to do, leases run out.
async fn run_to_the_end(rig: &Rig, runner: &mut OperationRunner) {
    let is_running = |operation: &BulkOperation| operation.state == OperationState::Running;
    for _ in 0..1_000 {
        if !matches!(runner.run_once().await, Ok(Ran::Page)) {
            rig.clock.advance(LEASE);
        }
        if !rig.commands.operations().await.unwrap().iter().any(is_running) {
            return;
        }
    }
    panic!("an operation does not come to its end");
}

async fn revisions(rig: &Rig) -> Vec<u32> {
    let page = rig.store.list(&ListQuery { limit: 10_000, ..ListQuery::default() }).await.unwrap();
    let mut revisions: Vec<u32> = page.timers.iter().map(|timer| timer.revision).collect();
    revisions.dedup();
    revisions
}

#[tokio::test(start_paused = true)]
async fn whatever_answers_are_lost_each_timer_is_changed_once() {
    for fault in [Fault::DoneUnknown, Fault::NotDoneUnknown, Fault::NotDone] {
        let rig = Rig::new();
        create_many(&rig, 1_100).await;
        let operation = started(&rig).await;
        for _ in 0..3 {
            rig.store.plan(Operation::ChangeAll, fault);
            rig.store.plan_none(Operation::ChangeAll);
            rig.store.plan(Operation::List, Fault::NotDone);
        }
        rig.store.plan(Operation::FinishOperation, fault);
        rig.store.plan(Operation::TakeOperation, fault);
        let mut runner = OperationRunner::new(rig.commands.clone(), DAY);
        run_to_the_end(&rig, &mut runner).await;
        let ended = rig.commands.operation(operation.id).await.unwrap();
        assert_eq!((ended.state, ended.changed, ended.skipped), (OperationState::Done, 1_100, 0), "{fault:?}");
        assert_eq!(revisions(&rig).await, [2], "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_committed_late_changes_no_timer_twice() {
    for call in [Operation::Operation, Operation::TakeOperation, Operation::List, Operation::ChangeAll] {
        let rig = Rig::new();
        create_many(&rig, 1_100).await;
        let operation = started(&rig).await;
        let store = Arc::new(LatePage::committed_before(call, Arc::clone(&rig.store)));
        let commands = Commands { stores: crate::Stores::of(store.clone()), ..rig.commands.clone() };
        let mut runner = OperationRunner::new(commands, DAY);
        let unanswered = runner.run_once().await;
        assert!(matches!(unanswered, Err(StoreError::Unknown(_))), "{unanswered:?}");
        run_to_the_end(&rig, &mut runner).await;
        store.commit_late_page().await;
        let ended = rig.commands.operation(operation.id).await.unwrap();
        assert_eq!((ended.state, ended.changed, ended.skipped), (OperationState::Done, 1_100, 0), "before {call:?}");
        assert_eq!(revisions(&rig).await, [2], "before {call:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_search_beside_calls_finds_only_what_is_changed_before_it_is_stale() {
    for is_beside_calls in [false, true] {
        let rig = Rig::new();
        create_many(&rig, 1_100).await;
        started(&rig).await;
        let mut runner = OperationRunner { is_beside_calls, ..OperationRunner::new(rig.commands.clone(), DAY) };
        let left = loop {
            runner.run_once().await.unwrap();
            if let Some(matches) = runner.leased.as_ref().and_then(|leased| leased.matches.as_ref()) {
                break matches.count();
            }
        };
        assert_eq!(
            left,
            u64::from(page_limits(false).read_ahead(is_beside_calls) - FIRST_PAGE_TIMERS),
            "beside calls: {is_beside_calls}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn operations_take_turns() {
    let rig = Rig::new();
    create_many(&rig, 1_100).await;
    let mut runner = OperationRunner::new(rig.commands.clone(), DAY);
    let step = Span::from_micros_clamped(i64::try_from(TIME_SLICE.as_micros()).unwrap() / 4);
    let first = started(&rig).await.id;
    rig.clock.advance(step);
    let second = started(&rig).await.id;
    let (mut turns, mut done) = (Vec::new(), HashMap::new());
    while runner.run_once().await.unwrap() == Ran::Page {
        for operation in rig.commands.operations().await.unwrap() {
            if done.insert(operation.id, operation.changed).unwrap_or(0) != operation.changed {
                turns.push(operation.id);
            }
        }
        rig.clock.advance(step);
        tokio::time::advance(step.as_duration()).await;
    }
    assert_eq!(done, HashMap::from([(first, 1_100), (second, 1_100)]));
    assert_eq!(revisions(&rig).await, [3], "each has changed all of them once");
    let slices: Vec<_> = turns.chunk_by(PartialEq::eq).map(|pages| (pages[0], pages.len())).collect();
    let expected = [(first, 5), (second, 5)].repeat(slices.len() / 2);
    assert!(slices.len() >= 4 && slices[..slices.len() - 2] == expected[..slices.len() - 2], "{slices:?}");
}

#[tokio::test]
async fn another_node_goes_on_where_the_first_stopped_and_the_first_changes_nothing_more() {
    let rig = Rig::new();
    create_many(&rig, 1_100).await;
    let operation = started(&rig).await;
    let mut first = OperationRunner::new(rig.commands.clone(), DAY);
    let mut second = OperationRunner::new(rig.commands.clone(), DAY);
    assert_eq!(first.run_once().await.unwrap(), Ran::Page);
    assert_eq!(second.run_once().await.unwrap(), Ran::Nothing, "it is the first one's");
    rig.clock.advance(Span::from_secs(6));
    assert_eq!(second.run_once().await.unwrap(), Ran::Page, "its lease has run out");
    let before = rig.commands.operation(operation.id).await.unwrap();
    assert!((1..1_100).contains(&before.changed), "{before:?}");
    assert_eq!(first.run_once().await.unwrap(), Ran::Page, "it learns that the operation is not its own any more");
    assert_eq!(rig.commands.operation(operation.id).await.unwrap().changed, before.changed);
    while second.run_once().await.unwrap() == Ran::Page {}
    assert_eq!(rig.commands.operation(operation.id).await.unwrap().changed, 1_100);
    assert_eq!(revisions(&rig).await, [2]);
}

#[tokio::test]
async fn a_stopped_operation_changes_nothing_more() {
    let rig = Rig::new();
    create_many(&rig, 1_100).await;
    let operation = started(&rig).await;
    let mut runner = OperationRunner::new(rig.commands.clone(), DAY);
    runner.run_once().await.unwrap();
    let changed = u64::from(FIRST_PAGE_TIMERS);
    for _ in 0..2 {
        let stopped = rig.commands.stop_operation(operation.id).await.unwrap();
        assert_eq!((stopped.state, stopped.changed), (OperationState::Stopped, changed));
    }
    while runner.run_once().await.unwrap() == Ran::Page {}
    assert_eq!(rig.commands.operation(operation.id).await.unwrap().changed, changed);
    let unknown = OperationId(domain::TimerId::random(NOW));
    assert!(matches!(rig.commands.stop_operation(unknown).await, Err(CommandError::NoSuchOperation)));
}

#[tokio::test(start_paused = true)]
async fn a_single_change_meanwhile_wins_and_is_counted_as_skipped() {
    for (is_read_again, changed) in [(false, 1_099), (true, 1_100)] {
        let rig = Rig::new();
        create_many(&rig, 1_100).await;
        let first = rig.store.list(&ListQuery { limit: 1, ..in_order(Filter::default()) }).await.unwrap().timers[0].id;
        let operation = started(&rig).await;
        // The page is read, then one of its timers is fired.
        rig.store.plan(Operation::ChangeAll, Fault::NotDone);
        let mut runner = OperationRunner::new(rig.commands.clone(), DAY);
        assert!(runner.run_once().await.is_err());
        let fired = rig.commands.fire(first, None).await.unwrap();
        if is_read_again {
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        while runner.run_once().await.unwrap() == Ran::Page {}
        let ended = rig.commands.operation(operation.id).await.unwrap();
        assert_eq!((ended.changed, ended.skipped), (changed, 1_100 - changed));
        let revision = rig.commands.get(first).await.unwrap().revision;
        assert_eq!(revision, fired.revision + u32::from(is_read_again), "what is read after the change is shifted from there");
    }
}

#[tokio::test]
async fn a_key_runs_only_so_many_and_sees_only_its_own() {
    let rig = Rig::new();
    create_many(&rig, 1_100).await;
    for _ in 0..OPERATIONS_RUNNING_MAX {
        started(&rig).await;
    }
    let refused = rig.commands.bulk(&request(shift(), 1_000_000)).await;
    assert!(matches!(refused, Err(CommandError::TooManyOperations)));
    assert_eq!(rig.commands.operations().await.unwrap().len(), OPERATIONS_RUNNING_MAX);
    let holder = |namespace: &str| {
        let namespaces = Namespaces::Only(vec![Namespace::parse(namespace).unwrap()]);
        let (key, _) = AccessKey::issue("mine", Access { namespaces, rights: Rights::Write }, [7; 32], NOW).unwrap();
        rig.commands.on_behalf_of(Caller::Holder(key.into()))
    };
    let mine = holder("default");
    assert_eq!(mine.operations().await.unwrap(), [], "those of the administrator may concern other namespaces");
    let BulkAnswer::Started(operation) = mine.bulk(&request(shift(), 1_000_000)).await.unwrap() else { panic!("one of its own") };
    assert_eq!((operation.by.as_str(), operation.filter.namespaces.len()), ("mine", 1));
    assert_eq!(mine.operations().await.unwrap().len(), 1);
    assert!(holder("default").operation(operation.id).await.is_ok(), "another key of the same namespace");
    assert!(matches!(holder("other").operation(operation.id).await, Err(CommandError::NoSuchOperation)));
    assert!(matches!(holder("other").stop_operation(operation.id).await, Err(CommandError::NoSuchOperation)));
}

#[tokio::test(start_paused = true)]
async fn operations_that_ended_long_ago_are_removed() {
    let rig = Rig::new();
    create_many(&rig, 1_100).await;
    let operation = started(&rig).await;
    let mut runner = OperationRunner::new(rig.commands.clone(), DAY);
    while runner.run_once().await.unwrap() == Ran::Page {}
    rig.clock.advance(Span::from_secs(2 * 86_400));
    tokio::time::advance(PURGE_INTERVAL).await;
    runner.run_once().await.unwrap();
    assert!(matches!(rig.commands.operation(operation.id).await, Err(CommandError::NoSuchOperation)));
    let pending = Filter { status: vec![Status::Pending], ..Filter::default() };
    assert_eq!(rig.store.count(&pending, store::SEARCH_BUDGET).await.unwrap(), 1_100, "the timers stay");
}

/// The operation that is started for so many timers, which match according to an estimate.
async fn estimated(rig: &Rig, estimate: u64, work: BulkWork, expected_max: u64) -> (Commands, BulkOperation) {
    let store = Arc::new(Estimating::new(Arc::clone(&rig.store), estimate));
    let commands = Commands { stores: crate::Stores::of(store), ..rig.commands.clone() };
    match commands.bulk(&request(work, expected_max)).await.unwrap() {
        BulkAnswer::Started(operation) => (commands, *operation),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_estimate_refuses_nothing_and_the_operation_counts_first() {
    for estimate in [1, 1_000_000] {
        let rig = Rig::new();
        create_many(&rig, 2_200).await;
        let (commands, operation) = estimated(&rig, estimate, shift(), 2_200).await;
        assert_eq!((operation.matched, operation.state), (estimate.max(1_001), OperationState::Running));
        assert_eq!(BulkWork::from_text(&operation.work), Some(shift()));
        assert_eq!(BulkWork::name_in(&operation.work), "reschedule");
        let mut runner = OperationRunner::new(commands, DAY);
        for _ in 0..3 {
            assert_eq!(runner.run_once().await.unwrap(), Ran::Page);
            assert_eq!(rig.commands.operation(operation.id).await.unwrap().changed, 0, "they are counted");
        }
        let counted = rig.commands.operation(operation.id).await.unwrap();
        assert_eq!((counted.matched, counted.cursor), (2_200, None), "before the first is changed");
        while runner.run_once().await.unwrap() == Ran::Page {}
        let ended = rig.commands.operation(operation.id).await.unwrap();
        assert_eq!((ended.state, ended.changed, ended.matched), (OperationState::Done, 2_200, 2_200));
        assert_eq!(revisions(&rig).await, [2]);
    }
}

#[tokio::test]
async fn an_operation_that_counts_more_than_expected_changes_none() {
    let rig = Rig::new();
    create_many(&rig, 2_200).await;
    let (commands, operation) = estimated(&rig, 1, shift(), 2_199).await;
    let mut runner = OperationRunner::new(commands, DAY);
    while runner.run_once().await.unwrap() == Ran::Page {}
    let ended = rig.commands.operation(operation.id).await.unwrap();
    assert_eq!((ended.state, ended.changed, ended.skipped), (OperationState::Failed, 0, 0));
    assert_eq!(ended.error.as_deref(), Some("more timers match than expected_max"));
    assert_eq!(revisions(&rig).await, [1]);
}

#[tokio::test]
async fn a_count_that_was_interrupted_begins_anew_and_keeps_its_lease() {
    let rig = Rig::new();
    create_many(&rig, 2_200).await;
    let spread = BulkWork::Reschedule(Reschedule::Spread(Span::from_secs(2_200)));
    let (commands, operation) = estimated(&rig, 7, spread, 5_000).await;
    let mut first = OperationRunner::new(commands.clone(), DAY);
    assert_eq!(first.run_once().await.unwrap(), Ran::Page);
    drop(first);
    rig.clock.advance(Span::from_secs(6));
    // The answer to what was counted is lost: it is counted again.
    for fault in [Fault::DoneUnknown, Fault::NotDoneUnknown, Fault::NotDone] {
        rig.store.plan(Operation::ChangeAll, fault);
    }
    let mut second = OperationRunner::new(commands, DAY);
    let mut failures = 0;
    while rig.commands.operation(operation.id).await.unwrap().state == OperationState::Running {
        if second.run_once().await.is_err() {
            failures += 1;
            rig.clock.advance(LEASE);
        }
    }
    let ended = rig.commands.operation(operation.id).await.unwrap();
    assert_eq!((failures, ended.state, ended.changed, ended.matched), (3, OperationState::Done, 2_200, 2_200));
    let page = rig.store.list(&ListQuery { limit: 10_000, ..ListQuery::default() }).await.unwrap();
    let due: std::collections::BTreeSet<_> = page.timers.iter().map(|timer| timer.execute_at).collect();
    let last = operation.started_at.saturating_add(Span::from_secs(2_199));
    assert_eq!((due.len(), due.last()), (2_200, Some(&last)), "spread over the whole time by the exact number");
}

#[tokio::test(start_paused = true)]
async fn a_long_count_renews_the_lease() {
    let rig = Rig::new();
    create_many(&rig, 4_500).await;
    let (commands, operation) = estimated(&rig, 7, shift(), 5_000).await;
    let (mut first, mut second) = (OperationRunner::new(commands.clone(), DAY), OperationRunner::new(commands, DAY));
    for _ in 0..4 {
        assert_eq!(first.run_once().await.unwrap(), Ran::Page);
        rig.clock.advance(Span::from_secs(3));
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(second.run_once().await.unwrap(), Ran::Nothing, "it is the first one's");
    }
    let stopped = rig.commands.stop_operation(operation.id).await.unwrap();
    assert_eq!((stopped.state, stopped.changed), (OperationState::Stopped, 0));
    assert_eq!(first.run_once().await.unwrap(), Ran::Page, "it learns that the operation was stopped");
    assert_eq!(first.run_once().await.unwrap(), Ran::Nothing);
    assert_eq!(revisions(&rig).await, [1]);
}

#[tokio::test(start_paused = true)]
async fn only_calls_that_are_not_its_own_slow_an_operation_down() {
    for (work, is_slowed) in [(shift(), true), (BulkWork::Fire, false)] {
        let rig = Rig::new();
        create_many(&rig, 1_100).await;
        rig.commands.bulk(&request(work, 1_000_000)).await.unwrap();
        let calls = Arc::new(std::sync::atomic::AtomicU64::new(7));
        let count = Arc::clone(&calls);
        let count: CallCount = Arc::new(move || count.load(std::sync::atomic::Ordering::Relaxed));
        let mut runner = OperationRunner::new(rig.commands.clone(), DAY).yielding_to(count);
        runner.run_once().await.unwrap();
        for (made, is_slowed) in [(500, is_slowed), (0, false), (500, is_slowed)] {
            calls.fetch_add(made, std::sync::atomic::Ordering::Relaxed);
            tokio::time::advance(Duration::from_secs(1)).await;
            runner.is_beside_calls = runner.are_calls_made();
            assert_eq!(runner.is_beside_calls, is_slowed, "{made} calls");
        }
        runner.leased = None;
        assert_eq!(runner.are_calls_made(), is_slowed, "at the end of its time slice");
    }
}
