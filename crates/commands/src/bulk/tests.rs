use std::{future::Future, sync::Arc};

use domain::{Access, AccessKey, Caller, Key, Missed, Namespace, Namespaces, Next, Rights, Span, TimerId};
use store::{Operation, StoreResult, TimerStore};
use store_testing::{Fault, Faulty, Model};

use super::*;
use crate::{
    NewTimerRequest, OperationRunner, Ran, Reschedule, Shift,
    estimating::Estimating,
    rig::{NOW, Rig, plain},
};

pub(crate) async fn create_many(rig: &Rig, count: usize) -> Vec<TimerId> {
    let order = |n| NewTimerRequest { key: Some(Key::parse(&format!("order-{n}")).unwrap()), ..plain() };
    let answers = rig.commands.create_all((0..count).map(order).collect()).await;
    answers.into_iter().map(|answer| answer.unwrap().timer().id()).collect()
}

pub(crate) fn request(work: BulkWork, expected_max: u64) -> BulkRequest {
    BulkRequest { work, filter: Filter { status: vec![Status::Pending], ..Filter::default() }, expected_max }
}

fn shift(text: &str) -> BulkWork {
    BulkWork::Reschedule(Reschedule::Shift(Shift::parse("shift", text).unwrap()))
}

async fn in_status(rig: &Rig, status: Status) -> u64 {
    rig.store.count(&Filter { status: vec![status], ..Filter::default() }, SEARCH_BUDGET).await.unwrap().timers
}

fn done(changed: u64, skipped: u64) -> BulkAnswer {
    BulkAnswer::Done { changed, skipped }
}

#[tokio::test]
async fn a_few_are_changed_while_the_client_waits() {
    let rig = Rig::new();
    create_many(&rig, 12).await;
    let bulk = async |work| rig.commands.bulk(&request(work, 12)).await.unwrap();
    assert_eq!(bulk(shift("+1h")).await, done(12, 0));
    assert_eq!(bulk(BulkWork::Pause { note: None }).await, done(12, 0));
    assert_eq!(in_status(&rig, Status::Paused).await, 12);
    let paused = Filter { status: vec![Status::Paused], ..Filter::default() };
    let resume = BulkRequest { work: BulkWork::Resume { missed: Missed::Fire }, filter: paused, expected_max: 12 };
    assert_eq!(rig.commands.bulk(&resume).await.unwrap(), done(12, 0));
    rig.nudged.lock().unwrap().clear();
    assert_eq!(bulk(BulkWork::Fire).await, done(12, 0));
    assert_eq!(rig.nudged.lock().unwrap().iter().filter(|entry| entry.at == NOW).count(), 12, "the scheduler learns of them");
    rig.settle_all(&Next::Failed { at: NOW, error: "no".to_owned() }).await;
    let failed = Filter { status: vec![Status::Failed], ..Filter::default() };
    let retry = BulkRequest { work: BulkWork::Retry { over: Some(Span::from_secs(120)) }, filter: failed, expected_max: 12 };
    rig.nudged.lock().unwrap().clear();
    assert_eq!(rig.commands.bulk(&retry).await.unwrap(), done(12, 0));
    let mut due: Vec<_> = rig.nudged.lock().unwrap().iter().map(|entry| entry.at.since(NOW).as_micros() / 1_000_000).collect();
    due.sort_unstable();
    assert_eq!(due, (0..12).map(|rank| rank * 10).collect::<Vec<_>>(), "spread over two minutes");
    assert_eq!(bulk(BulkWork::Cancel).await, done(12, 0));
    let everything = BulkRequest { work: BulkWork::Delete, filter: Filter::default(), expected_max: 12 };
    assert_eq!(rig.commands.bulk(&everything).await.unwrap(), done(12, 0));
    assert_eq!(rig.count().await, 0);
}

#[tokio::test]
async fn what_the_action_does_not_concern_is_skipped() {
    let rig = Rig::new();
    create_many(&rig, 5).await;
    let all = |work| BulkRequest { work, filter: Filter::default(), expected_max: 5 };
    assert_eq!(rig.commands.bulk(&all(BulkWork::Delete)).await.unwrap(), done(0, 5));
    rig.claim_all().await;
    assert_eq!(rig.commands.bulk(&all(BulkWork::Cancel)).await.unwrap(), done(0, 5));
}

/// A store whose pending timers complete just before a bulk change.
struct CompletedMeanwhile(Rig);

impl store::Decorator for CompletedMeanwhile {
    type Inner = Faulty<Model>;

    fn inner(&self) -> &Faulty<Model> {
        &self.0.store
    }

    async fn around<T: Send>(&self, operation: Operation, work: impl Future<Output = StoreResult<T>> + Send) -> StoreResult<T> {
        if operation == Operation::ChangeAll {
            self.0.complete_all().await;
        }
        work.await
    }
}

#[tokio::test]
async fn a_timer_that_ended_since_it_was_found_is_skipped() {
    let rig = Rig::new();
    create_many(&rig, 3).await;
    let commands = rig.commands.clone();
    let store = Arc::new(CompletedMeanwhile(rig));
    let commands = Commands { stores: crate::Stores::of(store.clone()), ..commands };
    assert_eq!(commands.bulk(&request(BulkWork::Delete, 3)).await.unwrap(), done(0, 3));
    assert_eq!(in_status(&store.0, Status::Completed).await, 3);
}

