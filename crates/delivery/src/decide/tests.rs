use domain::Expiry;
use store::{ClaimToken, DueEntry, Epoch, ShardLease};

use super::*;
use crate::{FailureKind, Shortage, timers};

const MIDDLE: f64 = 0.5;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

fn failed(retry_after: Option<u32>) -> Outcome {
    Outcome::Failed(Failure {
        kind: FailureKind::Status(503),
        message: "answered 503".to_owned(),
        retry_after: retry_after.map(Span::from_secs),
    })
}

/// Due at second 1000; tried after 10, 20, 40, then every 60 seconds.
fn timer(policy: Option<RetryPolicy>) -> Timer {
    let mut timer = timers::http("http://127.0.0.1/", "");
    timer.definition.retry_policy = policy;
    timer.execute_at = at(1000);
    timer.updated_at = at(0);
    timer
}

fn policy(max_retries: u32, max_duration: Option<u32>) -> RetryPolicy {
    RetryPolicy {
        max_retries,
        initial_interval: Span::from_secs(10),
        backoff_multiplier: 2.0,
        max_interval: Span::from_secs(60),
        max_duration: max_duration.map(Span::from_secs),
    }
}

/// Where no namespace has rules of its own, and nothing keeps attempts apart.
fn decide(outcome: Outcome, timer: &Timer, attempt: u32, now: Timestamp, jitter: f64) -> Next {
    super::decide(outcome, timer, &NamespaceRules::default(), Span::ZERO, attempt, now, jitter)
}

fn recover(claimed: &Claimed, now: Timestamp) -> Next {
    super::recover(claimed, &NamespaceRules::default(), now)
}

#[test]
fn each_outcome_has_its_consequence() {
    let again = |at| Next::Again { at };
    let pending = |seconds, attempt| Next::Pending { at: at(seconds), attempt, error: Some("answered 503".to_owned()) };
    let over = |error: &str| Next::Failed { at: at(2000), error: error.to_owned() };
    let late = "answered 503; gave up after 2 attempts: the next would come later than max_duration 16m59s allows";
    let table = [
        (Outcome::Delivered, None, 1, Next::Completed { at: at(2000) }),
        (Outcome::Delivered, Some(policy(3, None)), 4, Next::Completed { at: at(2000) }),
        (Outcome::Rescheduled { at: at(3000) }, None, 1, again(at(3000))),
        (Outcome::Rescheduled { at: at(2001) }, None, 1, again(at(2001))),
        // A receiver that names no future is not called in a circle.
        (Outcome::Rescheduled { at: at(2000) }, None, 1, again(at(2001))),
        (Outcome::Rescheduled { at: at(500) }, None, 1, again(at(2001))),
        (failed(None), None, 1, over("answered 503")),
        (failed(Some(5)), None, 1, over("answered 503")),
        (failed(None), Some(policy(0, None)), 1, over("answered 503; gave up after 1 attempt")),
        (failed(None), Some(policy(3, None)), 1, pending(2010, 1)),
        (failed(None), Some(policy(3, None)), 2, pending(2020, 2)),
        (failed(None), Some(policy(3, None)), 3, pending(2040, 3)),
        (failed(None), Some(policy(3, None)), 4, over("answered 503; gave up after 4 attempts")),
        (failed(None), Some(policy(1000, None)), 900, pending(2060, 900)),
        // The receiver may ask for more time, up to the longest interval; never for less.
        (failed(Some(30)), Some(policy(3, None)), 1, pending(2030, 1)),
        (failed(Some(5)), Some(policy(3, None)), 1, pending(2010, 1)),
        (failed(Some(86_400)), Some(policy(3, None)), 1, pending(2060, 1)),
        // 2020 is 1020 seconds after the timer was due.
        (failed(None), Some(policy(3, Some(1020))), 2, pending(2020, 2)),
        (failed(None), Some(policy(3, Some(1019))), 2, over(late)),
    ];
    for (outcome, policy, attempt, next) in table {
        assert_eq!(decide(outcome.clone(), &timer(policy), attempt, at(2000), MIDDLE), next, "{outcome:?} {policy:?} {attempt}");
    }
}

