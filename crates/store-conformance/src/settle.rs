//! Settling claims: recording the results of attempts.

use domain::{Next, Status, Timer};
use store::{ClaimToken, Epoch, Settlement, ShardLease};

use crate::{
    Fixture, NOW, Stage, ago, ahead, micros, secs,
    stage::{entry, entry_at, retried},
    timer,
};

fn completed() -> Next {
    Next::Completed { at: NOW }
}

pub async fn a_completed_timer_has_ended_well(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let claimed = stage.claim_one(&stage.create(timer("http://a.example/").created_at(ago(secs(9)))).await).await;
    stage.settle(&claimed, Next::Completed { at: ahead(micros(1_234_567)) }).await;
    let expected = Timer {
        status: Status::Completed,
        executed_at: Some(ahead(micros(1_234_567))),
        updated_at: ahead(micros(1_234_567)),
        ..claimed.timer.unwrap()
    };
    assert_eq!(stage.get(claimed.entry.id).await, expected);
    assert_eq!(stage.due(ahead(secs(600))).await, []);
}

pub async fn a_failed_timer_keeps_its_error(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let claimed = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
    stage.settle(&claimed, Next::Failed { at: ahead(secs(2)), error: "HTTP 404".to_owned() }).await;
    let expected = Timer {
        status: Status::Failed,
        last_error: Some("HTTP 404".to_owned()),
        executed_at: Some(ahead(secs(2))),
        updated_at: ahead(secs(2)),
        ..claimed.timer.unwrap()
    };
    assert_eq!(stage.get(claimed.entry.id).await, expected);
    assert_eq!(stage.due(ahead(secs(600))).await, []);
}

pub async fn a_timer_that_is_given_up_without_a_call_counts_only_the_attempts_before(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for (started, key) in [(0, "never tried"), (2, "tried before")] {
        let pending = stage.create(timer("http://a.example/").key(key)).await;
        let mut claimed = stage.claim_one(&pending).await;
        if started > 0 {
            stage.settle(&claimed, Next::Pending { at: NOW, attempt: started, error: Some("timeout".to_owned()) }).await;
            claimed = stage.claim(&[entry_at(&pending, NOW)]).await.remove(0);
            assert_eq!(claimed.attempt, started + 1);
        }
        stage.settle(&claimed, Next::GivenUp { at: ahead(secs(2)), error: "overdue".to_owned() }).await;
        let expected = Timer {
            status: Status::Failed,
            attempt: started,
            last_error: Some("overdue".to_owned()),
            executed_at: Some(ahead(secs(2))),
            updated_at: ahead(secs(2)),
            ..claimed.timer.unwrap()
        };
        assert_eq!(stage.get(pending.id()).await, expected);
        assert_eq!(stage.due(ahead(secs(600))).await, []);
    }
}

pub async fn an_expired_timer_counts_the_attempts_that_were_started(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for (is_called, started, key) in [(false, 0, "never tried"), (true, 1, "tried once"), (false, 2, "tried before")] {
        let pending = stage.create(timer("http://a.example/").key(key)).await;
        let mut claimed = stage.claim_one(&pending).await;
        if started > 1 {
            stage.settle(&claimed, Next::Pending { at: NOW, attempt: started, error: Some("timeout".to_owned()) }).await;
            claimed = stage.claim(&[entry_at(&pending, NOW)]).await.remove(0);
        }
        stage.settle(&claimed, Next::Expired { at: ahead(secs(2)), error: "expired".to_owned(), is_called }).await;
        let expected = Timer {
            status: Status::Expired,
            attempt: started,
            last_error: Some("expired".to_owned()),
            executed_at: Some(ahead(secs(2))),
            updated_at: ahead(secs(2)),
            ..claimed.timer.unwrap()
        };
        assert_eq!(stage.get(pending.id()).await, expected, "{key}");
        assert_eq!(stage.due(ahead(secs(600))).await, []);
        let filter = store::Filter { status: vec![Status::Expired], ..store::Filter::default() };
        let query = store::ListQuery { filter: filter.clone(), limit: 10, ..store::ListQuery::default() };
        let listed = stage.store.list(&query).await.unwrap().timers;
        assert!(listed.iter().any(|summary| summary.id == pending.id() && summary.status == Status::Expired), "{key}");
        assert_eq!(stage.store.count(&filter, store::SEARCH_BUDGET).await.unwrap(), listed.len() as u64);
    }
}

