//! Claiming timers for delivery.

use domain::{Next, Status, Timer};
use store::{Claim, Claimed, DueEntry, Epoch, NodeId, OnLocked, ShardLease};

use crate::{
    Fixture, NOW, Stage, ago, ahead, micros, secs,
    stage::{LONG, entry, entry_at, ids_of, timers_of},
    timer,
};

pub async fn a_claimed_timer_is_executing_and_comes_back_whole(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let draft = timer("http://a.example/hook").namespace("tenant").key("k").payload("1.10").metadata("{}").correlation_id("c");
    let pending = stage.create(draft).await;
    let claim = stage.new_claim();

    let claimed = stage.store.claim(&claim, &[entry(&pending)]).await.unwrap();

    let executing = Timer { status: Status::Executing, attempt: 1, ..pending.clone() };
    let expected = Claimed {
        entry: entry(&pending),
        shard_lease: stage.shard_lease(pending.id()),
        token: claim.token,
        attempt: 1,
        timer: Ok(executing.clone()),
    };
    assert_eq!(claimed, [expected]);
    assert_eq!(stage.get(pending.id()).await, executing);
    assert_eq!(stage.due(ahead(secs(600))).await, []);
}

pub async fn only_what_is_pending_and_unmoved_is_claimed(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let mut entries: Vec<DueEntry> = Vec::new();
    let mut good = Vec::new();
    for status in Status::ALL {
        let timer = stage.in_status(timer("http://a.example/").key(status.as_str()), status).await;
        entries.push(entry(&timer));
        if status == Status::Pending {
            good.push(timer.id());
        }
    }
    let moved = stage.create(timer("http://a.example/").key("moved")).await;
    stage.update(&Timer { execute_at: ahead(secs(7)), ..moved.clone() }, NOW).await;
    entries.push(entry(&moved));
    entries.push(DueEntry { id: timer("http://a.example/").key("unknown").id(), ..entry(&moved) });
    let last = stage.create(timer("http://a.example/").key("last")).await;
    good.push(last.id());
    entries.push(entry(&last));

    let claimed = stage.claim(&entries).await;

    good.sort_unstable();
    assert_eq!(ids_of(&claimed), good);
}

pub async fn a_claimed_timer_is_not_claimed_by_another_token(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let pending = stage.create(timer("http://a.example/")).await;
    let first = stage.claim_one(&pending).await;
    assert_eq!(stage.claim(&[entry(&pending)]).await, []);
    let timer = stage.get(pending.id()).await;
    assert_eq!(timer, first.timer.clone().unwrap());
    stage.settle(&first, Next::Completed { at: NOW }).await;
}

pub async fn a_claim_that_is_repeated_gives_the_same_and_counts_nothing_twice(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let drafts = (0..20).map(|n| timer("http://a.example/").numbered(n).payload(&n.to_string()));
    let timers = stage.create_new(drafts.collect()).await;
    let entries: Vec<_> = timers.iter().map(entry).collect();
    // Another node was faster with the first three; repeating the claim must not give those away.
    stage.claim(&entries[..3]).await;
    let claim = stage.new_claim();

    let mut first = stage.store.claim(&claim, &entries).await.unwrap();
    let mut second = stage.store.claim(&claim, &entries).await.unwrap();

    first.sort_by_key(|claimed| claimed.entry.id);
    second.sort_by_key(|claimed| claimed.entry.id);
    assert_eq!(first.len(), 17);
    assert_eq!(first, second);
    for claimed in first {
        assert_eq!(claimed.attempt, 1);
        assert_eq!(stage.get(claimed.entry.id).await, claimed.timer.unwrap());
    }
}

pub async fn a_timer_that_is_named_many_times_is_claimed_once(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new(vec![timer("http://a.example/").numbered(1), timer("http://a.example/").numbered(2)]).await;
    let (named, neighbour) = (entry(&timers[0]), entry(&timers[1]));
    let elsewhere = DueEntry { destination: timer("http://b.example/").build().definition.destination(), ..named };
    let moved = |at| DueEntry { at, ..named };
    // Stale entries of another minute and of the same one come before and after the right one.
    let entries = [moved(ago(secs(90))), elsewhere, moved(ahead(micros(1))), named, neighbour, named, moved(ahead(secs(90)))];
    let claim = stage.new_claim();

    for call in ["the first call", "the same call again"] {
        let mut claimed = stage.store.claim(&claim, &entries).await.unwrap();
        claimed.sort_by_key(|claimed| claimed.entry.id);
        assert_eq!(claimed.iter().map(|claimed| claimed.entry).collect::<Vec<_>>(), [named, neighbour], "{call}");
        assert!(claimed.iter().all(|claimed| claimed.attempt == 1), "{call}: {claimed:?}");
    }
    assert_eq!(stage.get(named.id).await.attempt, 1);
}