#[test]
fn what_this_machine_could_not_send_is_not_counted_whatever_the_policy_says() {
    for (policy, delivery, attempt) in [
        (None, Delivery::AtLeastOnce, 1),
        (None, Delivery::AtMostOnce, 1),
        (Some(policy(0, None)), Delivery::AtMostOnce, 1),
        (Some(policy(3, Some(1))), Delivery::AtLeastOnce, 4),
    ] {
        let mut timer = timer(policy);
        timer.definition.delivery = delivery;
        timer.last_error = Some("answered 503".to_owned());
        for (jitter, micros) in [(0.0, 500_000), (0.5, 1_000_000), (1.0, 1_500_000)] {
            let outcome = Outcome::NotAttempted { reason: Shortage::Descriptors };
            let again = at(2000).saturating_add(Span::from_micros_clamped(micros));
            let pending = Next::Pending { at: again, attempt: attempt - 1, error: timer.last_error.clone() };
            assert_eq!(decide(outcome, &timer, attempt, at(2000), jitter), pending, "{policy:?} {delivery:?} {attempt}");
        }
    }
}

#[test]
fn what_a_caller_has_tried_again_has_all_its_time_again() {
    let mut timer = timer(Some(policy(3, Some(60))));
    assert!(matches!(decide(failed(None), &timer, 1, at(2000), MIDDLE), Next::Failed { .. }));
    timer.updated_at = at(1999);
    assert!(matches!(decide(failed(None), &timer, 1, at(2000), MIDDLE), Next::Pending { .. }));
}

#[test]
fn no_attempt_starts_sooner_after_another_than_is_allowed() {
    let after = |outcome, interval_millis, floor_millis, jitter| {
        let initial_interval = Span::from_millis(interval_millis);
        let timer = timer(Some(RetryPolicy { initial_interval, ..policy(3, None) }));
        let floor = Span::from_millis(floor_millis);
        match super::decide(outcome, &timer, &NamespaceRules::default(), floor, 1, at(2000), jitter) {
            Next::Pending { at: next, .. } | Next::Again { at: next } => next.since(at(2000)).as_micros() / 1000,
            other => panic!("{other:?}"),
        }
    };
    for (interval_millis, floor_millis, jitter, wait_millis) in [
        (1, 1000, 0.0, 1000),
        // Timers that failed together do not come together, and none comes sooner.
        (1, 1000, 0.5, 1050),
        (1000, 1000, 0.0, 1000),
        (1000, 1000, 1.0, 1100),
        (2000, 1000, 0.5, 2000),
        (200, 0, 0.5, 200),
        (1, 5000, 0.0, 5000),
    ] {
        assert_eq!(after(failed(None), interval_millis, floor_millis, jitter), wait_millis, "{interval_millis} {floor_millis}");
        assert_eq!(after(failed(Some(0)), interval_millis, floor_millis, jitter), wait_millis, "Retry-After: 0");
    }
    // A receiver that wants to be called again waits for a second in any case.
    for (floor_millis, wait_millis) in [(0, 1000), (500, 1000), (5000, 5000)] {
        assert_eq!(after(Outcome::Rescheduled { at: at(1) }, 1, floor_millis, MIDDLE), wait_millis, "{floor_millis}");
    }
    // A retry that would come too late because of it does not come.
    let timer = timer(Some(RetryPolicy { initial_interval: Span::from_millis(1), ..policy(3, Some(1000)) }));
    let given_up = super::decide(failed(None), &timer, &NamespaceRules::default(), Span::from_secs(1), 1, at(2000), MIDDLE);
    assert!(matches!(given_up, Next::Failed { .. }), "{given_up:?}");
}

#[test]
fn chance_moves_a_retry_by_a_tenth_at_most() {
    let timer = timer(Some(policy(3, None)));
    for (jitter, micros) in [(0.0, 9_000_000), (0.25, 9_500_000), (0.5, 10_000_000), (1.0, 11_000_000), (7.0, 11_000_000)] {
        let Next::Pending { at: again, .. } = decide(failed(None), &timer, 1, at(2000), jitter) else { panic!() };
        assert_eq!(again.since(at(2000)).as_micros(), micros, "{jitter}");
    }
}

