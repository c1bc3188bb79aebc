//! Many timers at once, while other requests hold locks on the same ones.

use std::{collections::HashMap, sync::Arc, time::Duration};

use domain::{Attempt, Next, OnConflict, Status, Timer, TimerId};
use sqlx::{Connection, Executor, PgConnection};
use store::{Changed, Claimed, Created, DueStore, Filter, ListQuery, Order, Settlement, Sort, TimerStore};
use store_conformance::{Draft, NOW, ahead, millis, secs, timer};
use store_postgres::PostgresStore;
use tokio::{task::JoinSet, time::timeout};

use crate::{acquire_all, claim, everything_due, held_rows::Holder, open};

const TIMEOUT: Duration = Duration::from_secs(20);
/// Much shorter than a session may wait for a lock.
const PROMPTLY: Duration = Duration::from_secs(2);

/// Timers that are due in different minutes, and in another order than that of their ids.
async fn create_many(store: &PostgresStore, count: u32) -> Vec<TimerId> {
    let draft = |n: u32| timer("http://a.example/").numbered(n.into()).due_in(secs(n * 7_919 % 600));
    let created = store.create((0..count).map(draft).map(Draft::build).collect()).await.unwrap();
    created.iter().map(|created| created.timer().id()).collect()
}

async fn joined<T: 'static>(mut tasks: JoinSet<T>) -> Vec<T> {
    let mut answers = Vec::new();
    while let Some(answer) = timeout(TIMEOUT, tasks.join_next()).await.expect("calls end") {
        answers.push(answer.unwrap());
    }
    answers
}

fn remembering(claimed: &Claimed, next: Next) -> Settlement {
    let attempt = Attempt {
        number: 1,
        started_at: NOW,
        took: millis(1),
        outcome: "timeout".to_owned(),
        status: None,
        detail: None,
        node: None,
        answer: None,
    };
    Settlement { attempt: Some(attempt), ..claimed.settle(next) }
}

/// Claims everything in batches and postpones what it gets; answers with that.
async fn claim_and_postpone(store: Arc<PostgresStore>, shard_leases: Vec<store::ShardLease>, first_token: i64) -> Vec<TimerId> {
    let mut got = Vec::new();
    let due = everything_due(&*store).await;
    for (token, batch) in (first_token..).zip(due.chunks(90)) {
        let claimed = store.claim(&claim(token, &shard_leases), batch).await.unwrap();
        let postponed: Vec<_> = claimed
            .iter()
            .map(|claimed| remembering(claimed, Next::Pending { at: ahead(secs(100_000)), attempt: 1, error: None }))
            .collect();
        assert!(store.settle(&postponed).await.unwrap().into_iter().all(|counted| counted));
        got.extend(claimed.iter().map(|claimed| claimed.entry.id));
    }
    got
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_cancels_claims_and_settlements_of_the_same_timers_never_wait_in_a_circle() {
    let url = throwaway::postgres().create_database();
    let store = Arc::new(open(&url).await);
    let shard_leases = acquire_all(&*store).await;
    let ids = create_many(&store, 900).await;
    let mut cancels = JoinSet::new();
    let mut claims = JoinSet::new();
    for task in 0..8_usize {
        // Each comes from another side.
        let mut mine = ids.clone();
        mine.rotate_left(task * 110);
        if task % 2 == 1 {
            mine.reverse();
        }
        let store = Arc::clone(&store);
        cancels.spawn(async move {
            let mut canceled = Vec::new();
            for batch in mine.chunks(225) {
                let answers = store.cancel_all(batch, NOW).await.unwrap();
                canceled.extend(batch.iter().zip(answers).filter(|(_, canceled)| *canceled).map(|(id, _)| *id));
            }
            canceled
        });
    }
    for task in 0..4 {
        claims.spawn(claim_and_postpone(Arc::clone(&store), shard_leases.clone(), 1 + task * 1_000));
    }
    joined(claims).await;
    let mut times: HashMap<TimerId, usize> = HashMap::new();
    for id in joined(cancels).await.into_iter().flatten() {
        *times.entry(id).or_default() += 1;
    }
    for id in &ids {
        let status = store.get(*id).await.unwrap().unwrap().status;
        // One that was claimed each time a cancel came by is pending again.
        let expected = if times.contains_key(id) { Status::Canceled } else { Status::Pending };
        assert_eq!(status, expected, "{id}");
    }
    assert!(times.values().all(|times| *times == 1), "each is canceled once");

    // A circle would have been broken by the server, and the call made again: only the server knows. A session tells
    // what it counted when it ends, at the latest.
    store.close().await;
    let session_pool = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'timer'";
    while throwaway::postgres().query(&url, session_pool) != "0" {
        tokio::task::yield_now().await;
    }
    let circles = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(throwaway::postgres().query(&url, circles), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_cancel_takes_rows_in_the_order_in_which_claims_do() {
    let url = throwaway::postgres().create_database();
    let store = Arc::new(open(&url).await);
    // Of the same shard: the one with the greater id is due minutes before the other.
    let drafts = [timer("http://a.example/").numbered(64), timer("http://a.example/").numbered(0).due_in(secs(600))];
    let created = store.create(drafts.map(Draft::build).into()).await.unwrap();
    let [first, second] = [0, 1].map(|place: usize| created[place].timer().id());
    let mut holder = Holder::of(&url, first).await;
    let canceling = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.cancel_all(&[second, first], NOW).await.unwrap() }
    });
    timeout(TIMEOUT, holder.is_waited_for()).await.expect("the cancel waits for the first row");
    // A call that waits for the first must not have the second in hand.
    let next = holder.execute("UPDATE due SET attempt = attempt WHERE id = '00000000-0000-7000-8000-000000000000'");
    timeout(Duration::from_millis(500), next).await.expect("the second row is free");
    holder.commit().await;
    assert_eq!(timeout(TIMEOUT, canceling).await.expect("the cancel ends").unwrap(), [true, true]);
}

