//! What is settled, against a receiver on the loopback interface.

use std::{net::SocketAddr, sync::Arc};

use delivery::{Config, Deliverer, NamespaceRules, Outcome, Shortage};
use domain::{
    AttemptLog, Callback, Clock, Definition, Delivery, Expiry, ManualClock, Namespace, NewTimer, OnConflict, Options,
    RequestedTime, Span, TimerId, Timestamp,
};
use metrics_exporter_prometheus::PrometheusBuilder;
use scheduler::Scheduler;
use store::{Epoch, Operation, ShardLease, Store, TimerStore};
use store_testing::{Fault, Faulty, Model};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;
use crate::PipelineMetrics;

/// Answers every call with this status and `out of stock`.
async fn receiver(status: u16) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let answer = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: 12\r\n\r\nout of stock");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    address
}

fn timer(receiver: SocketAddr, now: Timestamp) -> NewTimer {
    let definition = Definition {
        id: TimerId::random(now),
        namespace: Namespace::default(),
        key: None,
        asked: RequestedTime::At(now),
        callback: Callback::from_json(&format!(r#"{{"type":"http","url":"http://{receiver}/"}}"#)).unwrap(),
        metadata: None,
        correlation_id: None,
        retry_policy: None,
        delivery: Delivery::AtLeastOnce,
        group: None,
        options: Options::default(),
    };
    NewTimer { definition, execute_at: now, on_conflict: OnConflict::Reject, created_at: now }
}

/// A pipeline with one timer in its store, due one minute ago, and its claim.
async fn claimed(status: u16, config: Config) -> (Pipeline, Claimed) {
    let (pipeline, claimed, _) = claimed_and_store(status, config).await;
    (pipeline, claimed)
}

/// The same, with the store.
async fn claimed_and_store(status: u16, config: Config) -> (Pipeline, Claimed, Arc<dyn Store>) {
    let due = Timestamp::parse("due", "2030-01-31T12:00:00Z").unwrap();
    let manual = Arc::new(ManualClock::at(due.saturating_add(Span::from_secs(60))));
    let clock: Arc<dyn Clock> = manual;
    let store: Arc<dyn Store> = Arc::new(Model::new(Arc::clone(&clock), 1));
    store.create(vec![timer(receiver(status).await, due)]).await.unwrap();
    let scheduler = Arc::new(Scheduler::new(Arc::clone(&store), Arc::clone(&clock), scheduler::Config::default()));
    scheduler.beat_once().await.unwrap();
    while scheduler.load_once().await.unwrap() {}
    let mut claimed = scheduler.claim_once().await.unwrap().claimed;
    let namespaces = Arc::clone(&config.namespaces);
    let deliverer = Arc::new(Deliverer::new(config, Arc::clone(&clock)).unwrap());
    let pipeline = Pipeline {
        scheduler,
        deliverer,
        store: store.clone(),
        timers: store.clone(),
        health: store.clone(),
        clock,
        overdue_window: None,
        retry_interval_min: Span::ZERO,
        namespaces,
        timer_page: None,
        metrics: PipelineMetrics::default(),
        heartbeats: crate::Heartbeats::default(),
    };
    (pipeline, claimed.pop().unwrap(), store)
}

fn remembering(attempt_log: AttemptLog) -> Config {
    Config { attempt_log, node: Some("host-1:8080".to_owned()), ..Config::default() }
}

#[tokio::test]
async fn the_store_keeps_what_is_to_be_remembered_of_a_call() {
    for (status, attempt_log, kept) in [
        (503, AttemptLog::Failures, Some("status_5xx")),
        (503, AttemptLog::Everything, Some("status_5xx")),
        (503, AttemptLog::Nothing, None),
        (200, AttemptLog::Failures, None),
        (200, AttemptLog::Everything, Some("delivered")),
    ] {
        let (pipeline, claimed, store) = claimed_and_store(status, remembering(attempt_log)).await;
        let id = claimed.entry.id;
        let settlement = pipeline.deliver(claimed, &CancellationToken::new()).await;
        assert_eq!(pipeline.store.settle(&[settlement]).await.unwrap(), [true]);
        let attempts = store.attempts(id).await.unwrap();
        let expected = kept.map(|outcome| Attempt {
            number: 1,
            started_at: pipeline.clock.now(),
            took: Span::ZERO,
            outcome: outcome.to_owned(),
            status: Some(status),
            detail: Some("out of stock".to_owned()),
            node: Some("host-1:8080".to_owned()),
            answer: None,
        });
        assert_eq!(attempts, expected.into_iter().collect::<Vec<_>>(), "{status} {attempt_log:?}");
    }
}

#[tokio::test]
async fn where_no_call_was_made_nothing_is_remembered() {
    let (pipeline, lost) = claimed(503, remembering(AttemptLog::Everything)).await;
    let shard_lease = ShardLease { epoch: Epoch(lost.shard_lease.epoch.0 + 1), ..lost.shard_lease };
    let settlement = pipeline.deliver(Claimed { shard_lease, ..lost }, &CancellationToken::new()).await;
    assert!(matches!(settlement.next, Next::Pending { attempt: 0, .. }), "{settlement:?}");
    assert_eq!(settlement.attempt, None);

    let (pipeline, mut early) = claimed(503, remembering(AttemptLog::Everything)).await;
    early.entry.at = pipeline.clock.now().saturating_add(Span::from_micros(1));
    let due = early.entry.at;
    let settlement = pipeline.deliver(early, &CancellationToken::new()).await;
    assert_eq!(settlement.next, Next::Pending { at: due, attempt: 0, error: None }, "the clock was set back");
    assert_eq!(settlement.attempt, None);

    let (pipeline, late) = claimed(503, remembering(AttemptLog::Everything)).await;
    let pipeline = Pipeline { overdue_window: Some(Span::from_secs(59)), ..pipeline };
    let settlement = pipeline.deliver(late, &CancellationToken::new()).await;
    assert!(
        matches!(&settlement.next, Next::Expired { error, is_called: false, .. } if error.starts_with("overdue")),
        "{settlement:?}"
    );
    assert_eq!(settlement.attempt, None);
}

#[tokio::test]
async fn no_attempt_starts_at_or_after_the_expiry() {
    // The claim was made a minute after the due time.
    for (after, window, expected) in [
        (Some(61), None, "failed"),
        (Some(60), None, "expired"),
        // An expiry of its own counts instead of the one that the operator gave.
        (Some(61), Some(1), "failed"),
        (Some(60), Some(3600), "expired"),
        (None, Some(1), "expired"),
        (None, None, "failed"),
    ] {
        let (pipeline, mut claimed) = claimed(503, Config::default()).await;
        let pipeline = Pipeline { overdue_window: window.map(Span::from_secs), ..pipeline };
        if let Ok(timer) = &mut claimed.timer {
            timer.definition.options.expiry = after.map(|seconds| Expiry::After(Span::from_secs(seconds)));
        }
        let settlement = pipeline.deliver(claimed, &CancellationToken::new()).await;
        let ended = match settlement.next {
            Next::Failed { .. } => "failed",
            Next::Expired { is_called: false, .. } => "expired",
            other => panic!("{other:?}"),
        };
        assert_eq!(ended, expected, "{after:?} {window:?}");
    }
}

#[tokio::test]
async fn what_its_client_let_expire_ends_without_a_call() {
    let (pipeline, mut claimed) = claimed(200, Config::default()).await;
    if let Ok(timer) = &mut claimed.timer {
        timer.last_error = Some(store::EXPIRED_BY_CLIENT.to_owned());
    }
    let settlement = pipeline.deliver(claimed, &CancellationToken::new()).await;
    let error = store::EXPIRED_BY_CLIENT.to_owned();
    assert_eq!(settlement.next, Next::Expired { at: pipeline.clock.now(), error, is_called: false });
}

#[tokio::test]
async fn what_its_caller_wants_tried_again_is_not_overdue() {
    let (pipeline, claimed, store) = claimed_and_store(503, Config::default()).await;
    let pipeline = Pipeline { overdue_window: Some(Span::from_secs(59)), ..pipeline };
    let entry = claimed.entry;
    let settlement = pipeline.deliver(claimed, &CancellationToken::new()).await;
    assert_eq!(pipeline.store.settle(std::slice::from_ref(&settlement)).await.unwrap(), [true]);
    pipeline.scheduler.settled(&[settlement]);

    let now = pipeline.clock.now();
    store.reopen(entry.id, None, now).await.unwrap();
    pipeline.scheduler.nudge(&[store::DueEntry { at: now, ..entry }]);
    let mut reopened = pipeline.scheduler.claim_once().await.unwrap().claimed;
    let settlement = pipeline.deliver(reopened.pop().expect("the timer again"), &CancellationToken::new()).await;
    assert!(matches!(&settlement.next, Next::Failed { error, .. } if error.starts_with("answered 503")), "{settlement:?}");
}

#[tokio::test]
async fn a_timer_without_a_policy_is_tried_again_as_its_namespace_says() {
    for (namespace, is_tried_again) in [("default", true), ("other", false)] {
        let rules = format!(r#"{{"{namespace}": {{"retry_policy": {{"max_retries": 1}}}}}}"#);
        let namespaces = Arc::new(NamespaceRules::parse(&rules).unwrap());
        let (pipeline, claimed) = claimed(503, Config { namespaces, ..Config::default() }).await;
        let settlement = pipeline.deliver(claimed, &CancellationToken::new()).await;
        assert_eq!(matches!(settlement.next, Next::Pending { attempt: 1, .. }), is_tried_again, "{settlement:?}");
        assert!(settlement.attempt.is_some());
    }
}

/// Makes no call, and says so.
struct Ending(Outcome);

impl Deliver for Ending {
    type Prepared = ();

    async fn prepare(&self, _: &Timer) {}

    async fn attempt(&self, _: &Timer, _: u32, (): ()) -> Attempted {
        Attempted { outcome: self.0.clone(), record: None, trace: None }
    }
}

#[tokio::test]
async fn a_call_that_was_not_made_is_counted_neither_as_fired_nor_as_a_retry() {
    let failed = || delivery::Failure::new(delivery::FailureKind::Refused, "refused").into();
    for (outcome, fired, retries) in
        [(Outcome::Delivered, 1, 0), (failed(), 1, 1), (Outcome::NotAttempted { reason: Shortage::Descriptors }, 0, 0)]
    {
        let namespaces = Arc::new(NamespaceRules::parse(r#"{"default": {"retry_policy": {"max_retries": 3}}}"#).unwrap());
        let (pipeline, mut claimed) = claimed(200, Config { namespaces, ..Config::default() }).await;
        claimed.attempt = 2;
        claimed.timer.as_mut().unwrap().last_error = Some("answered 503".to_owned());
        let recorder = PrometheusBuilder::new().build_recorder();
        let pipeline = Pipeline {
            deliverer: Arc::new(Ending(outcome.clone())),
            metrics: metrics::with_local_recorder(&recorder, PipelineMetrics::default),
            scheduler: pipeline.scheduler,
            store: pipeline.store,
            timers: pipeline.timers,
            health: pipeline.health,
            clock: pipeline.clock,
            overdue_window: pipeline.overdue_window,
            retry_interval_min: pipeline.retry_interval_min,
            namespaces: pipeline.namespaces,
            timer_page: pipeline.timer_page,
            heartbeats: pipeline.heartbeats,
        };
        let settlement = pipeline.deliver(claimed, &CancellationToken::new()).await;
        pipeline.record(vec![settlement]).await;
        let shown = recorder.handle().render();
        for (metric, count) in
            [("timer_fired_total", fired), ("timer_lateness_seconds_count", fired), ("timer_retries_total", retries)]
        {
            let line = format!("{metric} {count}");
            assert!(shown.lines().any(|shown| shown == line), "{outcome:?}: {line} in {shown}");
        }
    }
}

#[tokio::test]
async fn results_that_a_store_refuses_while_it_takes_other_writes_are_split() {
    for (is_away, calls) in [(false, 12), (true, 13)] {
        let (mut pipeline, claimed, store) = claimed_and_store(200, Config::default()).await;
        let store = Arc::new(Faulty::new(store));
        (pipeline.store, pipeline.health) = (store.clone(), store.clone());
        let settlement = pipeline.deliver(claimed, &CancellationToken::new()).await;
        tokio::time::pause();
        (0..10).for_each(|_| store.plan(Operation::Settle, Fault::NotDone));
        if is_away {
            store.plan(Operation::Ping, Fault::NotDone);
            store.plan(Operation::Settle, Fault::NotDone);
        }
        let answered = pipeline.settle_until_answered(&[settlement.clone(), settlement]).await;
        tokio::time::resume();
        assert_eq!((answered.counted, answered.set_aside), (vec![true, false], 0));
        assert_eq!(store.calls(Operation::Settle), calls, "is away: {is_away}");
    }
}

#[tokio::test]
async fn a_result_is_rather_recorded_without_its_attempt_than_set_aside() {
    for (faults, set_aside) in [(3, 0), (4, 1)] {
        let (mut pipeline, claimed, store) = claimed_and_store(200, remembering(AttemptLog::Everything)).await;
        let store = Arc::new(Faulty::new(store));
        (pipeline.store, pipeline.health) = (store.clone(), store.clone());
        let settlement = pipeline.deliver(claimed, &CancellationToken::new()).await;
        let id = settlement.entry.id;
        tokio::time::pause();
        (0..faults).for_each(|_| store.plan(Operation::Settle, Fault::Corrupt));
        let answered = pipeline.settle_until_answered(&[settlement]).await;
        tokio::time::resume();
        assert_eq!((answered.counted, answered.set_aside), (vec![set_aside == 0], set_aside));
        assert_eq!(store.attempts(id).await.unwrap(), []);
    }
}

#[tokio::test]
async fn the_end_of_a_timer_is_told_once_however_often_it_is_met() {
    let (pipeline, mut claimed, store) = claimed_and_store(503, Config::default()).await;
    let told = Callback::from_json(r#"{"type":"http","url":"http://127.0.0.1:9/told","payload":7}"#).unwrap();
    if let Ok(timer) = &mut claimed.timer {
        timer.definition.options.on_failure = Some(Box::new(told));
    }
    let id = claimed.entry.id;
    // As if the node had died each time before the end was recorded.
    for _ in 0..3 {
        let settlement = pipeline.deliver(claimed.clone(), &CancellationToken::new()).await;
        assert!(matches!(settlement.next, Next::Failed { .. }), "{settlement:?}");
        assert_eq!(store.count(&store::Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 2);
    }
    let revision = claimed.timer.unwrap().revision;
    let follow_up = store.get(TimerId::following(id, revision, "on_failure")).await.unwrap().expect("the follow-up");
    let payload = follow_up.definition.callback.payload().unwrap().as_str().to_owned();
    assert!(payload.contains(&format!(r#""id":"{id}""#)) && payload.contains(r#""status":"failed""#), "{payload}");
    assert!(payload.contains("answered 503") && payload.ends_with(r#""payload":7}"#), "{payload}");
}

#[tokio::test]
async fn a_follow_up_that_waits_for_the_store_holds_no_permit_and_is_due_when_it_is_stored() {
    let (mut pipeline, mut claimed, store) = claimed_and_store(200, Config::default()).await;
    if let Ok(timer) = &mut claimed.timer {
        let told = Callback::from_json(r#"{"type":"http","url":"http://127.0.0.1:9/told"}"#).unwrap();
        timer.definition.options.on_success = Some(Box::new(told));
    }
    let id = TimerId::following(claimed.entry.id, claimed.timer.as_ref().unwrap().revision, "on_success");
    let faulty = Arc::new(Faulty::new(store));
    pipeline.timers = faulty.clone();
    faulty.set_down(true);
    let scheduler = Arc::clone(&pipeline.scheduler);
    assert_eq!(scheduler.in_flight(), 1);
    let pipeline = Arc::new(pipeline);
    let delivering = tokio::spawn({
        let pipeline = Arc::clone(&pipeline);
        async move { pipeline.deliver(claimed, &CancellationToken::new()).await }
    });
    while faulty.calls(Operation::Create) < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(scheduler.in_flight(), 0);
    faulty.set_down(false);
    let settlement = delivering.await.unwrap();
    let follow_up = faulty.get(id).await.unwrap().expect("the follow-up");
    assert_eq!((follow_up.execute_at, follow_up.created_at), (pipeline.clock.now(), pipeline.clock.now()));
    assert!(matches!(settlement.next, Next::Completed { .. }), "{settlement:?}");
}