#[test]
fn a_long_error_is_cut_between_characters_and_keeps_its_ending() {
    let long = Outcome::Failed(Failure::new(FailureKind::Tls, "é".repeat(5000)));
    for (policy, ending) in [(None, "é"), (Some(policy(0, None)), "; gave up after 1 attempt")] {
        let Next::Failed { error, .. } = decide(long.clone(), &timer(policy), 1, at(2000), MIDDLE) else { panic!() };
        assert_eq!(error.chars().count(), limits::LAST_ERROR_CHARS_MAX);
        assert!(error.starts_with("éé") && error.ends_with(ending));
    }
}

/// Left behind by its node in an attempt that was due at second 1007.
fn claimed(attempt: u32, timer: Result<Timer, Unreadable>) -> Claimed {
    let template = timers::http("http://127.0.0.1/", "");
    let id = template.id();
    Claimed {
        entry: DueEntry { at: at(1007), id, destination: template.definition.destination() },
        shard_lease: ShardLease { shard: id.shard(1), epoch: Epoch(1) },
        token: ClaimToken(1),
        attempt,
        timer,
    }
}

#[test]
fn a_dead_nodes_call_is_made_again_unless_it_must_not_be() {
    let Next::Pending { at: same, attempt: 3, error: Some(reason) } = recover(&claimed(3, Ok(timer(None))), at(2000)) else {
        panic!()
    };
    assert_eq!((same, reason.contains("attempt 3")), (at(1007), true));

    let mut once = timer(Some(policy(10, None)));
    once.definition.delivery = Delivery::AtMostOnce;
    let Next::Failed { at: now, error } = recover(&claimed(3, Ok(once)), at(2000)) else { panic!() };
    assert_eq!((now, error.contains("at_most_once")), (at(2000), true));

    let broken = recover(&claimed(3, Err(Unreadable("callback.url is required".to_owned()))), at(2000));
    let error = "the stored timer cannot be read: callback.url is required".to_owned();
    assert_eq!(broken, Next::GivenUp { at: at(2000), error });
}

