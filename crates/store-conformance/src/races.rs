//! What must hold under concurrency. Each race is run many times. A call that is refused with nothing done is made again ([`answered`]), except
//! where the race is about calls that want the same rows in opposite orders: none of those may be refused.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use domain::{Missed, Next, OnConflict, Status, Timer};
use store::{Changed, Claim, Claimed, Created, DueEntry, NodeId, OnLocked, ShardLease};
use tokio::task::JoinSet;

use crate::{
    Draft, Fixture, NOW, Stage, ahead, secs,
    stage::{LONG, answered, entry, ids_of},
    timer,
};

/// One claim of the stage, to be run in a task of its own.
fn claimer(stage: &Stage, entries: Vec<DueEntry>) -> impl Future<Output = Vec<Claimed>> + Send + 'static {
    let (store, claim) = (Arc::clone(&stage.store), stage.new_claim());
    async move { answered(|| store.claim(&claim, &entries)).await }
}

async fn joined<T: 'static>(mut tasks: JoinSet<T>) -> Vec<T> {
    let mut results = Vec::new();
    while let Some(result) = tasks.join_next().await {
        results.push(result.unwrap());
    }
    results
}

pub async fn exactly_one_of_many_claimers_gets_each_timer(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..400).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let entries: Vec<_> = timers.iter().map(entry).collect();
    let mut tasks = JoinSet::new();
    for task in 0..16 {
        // Each claimer starts at another end, with batches of another size.
        let mut mine = entries.clone();
        mine.rotate_left(task * 25);
        if task % 2 == 1 {
            mine.reverse();
        }
        for batch in mine.chunks(40 + task * 10) {
            tasks.spawn(claimer(&stage, batch.to_vec()));
        }
    }
    let claimed = joined(tasks).await.concat();
    let expected: Vec<_> = timers.iter().map(Timer::id).collect();
    // A claimer that met a row locked by another may have skipped a timer; no timer may be claimed twice.
    let mut got = ids_of(&claimed);
    assert_eq!(got.len(), got.iter().collect::<BTreeSet<_>>().len(), "no timer is claimed twice");
    got.extend(ids_of(&stage.claim(&entries).await));
    got.sort_unstable();
    assert_eq!(got, expected);
    for timer in timers {
        assert_eq!(stage.get(timer.id()).await.attempt, 1);
    }
}

pub async fn one_claim_sent_many_times_at_once_counts_once(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..50).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let entries: Vec<_> = timers.iter().map(entry).collect();
    let claim = stage.new_claim();
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let (store, claim, entries) = (Arc::clone(&stage.store), claim.clone(), entries.clone());
        tasks.spawn(async move { answered(|| store.claim(&claim, &entries)).await });
    }
    joined(tasks).await;
    let last = stage.store.claim(&claim, &entries).await.unwrap();
    assert_eq!(ids_of(&last), timers.iter().map(Timer::id).collect::<Vec<_>>());
    assert!(last.iter().all(|claimed| claimed.attempt == 1), "attempts count once");
}