#[tokio::test]
async fn more_than_expected_is_refused_and_nothing_is_changed() {
    let rig = Rig::new();
    create_many(&rig, 5).await;
    let refusal = rig.commands.bulk(&request(BulkWork::Cancel, 4)).await.unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "more than 4 timers match, and none was changed: raise expected_max if all of them are meant"
    );
    assert_eq!(in_status(&rig, Status::Pending).await, 5);
    create_many(&rig, 1_500).await;
    assert!(matches!(rig.commands.bulk(&request(BulkWork::Cancel, 1_499)).await, Err(CommandError::TooMany { .. })));
    assert_eq!(in_status(&rig, Status::Pending).await, 1_500);
    assert_eq!(rig.store.calls(Operation::ChangeAll) + rig.store.calls(Operation::AddOperation), 0);
}

#[tokio::test]
async fn a_preview_counts_and_changes_nothing() {
    let rig = Rig::new();
    let ids = create_many(&rig, 30).await;
    rig.commands.pause(ids[3], None, None).await.unwrap();
    let preview = rig.commands.preview_bulk(&Filter::default()).await.unwrap();
    assert_eq!((preview.matched, preview.examples.len()), (Count::exactly(30), 20));
    let counted = |status| preview.by_status.iter().find(|(of, _)| *of == status).map(|(_, count)| *count);
    assert_eq!((counted(Status::Pending), counted(Status::Paused), counted(Status::Failed)), (Some(29), Some(1), Some(0)));
    let pending = Filter { status: vec![Status::Pending], ..Filter::default() };
    let preview = rig.commands.preview_bulk(&pending).await.unwrap();
    assert_eq!((preview.matched.timers, preview.by_status), (29, vec![(Status::Pending, 29)]));
    assert_eq!(rig.store.calls(Operation::ChangeAll), 0);
}

#[tokio::test]
async fn timers_that_are_registered_later_are_left_alone() {
    let rig = Rig::new();
    create_many(&rig, 3).await;
    let filter = rig.commands.selected(&Filter::default(), NOW).unwrap();
    rig.clock.advance(Span::from_secs(1));
    rig.created().await;
    assert_eq!(rig.store.list(&in_order(filter)).await.unwrap().timers.len(), 3);
}

#[tokio::test]
async fn a_key_that_may_only_read_changes_nothing_and_others_change_their_own() {
    let rig = Rig::new();
    create_many(&rig, 3).await;
    let holder = |rights, namespace: &str| {
        let namespaces = Namespaces::Only(vec![Namespace::parse(namespace).unwrap()]);
        let (key, _) = AccessKey::issue("k", Access { namespaces, rights }, [7; 32], NOW).unwrap();
        rig.commands.on_behalf_of(Caller::Holder(key.into()))
    };
    let reader = holder(Rights::Read, "default");
    assert!(matches!(reader.bulk(&request(BulkWork::Cancel, 9)).await, Err(CommandError::Forbidden(_))));
    assert!(matches!(reader.preview_bulk(&Filter::default()).await, Err(CommandError::Forbidden(_))));
    let other = holder(Rights::Write, "other");
    assert_eq!(other.bulk(&request(BulkWork::Cancel, 9)).await.unwrap(), done(0, 0));
    assert_eq!(other.preview_bulk(&Filter::default()).await.unwrap().matched.timers, 0);
    assert_eq!(holder(Rights::Write, "default").bulk(&request(BulkWork::Cancel, 9)).await.unwrap(), done(3, 0));
}

#[tokio::test]
async fn many_are_left_to_an_operation() {
    let rig = Rig::new();
    create_many(&rig, 1_200).await;
    let answer = rig.commands.bulk(&request(shift("+1h"), 5_000)).await.unwrap();
    let BulkAnswer::Started(operation) = answer else { panic!("{answer:?}") };
    assert_eq!((operation.matched, operation.changed, operation.state), (1_200, 0, OperationState::Running));
    let mut runner = OperationRunner::new(rig.commands.clone(), Span::from_secs(3600));
    while runner.run_once().await.unwrap() == Ran::Page {}
    let ended = rig.commands.operation(operation.id).await.unwrap();
    assert_eq!((ended.state, ended.changed, ended.skipped), (OperationState::Done, 1_200, 0));
    let page = rig.store.list(&ListQuery { limit: 2_000, ..ListQuery::default() }).await.unwrap();
    let expected = NOW.saturating_add(Span::from_secs(7200));
    assert!(page.timers.iter().all(|timer| timer.execute_at == expected && timer.revision == 2), "each was shifted once");
}

#[tokio::test]
async fn an_unknown_outcome_is_called_unknown() {
    let rig = Rig::new();
    create_many(&rig, 3).await;
    rig.store.plan(Operation::ChangeAll, Fault::DoneUnknown);
    assert!(matches!(rig.commands.bulk(&request(BulkWork::Cancel, 3)).await, Err(CommandError::Unknown(_))));
}

#[tokio::test(start_paused = true)]
async fn a_preview_takes_no_longer_than_a_search_however_many_statuses_it_counts() {
    let rig = Rig::new();
    create_many(&rig, 3).await;
    let store = Arc::new(Estimating::new(Arc::clone(&rig.store), 7));
    let commands = Commands { stores: crate::Stores::of(store.clone()), ..rig.commands.clone() };
    let began = tokio::time::Instant::now();
    let preview = commands.preview_bulk(&Filter::default()).await.unwrap();
    assert!(began.elapsed() <= SEARCH_BUDGET + Duration::from_millis(10), "{:?}", began.elapsed());
    assert_eq!(preview.by_status, Status::ALL.map(|status| (status, 7)));
    let budgets = store.budgets();
    assert_eq!(budgets.len(), Status::ALL.len());
    assert!(budgets.iter().all(|budget| *budget >= SEARCH_BUDGET / 8), "{budgets:?}");
}