pub async fn a_retried_timer_is_pending_again_for_the_same_due_time(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for (n, at) in [ahead(secs(3)), ahead(secs(300)), NOW].into_iter().enumerate() {
        let pending = stage.create(timer("http://a.example/").key(&n.to_string())).await;
        let claimed = stage.claim_one(&pending).await;
        stage.settle(&claimed, Next::Pending { at, attempt: 1, error: Some("timeout".to_owned()) }).await;
        let expected = Timer { attempt: 1, last_error: Some("timeout".to_owned()), ..pending.clone() };
        assert_eq!(stage.get(pending.id()).await, expected, "retried at {at}");
        assert_eq!(stage.claim(&[entry_at(&pending, at)]).await.len(), 1, "retried at {at}");
    }
}

pub async fn a_retry_counts_as_many_attempts_as_it_says(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    // An attempt that was never made is given back: it does not count, and leaves no error.
    let claimed = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
    stage.settle(&claimed, Next::Pending { at: NOW, attempt: 0, error: None }).await;
    let given_back = stage.get(claimed.entry.id).await;
    assert_eq!((given_back.status, given_back.attempt, given_back.last_error.clone()), (Status::Pending, 0, None));
    assert_eq!(stage.claim_one(&given_back).await.attempt, 1);
}

pub async fn a_timer_that_is_due_again_starts_over(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for at in [ahead(secs(3)), ahead(secs(300))] {
        let tried = retried(&stage, timer("http://a.example/"), ahead(secs(1))).await;
        let claimed = stage.claim(&[entry_at(&tried, ahead(secs(1)))]).await.remove(0);
        assert_eq!(claimed.attempt, 2);

        stage.settle(&claimed, Next::Again { at }).await;

        let before = claimed.timer.clone().unwrap();
        let (status, revision) = (Status::Pending, before.revision + 1);
        let expected = Timer { status, attempt: 0, last_error: None, execute_at: at, revision, ..before };
        assert_eq!(stage.get(tried.id()).await, expected);
        assert_eq!(stage.due(ahead(secs(600))).await, [entry(&expected)]);
        assert_eq!(stage.claim_one(&expected).await.attempt, 1);
    }
}

pub async fn a_success_clears_the_error_of_earlier_attempts(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let tried = retried(&stage, timer("http://a.example/"), ahead(secs(60))).await;
    let claimed = stage.claim(&[entry_at(&tried, ahead(secs(60)))]).await.remove(0);
    stage.settle(&claimed, completed()).await;
    let done = stage.get(tried.id()).await;
    assert_eq!((done.status, done.attempt, done.last_error), (Status::Completed, 2, None));
}

pub async fn a_settlement_with_another_token_counts_for_nothing(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let claimed = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
    for next in every_next() {
        let forged = Settlement { token: ClaimToken(claimed.token.0 + 1_000), ..claimed.settle(next) };
        assert_eq!(stage.store.settle(&[forged]).await.unwrap(), [false]);
    }
    assert_eq!(stage.get(claimed.entry.id).await, claimed.timer.clone().unwrap());
    stage.settle(&claimed, completed()).await;
}

pub async fn a_settlement_without_the_current_shard_lease_counts_for_nothing(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let claimed = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
    for epoch in [Epoch(claimed.shard_lease.epoch.0 - 1), Epoch(claimed.shard_lease.epoch.0 + 1)] {
        for next in every_next() {
            let stale = Settlement { shard_lease: ShardLease { epoch, ..claimed.shard_lease }, ..claimed.settle(next) };
            assert_eq!(stage.store.settle(&[stale]).await.unwrap(), [false], "{epoch:?}");
        }
    }
    assert_eq!(stage.get(claimed.entry.id).await, claimed.timer.clone().unwrap());
    stage.settle(&claimed, completed()).await;
}