pub async fn without_the_current_shard_lease_nothing_is_claimed(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..32).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let entries: Vec<_> = timers.iter().map(entry).collect();
    let with =
        |shard_leases: Vec<ShardLease>| Claim { token: stage.next_token(), shard_leases, lease: LONG, on_locked: OnLocked::Skip };
    let shifted = |by: i64| {
        stage
            .shard_leases
            .iter()
            .map(|shard_lease| ShardLease { epoch: Epoch(shard_lease.epoch.0 + by), ..*shard_lease })
            .collect::<Vec<_>>()
    };
    for (what, shard_leases) in [("no shard lease", vec![]), ("an earlier epoch", shifted(-1)), ("a later epoch", shifted(1))] {
        assert_eq!(stage.store.claim(&with(shard_leases), &entries).await.unwrap(), [], "{what}");
    }
    assert_eq!(stage.due(NOW).await.len(), 32);
}

pub async fn only_timers_of_shards_that_are_held_are_claimed(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..64).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let entries: Vec<_> = timers.iter().map(entry).collect();
    // One shard is held, a second only under an old shard lease, the rest not at all.
    let held = stage.shard_lease(timers[0].id());
    let mut shard_leases = vec![held];
    shard_leases.extend(
        stage
            .shard_leases
            .iter()
            .find(|shard_lease| **shard_lease != held)
            .map(|shard_lease| ShardLease { epoch: Epoch(shard_lease.epoch.0 - 1), ..*shard_lease }),
    );
    let claim = Claim { token: stage.next_token(), shard_leases, lease: LONG, on_locked: OnLocked::Skip };

    let claimed = stage.store.claim(&claim, &entries).await.unwrap();

    let mut expected: Vec<_> = timers.iter().map(Timer::id).filter(|id| stage.shard(*id) == held.shard).collect();
    expected.sort_unstable();
    assert!(!expected.is_empty());
    assert_eq!(ids_of(&claimed), expected);
    assert!(claimed.iter().all(|claimed| claimed.shard_lease == held));
}

pub async fn a_lost_shard_is_claimed_only_by_its_new_owner(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let pending = stage.create(timer("http://a.example/")).await;
    let old = stage.new_claim();
    let shard_leases = stage.hand_over(NodeId(2)).await;

    assert_eq!(stage.store.claim(&old, &[entry(&pending)]).await.unwrap(), []);
    let new = Claim { token: stage.next_token(), shard_leases: shard_leases.clone(), lease: LONG, on_locked: OnLocked::Skip };
    let claimed = stage.store.claim(&new, &[entry(&pending)]).await.unwrap();
    assert_eq!(ids_of(&claimed), [pending.id()]);
    assert!(shard_leases.contains(&claimed[0].shard_lease));
}

pub async fn a_shard_lease_that_ran_out_unnoticed_still_claims_and_settles(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let first = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
    stage.die(stage.node).await;

    let second = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
    stage.settle(&second, Next::Completed { at: NOW }).await;
    stage.settle(&first, Next::Completed { at: NOW }).await;
}

pub async fn attempts_count_up_from_claim_to_claim(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timer = stage.create(timer("http://a.example/")).await;
    let mut at = timer.execute_at;
    for attempt in 1..=4 {
        let claimed = stage.claim(&[entry_at(&timer, at)]).await.remove(0);
        assert_eq!(claimed.attempt, attempt);
        let read = claimed.timer.clone().unwrap();
        assert_eq!(read.attempt, attempt);
        assert_eq!(
            read.last_error.as_deref(),
            (attempt > 1).then_some("HTTP 503"),
            "the last error stays while it is tried again"
        );
        assert_eq!(read.execute_at, NOW);
        assert_eq!(claimed.entry.at, at);
        at = at.saturating_add(secs(45));
        stage.settle(&claimed, Next::Pending { at, attempt, error: Some("HTTP 503".to_owned()) }).await;
    }
}

pub async fn a_retry_is_claimed_at_its_own_time_only(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let claimed = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
    let timer = claimed.timer.clone().unwrap();
    stage.settle(&claimed, Next::Pending { at: ahead(secs(5)), attempt: 1, error: None }).await;
    assert_eq!(stage.claim(&[entry(&timer)]).await, []);
    assert_eq!(stage.claim(&[entry_at(&timer, ahead(secs(5)))]).await.len(), 1);
}

pub async fn a_thousand_timers_are_claimed_at_once(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let drafts = (0..1_000).map(|n| timer("http://a.example/").numbered(n).payload(&n.to_string()).due_in(secs(n as u32 / 4)));
    let created = stage.create_new(drafts.collect()).await;
    let claimed = stage.claim(&created.iter().map(entry).collect::<Vec<_>>()).await;
    let expected: Vec<_> = created.into_iter().map(|timer| Timer { status: Status::Executing, attempt: 1, ..timer }).collect();
    assert_eq!(timers_of(&claimed), expected);
    assert_eq!(stage.due(ahead(secs(600))).await, []);
}