pub async fn a_timer_is_never_both_canceled_and_claimed(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..150).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let mut tasks = JoinSet::new();
    for (n, timer) in timers.iter().enumerate() {
        let (store, id, claim) = (Arc::clone(&stage.store), timer.id(), claimer(&stage, vec![entry(timer)]));
        tasks.spawn(async move {
            let cancel = answered(|| store.cancel(id, None, NOW));
            // The order of polling alternates.
            let (canceled, claimed) = if n % 2 == 0 {
                tokio::join!(cancel, claim)
            } else {
                let (claimed, canceled) = tokio::join!(claim, cancel);
                (canceled, claimed)
            };
            (id, canceled, claimed)
        });
    }
    for (id, canceled, claimed) in joined(tasks).await {
        let status = stage.get(id).await.status;
        match canceled {
            Changed::Done(_) => assert_eq!((claimed.len(), status), (0, Status::Canceled)),
            Changed::WrongStatus(met) => {
                assert_eq!((met.status, claimed.len(), status), (Status::Executing, 1, Status::Executing))
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A store may gather calls of many clients into one statement: each client still gets its own answer.
pub async fn cancels_of_many_timers_at_once_are_answered_each_by_itself(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let mut timers = Vec::new();
    for n in 0..10 {
        for (m, status) in (0..).zip(Status::ALL) {
            // Some are so large that a store may read them apart.
            let payload = if n % 2 == 0 { n.to_string() } else { n.to_string().repeat(5_000) };
            let draft = timer("http://a.example/").numbered(n * 100 + m).payload(&format!("\"{payload}\""));
            timers.push(stage.in_status(draft, status).await);
        }
    }
    let mut tasks = JoinSet::new();
    for (n, timer) in (0..).zip(&timers) {
        for _ in 0..2 {
            let (store, id, now) = (Arc::clone(&stage.store), timer.id(), ahead(secs(n)));
            tasks.spawn(async move { (n, answered(|| store.cancel(id, None, now)).await) });
        }
    }
    let mut done = BTreeSet::new();
    for (n, answer) in joined(tasks).await {
        let before = &timers[n as usize];
        match answer {
            Changed::Done(after) => {
                assert!(done.insert(n), "{before:?} is canceled once");
                assert!(matches!(before.status, Status::Pending | Status::Paused));
                assert_eq!((after.status, after.updated_at), (Status::Canceled, ahead(secs(n))));
                assert_eq!((&after.definition, &after), (&before.definition, &stage.get(before.id()).await));
            }
            Changed::WrongStatus(met) if matches!(before.status, Status::Pending | Status::Paused) => {
                assert_eq!((met.id(), met.status), (before.id(), Status::Canceled));
            }
            Changed::WrongStatus(met) => assert_eq!(&met, before),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(done.len(), 20, "every pending and every paused timer is canceled");
}

pub async fn a_timer_is_never_both_paused_and_claimed(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..150).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let mut tasks = JoinSet::new();
    for (n, timer) in timers.iter().enumerate() {
        let (store, id, claim) = (Arc::clone(&stage.store), timer.id(), claimer(&stage, vec![entry(timer)]));
        tasks.spawn(async move {
            let pause = answered(|| store.pause(id, None, None, NOW));
            // The order of polling alternates.
            let (paused, claimed) = if n % 2 == 0 {
                tokio::join!(pause, claim)
            } else {
                let (claimed, paused) = tokio::join!(claim, pause);
                (paused, claimed)
            };
            (id, paused, claimed)
        });
    }
    for (id, paused, claimed) in joined(tasks).await {
        let status = stage.get(id).await.status;
        match paused {
            Changed::Done(_) => assert_eq!((claimed.len(), status), (0, Status::Paused)),
            Changed::WrongStatus(met) => {
                assert_eq!((met.status, claimed.len(), status), (Status::Executing, 1, Status::Executing))
            }
            other => panic!("{other:?}"),
        }
    }
}

pub async fn pausing_and_resuming_at_once_leaves_one_timer(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..40).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let mut tasks = JoinSet::new();
    for timer in &timers {
        let (store, id) = (Arc::clone(&stage.store), timer.id());
        tasks.spawn(async move {
            let pause = || answered(|| store.pause(id, None, None, NOW));
            let resume = || answered(|| store.resume(id, None, Missed::Fire, NOW));
            let (a, b, c, d) = tokio::join!(pause(), resume(), pause(), resume());
            let done = [a, b, c, d].into_iter().filter(|answer| matches!(answer, Changed::Done(_))).count();
            (id, u32::try_from(done).unwrap())
        });
    }
    for (id, done) in joined(tasks).await {
        let now = stage.get(id).await;
        assert_eq!(now.revision, 1 + done, "each change counts once");
        assert_eq!(now.status, if done % 2 == 1 { Status::Paused } else { Status::Pending });
        assert_eq!(stage.due_of(id).await.len(), usize::from(now.status == Status::Pending));
    }
}

pub async fn a_claim_that_meets_an_update_is_before_or_after_it(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..150).map(|n| timer("http://a.example/").numbered(n).payload(r#""old""#)).collect()).await;
    let mut tasks = JoinSet::new();
    for (n, before) in timers.into_iter().enumerate() {
        let mut changed = before.clone();
        changed.definition.callback = timer("http://new.example/").payload(r#""new""#).build().definition.callback;
        // Some stay where they are, some move within the minute, some to another one.
        changed.execute_at = ahead(secs([0, 0, 7, 61][n % 4]));
        let (store, claim) = (Arc::clone(&stage.store), claimer(&stage, vec![entry(&before)]));
        tasks.spawn(async move {
            let update = answered(|| store.update(&changed, NOW));
            let (updated, claimed) = if n % 2 == 0 {
                tokio::join!(update, claim)
            } else {
                let (claimed, updated) = tokio::join!(claim, update);
                (updated, claimed)
            };
            (before, changed, updated, claimed.into_iter().next())
        });
    }
    for (before, changed, updated, claimed) in joined(tasks).await {
        let now = stage.get(before.id()).await;
        match (updated, claimed) {
            // The claim came first: it has the old content, and the update was refused.
            (Changed::WrongStatus(met), Some(claimed)) => {
                assert_eq!(met.status, Status::Executing);
                assert_eq!(claimed.timer.unwrap().definition, before.definition);
                assert_eq!(now.definition, before.definition);
            }
            // The update came first: the claim can only have got what the update left at the old time.
            (Changed::Done(after), Some(claimed)) => {
                assert_eq!(changed.execute_at, before.execute_at, "it was moved away from the time it was claimed at");
                assert_eq!(claimed.timer.unwrap().definition, after.definition);
                assert_eq!((now.status, &now.definition), (Status::Executing, &after.definition));
            }
            (Changed::Done(after), None) => {
                assert_eq!(now, after);
                assert_eq!(stage.claim_one(&after).await.timer.unwrap().definition, after.definition);
            }
            other => panic!("{other:?}"),
        }
    }
}

pub async fn of_many_updates_of_one_revision_one_counts(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for _ in 0..5 {
        let before = stage.create(timer("http://a.example/")).await;
        let mut tasks = JoinSet::new();
        for n in 1..=8 {
            let (store, changed) = (Arc::clone(&stage.store), Timer { execute_at: ahead(secs(n * 30)), ..before.clone() });
            tasks.spawn(async move { answered(|| store.update(&changed, NOW)).await });
        }
        let mut done = Vec::new();
        for answer in joined(tasks).await {
            match answer {
                Changed::Done(timer) => done.push(timer),
                other => assert!(matches!(other, Changed::StaleRevision(_)), "{other:?}"),
            }
        }
        assert_eq!(done, [stage.get(before.id()).await]);
        let due: Vec<_> = stage.due(ahead(secs(600))).await.into_iter().filter(|due| due.id == before.id()).collect();
        assert_eq!(due, [entry(&done[0])], "it is due once");
    }
}

pub async fn of_many_creates_of_one_key_one_creates(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let mut tasks = JoinSet::new();
    for task in 0..12 {
        let mut batch: Vec<_> = (0..25).map(|n| timer("http://a.example/").key(&n.to_string()).build()).collect();
        // Opposite orders: batches that wait for one another must not deadlock, and none may fail for it.
        if task % 2 == 1 {
            batch.reverse();
        }
        let store = Arc::clone(&stage.store);
        tasks.spawn(async move { store.create(batch).await.unwrap() });
    }
    let mut creations = BTreeMap::new();
    for created in joined(tasks).await.into_iter().flatten() {
        let count: &mut usize = creations.entry(created.timer().id()).or_default();
        match created {
            Created::Created(_) => *count += 1,
            other => assert!(matches!(other, Created::Existing(_)), "{other:?}"),
        }
    }
    assert_eq!(creations.into_values().collect::<Vec<_>>(), [1; 25]);
    assert_eq!(stage.due(NOW).await.len(), 25);
}

pub async fn replacing_batches_in_opposite_orders_do_not_hinder_each_other(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let draft = |n: u32, task: u32| -> Draft {
        timer("http://a.example/").key(&n.to_string()).payload(&task.to_string()).due_in(secs(task * 40))
    };
    stage.create_new((0..25).map(|n| draft(n, 0)).collect()).await;
    let mut tasks = JoinSet::new();
    for task in 1..=8 {
        let mut batch: Vec<_> = (0..25).map(|n| draft(n, task).on_conflict(OnConflict::Replace).build()).collect();
        if task % 2 == 1 {
            batch.reverse();
        }
        let store = Arc::clone(&stage.store);
        tasks.spawn(async move { store.create(batch).await.unwrap() });
    }
    for answer in joined(tasks).await.into_iter().flatten() {
        assert!(matches!(answer, Created::Replaced(_)), "{answer:?}");
    }
    let due = stage.due(ahead(secs(6_000))).await;
    assert_eq!(due.len(), 25, "each is due once");
    for found in due {
        let timer = stage.get(found.id).await;
        assert_eq!((timer.revision, entry(&timer)), (9, found));
        let payload = timer.definition.callback.payload().unwrap().as_str().parse::<u32>().unwrap();
        assert_eq!(timer.execute_at, ahead(secs(payload * 40)), "content and time are of the same request");
    }
}

pub async fn of_many_settlements_of_one_claim_one_counts(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for _ in 0..5 {
        let claimed = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
        let mut tasks = JoinSet::new();
        for n in 0..8 {
            let next = match n % 3 {
                0 => Next::Completed { at: NOW },
                1 => Next::Failed { at: NOW, error: "HTTP 500".to_owned() },
                _ => Next::Pending { at: ahead(secs(n * 30)), attempt: 1, error: None },
            };
            let (store, settlement) = (Arc::clone(&stage.store), claimed.settle(next));
            tasks.spawn(async move { answered(|| store.settle(std::slice::from_ref(&settlement))).await[0] });
        }
        let counted = joined(tasks).await.into_iter().filter(|counted| *counted).count();
        assert_eq!(counted, 1);
        let timer = stage.get(claimed.entry.id).await;
        let due = stage.due(ahead(secs(600))).await.into_iter().filter(|due| due.id == timer.id()).count();
        assert_eq!(due, usize::from(timer.status == Status::Pending));
    }
}

/// The old owner claims while another node takes its shards. Returns the claims that it got, and the leases of the new owner.
async fn claimed_during(
    stage: &Stage,
    timers: &[Timer],
    take: impl Future<Output = Vec<ShardLease>>,
) -> (Vec<Claimed>, Vec<ShardLease>) {
    let mut tasks = JoinSet::new();
    for timer in timers {
        tasks.spawn(claimer(stage, vec![entry(timer)]));
    }
    let shard_leases = take.await;
    (joined(tasks).await.concat(), shard_leases)
}

pub async fn what_the_old_owner_claims_during_a_hand_over_is_its_own(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..100).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let (old, shard_leases) = claimed_during(&stage, &timers, stage.hand_over(NodeId(2))).await;

    assert_eq!(stage.store.expired_claims(&shard_leases, 1_000).await.unwrap(), [], "its maker lives");
    let claim = Claim { token: stage.next_token(), shard_leases, lease: LONG, on_locked: OnLocked::Skip };
    let new = stage.store.claim(&claim, &timers.iter().map(entry).collect::<Vec<_>>()).await.unwrap();
    let mut all = [ids_of(&old), ids_of(&new)].concat();
    all.sort_unstable();
    assert_eq!(all, timers.iter().map(Timer::id).collect::<Vec<_>>(), "each is either the old owner's or the new one's");
    let settlements: Vec<_> = old.iter().chain(&new).map(|claimed| claimed.settle(Next::Completed { at: NOW })).collect();
    assert_eq!(stage.store.settle(&settlements).await.unwrap(), vec![true; timers.len()]);
}

pub async fn what_the_old_owner_claims_during_a_take_over_is_found(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..100).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let (old, shard_leases) = claimed_during(&stage, &timers, stage.take_over(NodeId(2))).await;

    // A claim that was overtaken by the take-over may be stored although its owner got no answer.
    let found = stage.store.expired_claims(&shard_leases, 1_000).await.unwrap();
    assert!(ids_of(&old).iter().all(|id| ids_of(&found).contains(id)), "what the old owner had got is found");
    let claim = Claim { token: stage.next_token(), shard_leases, lease: LONG, on_locked: OnLocked::Skip };
    let new = stage.store.claim(&claim, &timers.iter().map(entry).collect::<Vec<_>>()).await.unwrap();
    let mut all = [ids_of(&found), ids_of(&new)].concat();
    all.sort_unstable();
    assert_eq!(all, timers.iter().map(Timer::id).collect::<Vec<_>>(), "each is either to be recovered or the new owner's");
    for claimed in &found {
        stage.settle(claimed, Next::Pending { at: ahead(secs(90)), attempt: 1, error: None }).await;
    }
    let late: Vec<_> = old.iter().map(|claimed| claimed.settle(Next::Completed { at: NOW })).collect();
    assert_eq!(stage.store.settle(&late).await.unwrap(), vec![false; late.len()]);
}

pub async fn a_call_that_is_abandoned_leaves_the_store_whole(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    // From "not even begun" to "long done": somewhere in between, calls are canceled half-way.
    let cut_off_after = |n: u64| Duration::from_micros(n * n * 4);
    let drafts: Vec<_> = (0..60).map(|n| timer("http://a.example/").numbered(n)).collect();
    for (n, draft) in (0..).zip(drafts.clone()) {
        let _ = tokio::time::timeout(cut_off_after(n), stage.store.create(vec![draft.build()])).await;
    }
    // Whatever the outcome of each call was: after a repetition the timer exists, and is due once.
    let timers: Vec<_> = stage.create_all(drafts).await.into_iter().map(|created| created.timer().clone()).collect();
    assert_eq!(stage.due(NOW).await, timers.iter().map(entry).collect::<Vec<_>>());

    let mut claimed = Vec::new();
    for (n, timer) in (0..).zip(&timers) {
        let (claim, entries) = (stage.new_claim(), [entry(timer)]);
        let _ = tokio::time::timeout(cut_off_after(n), stage.store.claim(&claim, &entries)).await;
        // The abandoned call may hold its row for a moment longer, and what is locked is skipped.
        let repeat = || async { Some(answered(|| stage.store.claim(&claim, &entries)).await).filter(|again| !again.is_empty()) };
        let again = stage.eventually("the claim", repeat).await;
        assert_eq!((again.len(), again[0].attempt), (1, 1));
        claimed.extend(again);
    }
    for (n, claimed) in (0..).zip(&claimed) {
        let batch = [claimed.settle(Next::Completed { at: NOW })];
        let _ = tokio::time::timeout(cut_off_after(n), stage.store.settle(&batch)).await;
        answered(|| stage.store.settle(&batch)).await;
        assert_eq!(stage.get(claimed.entry.id).await.status, Status::Completed);
    }
}