pub async fn what_is_not_claimed_cannot_be_settled(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for status in Status::ALL.into_iter().filter(|status| *status != Status::Executing) {
        let before = stage.in_status(timer("http://a.example/").key(status.as_str()), status).await;
        for next in every_next() {
            let shard_lease = stage.shard_lease(before.id());
            let settlement = Settlement { entry: entry(&before), shard_lease, token: stage.next_token(), next, attempt: None };
            assert_eq!(stage.store.settle(&[settlement]).await.unwrap(), [false], "{status}");
        }
        assert_eq!(stage.get(before.id()).await, before);
    }
    let unknown = Settlement {
        entry: entry(&stage.create(timer("http://a.example/")).await),
        shard_lease: stage.shard_leases[0],
        token: stage.next_token(),
        next: completed(),
        attempt: None,
    };
    let id = timer("http://a.example/").key("unknown").id();
    let unknown = Settlement { entry: store::DueEntry { id, ..unknown.entry }, shard_lease: stage.shard_lease(id), ..unknown };
    assert_eq!(stage.store.settle(&[unknown]).await.unwrap(), [false]);
    assert_eq!(stage.store.get(id).await.unwrap(), None);
}

pub async fn settling_twice_is_harmless(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for next in every_next() {
        let claimed = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
        let settlement = claimed.settle(next);
        assert_eq!(stage.store.settle(std::slice::from_ref(&settlement)).await.unwrap(), [true]);
        let settled = stage.get(claimed.entry.id).await;
        assert_eq!(stage.store.settle(std::slice::from_ref(&settlement)).await.unwrap(), [false]);
        assert_eq!(stage.get(claimed.entry.id).await, settled);
    }
}

pub async fn a_late_settlement_does_not_touch_the_next_claim(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let first = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
    // Retried at the very same time: only the token tells the two claims apart.
    stage.settle(&first, Next::Pending { at: NOW, attempt: 1, error: None }).await;
    let second = stage.claim(&[first.entry]).await.remove(0);
    assert_eq!(stage.store.settle(&[first.settle(completed())]).await.unwrap(), [false]);
    assert_eq!(stage.get(first.entry.id).await, second.timer.clone().unwrap());
    stage.settle(&second, completed()).await;
}

pub async fn a_batch_of_settlements_is_answered_one_by_one_in_its_order(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let drafts = (0..60).map(|n| timer("http://a.example/").numbered(n * 7_919 % 60));
    let timers = stage.create_new(drafts.collect()).await;
    let mut batch = Vec::new();
    let mut expected = Vec::new();
    for (n, timer) in timers.iter().enumerate() {
        let claimed = stage.claim_one(timer).await;
        let settlement = claimed.settle(every_next()[n % 4].clone());
        let counts = n % 3 != 0;
        let token = if counts { settlement.token } else { ClaimToken(settlement.token.0 + 1_000) };
        batch.push(Settlement { token, ..settlement });
        expected.push(counts);
    }
    assert_eq!(stage.store.settle(&batch).await.unwrap(), expected);
    for (settlement, counts) in batch.iter().zip(expected) {
        let status = stage.get(settlement.entry.id).await.status;
        let settled = match settlement.next {
            Next::Completed { .. } => Status::Completed,
            Next::Failed { .. } | Next::GivenUp { .. } => Status::Failed,
            Next::Expired { .. } => Status::Expired,
            Next::Pending { .. } | Next::Again { .. } => Status::Pending,
        };
        assert_eq!(status, if counts { settled } else { Status::Executing });
    }
}

pub async fn a_thousand_timers_are_settled_at_once(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timers = stage.create_new((0..1_000).map(|n| timer("http://a.example/").numbered(n)).collect()).await;
    let claimed = stage.claim(&timers.iter().map(entry).collect::<Vec<_>>()).await;
    let batch: Vec<_> = claimed.iter().zip(0..).map(|(claimed, n)| claimed.settle(every_next()[n % 4].clone())).collect();
    assert_eq!(stage.store.settle(&batch).await.unwrap(), vec![true; 1_000]);
    for (status, count) in [(Status::Completed, 250), (Status::Failed, 250), (Status::Pending, 500), (Status::Executing, 0)] {
        let filter = store::Filter { status: vec![status], ..store::Filter::default() };
        assert_eq!(stage.store.count(&filter, store::SEARCH_BUDGET).await.unwrap(), count, "{status}");
    }
    assert_eq!(stage.due(ahead(secs(600))).await.len(), 500);
}

pub(crate) fn every_next() -> [Next; 4] {
    [
        completed(),
        Next::Failed { at: NOW, error: "HTTP 500".to_owned() },
        Next::Pending { at: ahead(secs(200)), attempt: 1, error: Some("HTTP 503".to_owned()) },
        Next::Again { at: ahead(secs(100)) },
    ]
}