/// What a bulk cancel of five timers answers that had to wait for the third, because `change` was under way.
async fn canceled_during(change: &'static str) -> (PostgresStore, Vec<TimerId>, Vec<bool>) {
    let url = throwaway::postgres().create_database();
    let store = Arc::new(open(&url).await);
    let ids = create_many(&store, 5).await;
    let mut holder = Holder::of(&url, ids[2]).await;
    holder.execute(change).await;
    let canceling = tokio::spawn({
        let (store, ids) = (Arc::clone(&store), ids.clone());
        async move { store.cancel_all(&ids, NOW).await.unwrap() }
    });
    timeout(TIMEOUT, holder.is_waited_for()).await.expect("the cancel waits for a row that is being changed");
    holder.commit().await;
    let canceled = timeout(TIMEOUT, canceling).await.expect("the cancel ends").unwrap();
    (Arc::into_inner(store).unwrap(), ids, canceled)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timer_that_was_moved_while_a_bulk_cancel_waited_is_canceled_all_the_same() {
    let (store, ids, canceled) = canceled_during(
        "UPDATE due SET at = at + 3600000000 WHERE id = '00000000-0000-7000-8000-000000000002';
         UPDATE definition SET execute_at = execute_at + 3600000000, revision = revision + 1
         WHERE id = '00000000-0000-7000-8000-000000000002'",
    )
    .await;
    assert_eq!(canceled, [true; 5]);
    let moved = store.get(ids[2]).await.unwrap().unwrap();
    assert_eq!((moved.status, moved.revision), (Status::Canceled, 2));
    assert_eq!(everything_due(&store).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timer_that_was_claimed_while_a_bulk_cancel_waited_is_left_to_its_claimer() {
    let (store, ids, canceled) =
        canceled_during("UPDATE due SET claim = 7, epoch = 1, attempt = 1 WHERE id = '00000000-0000-7000-8000-000000000002'")
            .await;
    assert_eq!(canceled, [true, true, false, true, true]);
    assert_eq!(store.get(ids[2]).await.unwrap().unwrap().status, Status::Executing);
}

async fn failed(store: &PostgresStore, count: u32) -> Vec<Timer> {
    let shard_leases = acquire_all(store).await;
    let ids = create_many(store, count).await;
    let claimed = store.claim(&claim(7, &shard_leases), &everything_due(store).await).await.unwrap();
    let settlements: Vec<_> =
        claimed.iter().map(|claimed| remembering(claimed, Next::Failed { at: NOW, error: "timeout".to_owned() })).collect();
    assert!(store.settle(&settlements).await.unwrap().into_iter().all(|counted| counted));
    let mut failed = Vec::new();
    for id in ids {
        failed.push(store.get(id).await.unwrap().unwrap());
    }
    failed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_timer_is_either_tried_again_or_purged() {
    let url = throwaway::postgres().create_database();
    let store = Arc::new(open(&url).await);
    let timers = failed(&store, 200).await;
    let mut reopening = JoinSet::new();
    for timer in &timers {
        let (store, id) = (Arc::clone(&store), timer.id());
        reopening.spawn(async move { (id, store.reopen(id, None, ahead(secs(60))).await.unwrap()) });
    }
    let mut purged = 0;
    for _ in 0..40 {
        purged += store.purge(ahead(secs(1)), 3).await.unwrap();
    }
    let mut reopened = 0;
    for (id, answer) in joined(reopening).await {
        let found = store.get(id).await.unwrap();
        let attempts = store.attempts(id).await.unwrap();
        match answer {
            Changed::Done(timer) => {
                reopened += 1;
                assert_eq!(found, Some(timer));
                assert_eq!(attempts.len(), 1);
            }
            Changed::NotFound => assert_eq!((found, attempts), (None, Vec::new())),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(reopened + purged, timers.len());
    assert_eq!(everything_due(&*store).await.len(), reopened);
    let rows = "SELECT (SELECT count(*) FROM definition), (SELECT count(*) FROM outcome), (SELECT count(*) FROM attempt)";
    assert_eq!(throwaway::postgres().query(&url, rows), format!("{reopened}|0|{reopened}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_timer_that_is_tried_again_and_replaced_at_once_is_due_once() {
    let store = Arc::new(open(&throwaway::postgres().create_database()).await);
    let timers = failed(&store, 60).await;
    let mut tasks = JoinSet::new();
    for (n, before) in (0..).zip(timers) {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let new = timer("http://new.example/").numbered(n).on_conflict(OnConflict::Replace).due_in(secs(7)).build();
            let reopen = || store.reopen(before.id(), None, NOW);
            tokio::join!(reopen(), store.create(vec![new]), reopen())
        });
    }
    for (one, replaced, other) in joined(tasks).await {
        let replaced = replaced.unwrap().remove(0);
        assert!(matches!(replaced, Created::Replaced(_)), "{replaced:?}");
        let reopened = [one.unwrap(), other.unwrap()];
        let done = reopened.iter().filter(|answer| matches!(answer, Changed::Done(_))).count();
        let met =
            reopened.iter().filter(|answer| matches!(answer, Changed::WrongStatus(met) if met.status == Status::Pending)).count();
        assert!(done <= 1 && done + met == 2, "{reopened:?}");
        let now = store.get(replaced.timer().id()).await.unwrap().unwrap();
        assert_eq!(now, *replaced.timer(), "whichever came first, the replacement is what counts");
        assert_eq!(now.revision, if done == 1 { 3 } else { 2 });
    }
    let due = everything_due(&*store).await;
    assert_eq!(due.len(), 60);
    assert!(due.iter().all(|entry| entry.at == ahead(secs(7))));
}

/// Most settlements carry no attempt: those must not even look at the table.
#[tokio::test(flavor = "multi_thread")]
async fn settlements_without_an_attempt_pay_nothing_for_those_that_have_one() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    let shard_leases = acquire_all(&store).await;
    create_many(&store, 4).await;
    let claimed = store.claim(&claim(7, &shard_leases), &everything_due(&store).await).await.unwrap();
    let mut blocker = PgConnection::connect(&url).await.unwrap();
    blocker.execute("BEGIN; LOCK TABLE attempt IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let plain =
        [claimed[0].settle(Next::Completed { at: NOW }), claimed[1].settle(Next::Pending { at: NOW, attempt: 1, error: None })];
    let counted = timeout(PROMPTLY, store.settle(&plain)).await.expect("they do not wait").unwrap();
    assert_eq!(counted, [true, true]);
    blocker.execute("ROLLBACK").await.unwrap();
    // And beside one that has an attempt, they have none.
    let mixed = [remembering(&claimed[2], Next::Completed { at: NOW }), claimed[3].settle(Next::Completed { at: NOW })];
    assert_eq!(store.settle(&mixed).await.unwrap(), [true, true]);
    let remembered = throwaway::postgres().query(&url, "SELECT id, seq, number, outcome FROM attempt");
    assert_eq!(remembered, format!("{}|1|1|timeout", claimed[2].entry.id));
}

#[tokio::test]
async fn lists_are_narrowed_by_how_a_key_begins() {
    let store = open(&throwaway::postgres().create_database()).await;
    for key in ["a-1", "a-2", "a-3", "b-1"] {
        store.create(vec![timer("http://a.example/").key(key).due_in(secs(key.len() as u32)).build()]).await.unwrap();
    }
    store.create(vec![timer("http://a.example/").build()]).await.unwrap();
    for (prefix, count) in [("a-", 3), ("", 4), ("a-2", 1), ("c", 0), ("a-\0", 0), ("\u{fffd}", 0)] {
        let filter = Filter { key_prefix: Some(prefix.to_owned()), ..Filter::default() };
        assert_eq!(store.count(&filter, store::SEARCH_BUDGET).await.unwrap(), count as u64, "{prefix:?}");
        for (sort, order) in [(Sort::CreatedAt, Order::Ascending), (Sort::ExecuteAt, Order::Descending)] {
            let mut query = ListQuery { filter: filter.clone(), sort, order, limit: 2, ..ListQuery::default() };
            let mut listed = 0;
            loop {
                let page = store.list(&query).await.unwrap();
                listed += page.timers.len();
                query.after = page.next;
                if query.after.is_none() {
                    break;
                }
            }
            assert_eq!(listed, count, "{prefix:?} {sort:?}");
        }
    }
}