#[test]
fn a_call_that_takes_its_node_down_again_and_again_is_given_up() {
    for (policy, attempt, is_made_again) in [
        (None, 1, true),
        (None, 100, true),
        (None, 101, false),
        (None, u32::MAX, false),
        // What the policy allows comes on top: those attempts may have had results.
        (Some(policy(3, None)), 103, true),
        (Some(policy(3, None)), 104, false),
        (Some(policy(1000, None)), 1100, true),
        (Some(policy(1000, None)), 1101, false),
    ] {
        match recover(&claimed(attempt, Ok(timer(policy))), at(2000)) {
            Next::Pending { .. } => assert!(is_made_again, "{policy:?} {attempt}"),
            Next::Failed { at: now, error } => {
                let expected = format!(
                    "the node of attempt {attempt} stopped before its result was recorded; gave up: that is more than 100 attempts beyond the retry policy"
                );
                assert_eq!((is_made_again, now, error), (false, at(2000), expected), "{policy:?} {attempt}");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// An event of a timer that was due at second 1000.
fn event(policy: Option<RetryPolicy>) -> Timer {
    let mut timer = timers::event();
    timer.definition.retry_policy = policy;
    timer.execute_at = at(1000);
    timer.updated_at = at(0);
    timer
}

#[test]
fn an_event_is_tried_for_ever() {
    let years_later = at(1000 + 10 * 365 * 86_400);
    for (attempt, wait_millis) in [
        (1, 500),
        (2, 1000),
        (3, 2000),
        (5, 8000),
        (6, 15_000),
        (1000, 15_000),
        (1101, 15_000),
        (u32::MAX - 1, 15_000),
        (u32::MAX, 15_000),
    ] {
        for now in [at(1000), years_later] {
            let Next::Pending { at, attempt: counted, error: Some(_) } = decide(failed(None), &event(None), attempt, now, MIDDLE)
            else {
                panic!("{attempt} is given up")
            };
            assert_eq!((at.since(now).as_micros(), counted), (wait_millis * 1000, attempt));
        }
    }
    // Unless the policy says otherwise.
    let given_up = decide(failed(None), &event(Some(policy(3, None))), 4, at(2000), MIDDLE);
    assert!(matches!(given_up, Next::Failed { .. }), "{given_up:?}");
}

#[test]
fn an_event_whose_node_died_is_announced_again_whatever_the_number() {
    for attempt in [1, 100, 101, 1101, u32::MAX - 1, u32::MAX] {
        let next = recover(&claimed(attempt, Ok(event(None))), at(2000));
        assert!(
            matches!(next, Next::Pending { at: same, attempt: counted, .. } if (same, counted) == (at(1007), attempt)),
            "{next:?}"
        );
    }
}

#[test]
fn a_namespace_gives_its_policy_to_timers_that_have_none() {
    let rules = r#"{"default": {"retry_policy": {"max_retries": 2, "initial_interval": "5s"}}}"#;
    let rules = NamespaceRules::parse(rules).unwrap();
    // The last attempt that is followed by another, when its result is known and when its node died.
    for (policy, last_retried, wait, last_recovered) in [(None, 2, 10, 102), (Some(policy(3, None)), 3, 40, 103)] {
        let after = |attempt| super::decide(failed(None), &timer(policy), &rules, Span::ZERO, attempt, at(2000), MIDDLE);
        assert!(matches!(after(last_retried), Next::Pending { at: again, .. } if again == at(2000 + wait)), "{policy:?}");
        assert!(matches!(after(last_retried + 1), Next::Failed { .. }), "{policy:?}");
        let recovered = |attempt| super::recover(&claimed(attempt, Ok(timer(policy))), &rules, at(2000));
        assert!(matches!(recovered(last_recovered), Next::Pending { .. }), "{policy:?}");
        assert!(matches!(recovered(last_recovered + 1), Next::Failed { .. }), "{policy:?}");
    }
}

#[test]
fn what_would_be_tried_at_or_after_its_expiry_has_expired() {
    let expiring = |expiry| {
        let mut timer = timer(Some(policy(3, None)));
        timer.definition.options.expiry = Some(expiry);
        timer
    };
    let retry = |seconds| Next::Pending { at: at(seconds), attempt: 1, error: Some("answered 503".to_owned()) };
    let expired = |error: &str, is_called| Next::Expired { at: at(2000), error: error.to_owned(), is_called };
    let because = "answered 503; expired: no attempt starts after expires_at 1970-01-01T00:33:30Z";
    for (outcome, expiry, expected) in [
        // The first retry comes ten seconds after the attempt.
        (failed(None), Expiry::At(at(2011)), retry(2010)),
        (failed(None), Expiry::At(at(2010)), expired(because, true)),
        (failed(None), Expiry::After(Span::from_secs(1011)), retry(2010)),
        (failed(None), Expiry::After(Span::from_secs(1010)), expired(because, true)),
        (Outcome::Delivered, Expiry::At(at(1)), Next::Completed { at: at(2000) }),
        // An instant stands; a span moves with the due time that the receiver asks for.
        (
            Outcome::Rescheduled { at: at(3000) },
            Expiry::At(at(3000)),
            expired(
                "the receiver asked to be called again at 1970-01-01T00:50:00Z; expired: no attempt starts after expires_at \
                 1970-01-01T00:50:00Z",
                true,
            ),
        ),
        (Outcome::Rescheduled { at: at(3000) }, Expiry::After(Span::from_secs(1)), Next::Again { at: at(3000) }),
    ] {
        assert_eq!(decide(outcome, &expiring(expiry), 1, at(2000), MIDDLE), expected, "{expiry:?}");
    }
    let lost = claimed(1, Ok(expiring(Expiry::At(at(2000)))));
    let recovered = recover(&lost, at(2000));
    assert!(matches!(&recovered, Next::Expired { error, is_called: true, .. } if error.contains("stopped")), "{recovered:?}");
    assert!(matches!(recover(&lost, at(1999)), Next::Pending { .. }));
}

#[test]
fn what_its_client_let_expire_is_not_called_after_a_crash_either() {
    for (delivery, error) in
        [(Delivery::AtLeastOnce, store::EXPIRED_BY_CLIENT), (Delivery::AtMostOnce, store::MISSED_WHILE_PAUSED)]
    {
        let mut let_expire = timer(Some(policy(3, None)));
        let_expire.definition.delivery = delivery;
        let_expire.last_error = Some(error.to_owned());
        let expected = Next::Expired { at: at(2000), error: error.to_owned(), is_called: false };
        assert_eq!(recover(&claimed(2, Ok(let_expire)), at(2000)), expected);
    }
}
