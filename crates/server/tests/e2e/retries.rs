//! Calls that fail some times and then work, in every way in which a call can fail; and calls that never work.
//!
//! ```text
//!   attempt 1 ✗ ── 1 s ── 2 ✗ ──── 2 s ──── 3 ✗ ──────── 4 s ──────── 4 ✓     (each ± 10 %)
//!                                ↑ kill -9, somewhere between two attempts of every timer
//! ```

mod kinds;

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::rig::{
    Absent, Act, Backend, Call, Client, Exchange, Scripted, Service, beside_others, callback_to, eventually, for_each_store,
    instant, micros, now, tolerated,
};
use kinds::{Api, KINDS, Kind, success, timeout_of};

/// How often every call fails before it works.
const FAILURES: usize = 3;
const INITIAL_MICROS: i64 = 1_000_000;
const MULTIPLIER: i64 = 2;
/// So that all are registered when the first is due.
const LEAD_MICROS: i64 = 3_000_000;
/// What a busy machine may add to a waiting time. Nothing may take anything away from one.
const NOISE_MICROS: i64 = 750_000;
/// A claim cannot have been made so long before its time.
const MARGIN_MICROS: i64 = 30_000;
/// Five seconds are promised: the lease of a dead owner's shard and the taking up. The rest is for a busy machine.
const TAKE_OVER_MICROS: i64 = 8_000_000;
const TIMEOUT: Duration = Duration::from_secs(30);

for_each_store!(
    what_fails_is_called_again_at_the_right_times_until_it_works_though_the_service_is_killed,
    a_spent_policy_leaves_a_failed_timer_with_the_last_reason_and_the_number_of_attempts,
);

/// A timer of one kind.
struct Stubborn {
    kind: &'static Kind,
    id: String,
}

/// One attempt, as far as it can be known from outside.
#[derive(Debug, Clone)]
struct Attempt {
    began: i64,
    ended: i64,
    /// For how long the receiver asked to be left alone.
    asked: i64,
}

/// When the service was killed, and when it was there again.
struct Gap {
    killed: i64,
    healthy: i64,
}

async fn what_fails_is_called_again_at_the_right_times_until_it_works_though_the_service_is_killed(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let receiver = Scripted::start(|call| if attempt(call) <= FAILURES { kind_of(call).fail() } else { success() });
    let absent = Absent::new();
    let at = now() + LEAD_MICROS;
    let initial = format!("{}ms", INITIAL_MICROS / 1_000);
    let policy = json!({"max_retries": 5, "initial_interval": initial, "backoff_multiplier": MULTIPLIER});
    let timers = register(&client, |kind| url_of(kind, &receiver, &absent), at, &policy).await;

    let behind = kill_between_attempts(&mut service, &timers, &receiver).await;
    let killed = now();
    let refused = timers.iter().position(|timer| timer.kind.fail.is_none()).expect("one that is refused");
    let (late, healthy) = if behind[refused] == FAILURES {
        let late = absent.appear(|_| success());
        service.start_again().await;
        (late, now())
    } else {
        service.start_again().await;
        let healthy = now();
        let id = &timers[refused].id;
        eventually("every refusal", TIMEOUT, async || (attempts(&client, id).await.len() == FAILURES).then_some(())).await;
        (absent.appear(|_| success()), healthy)
    };
    let gap = Gap { killed, healthy };
    client.wait_until_finished(TIMEOUT).await;

    let mut latest = 0;
    for timer in &timers {
        let exchanges = [receiver.exchanges(timer.kind.path), late.exchanges(timer.kind.path)].concat();
        latest = latest.max(check(&client, timer, &exchanges, at, &gap).await);
    }
    let (name, kinds, latest) = (backend.name(), KINDS.len(), latest as f64 / 1e3);
    println!("{name}: {kinds} kinds of failure, {FAILURES} times each: never early, at most {latest:.0} ms late");
    service.stop().await;
}

impl Kind {
    fn fail(&self) -> Act {
        self.fail.expect("one that is refused does not arrive")()
    }
}

fn kind_of(call: &Call) -> &'static Kind {
    KINDS.iter().find(|kind| kind.path == call.path).unwrap_or_else(|| panic!("a path of the table: {call:?}"))
}

fn attempt(call: &Call) -> usize {
    call.header("x-timer-attempt").parse().expect("a number of the attempt")
}

fn url_of(kind: &Kind, receiver: &Scripted, absent: &Absent) -> String {
    if kind.fail.is_some() { receiver.url(kind.path) } else { absent.url(kind.path) }
}

/// One timer of each kind, all due at the same time, under the same policy but for its longest interval.
async fn register(client: &Client, url: impl Fn(&Kind) -> String, at: i64, policy: &Value) -> Vec<Stubborn> {
    let one = async |kind: &'static Kind| {
        let mut policy = policy.clone();
        if policy.get("max_interval").is_none() {
            policy["max_interval"] = json!(kind.max_interval);
        }
        let id = match kind.api {
            Api::Native => native(client, &url(kind), at, &policy).await,
            Api::V1 => v1(client, kind, &url(kind), at, &policy).await,
        };
        Stubborn { kind, id }
    };
    let timers = join_all(KINDS.iter().map(one)).await;
    assert!(now() < at, "too slow to register all before the first is due");
    timers
}

async fn native(client: &Client, url: &str, at: i64, policy: &Value) -> String {
    let mut callback = callback_to(url, &json!({"n": 1}));
    callback["timeout"] = json!(timeout_of(url));
    client.create(&json!({"execute_at": instant(at), "retry_policy": policy, "callback": callback})).await
}

async fn v1(client: &Client, kind: &Kind, url: &str, at: i64, policy: &Value) -> String {
    let policy = json!({
        "maxRetries": policy["max_retries"],
        "initialInterval": policy["initial_interval"],
        "backoffMultiplier": policy["backoff_multiplier"],
        "maxInterval": policy["max_interval"],
    });
    let timer = json!({
        "id": kind.path, "groupId": "retries", "executeAt": instant(at), "callbackUrl": url,
        "payload": {"n": 1}, "callbackTimeout": timeout_of(url), "retryPolicy": policy,
    });
    let answer = client.try_send("POST", "/api/v1/timers", Some(timer.to_string())).await.expect("an answer");
    assert_eq!(answer.status, 200, "{timer}: {}", answer.text);
    let (namespace, key) = (domain::Namespace::parse("retries"), domain::Key::parse(kind.path));
    domain::TimerId::keyed(&namespace.expect("a namespace"), &key.expect("a key")).to_string()
}

/// What the service remembers of the attempts of a timer: those that failed.
async fn attempts(client: &Client, id: &str) -> Vec<Value> {
    let answer = client.get(&format!("/timers/{id}/attempts")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["data"]["attempts"].as_array().expect("a list").clone()
}

/// Kills the service at a moment at which every timer waits for its next attempt, and the first of them for its third at least.
/// The service is frozen first: what it did until then can be seen without it going on. How many attempts each has behind it.
async fn kill_between_attempts(service: &mut Service, timers: &[Stubborn], receiver: &Scripted) -> Vec<usize> {
    let client = service.client();
    let between = async |frozen: &Service| {
        let seen = join_all(timers.iter().map(async |timer| waiting(&client, timer).await)).await;
        let seen: Option<Vec<(usize, i64)>> = seen.into_iter().collect();
        let seen = seen.filter(|seen| seen[0].0 >= 2)?;
        frozen.signal("STOP");
        let is_between = timers.iter().zip(&seen).all(|(timer, (attempts, next))| {
            let arrived = if timer.kind.fail.is_some() { receiver.exchanges(timer.kind.path).len() } else { *attempts };
            arrived == *attempts && now() + MARGIN_MICROS < *next
        });
        if !is_between {
            frozen.signal("CONT");
        }
        is_between.then(|| seen.iter().map(|(attempts, _)| *attempts).collect())
    };
    let behind = eventually("a moment between the attempts of all timers", TIMEOUT, async || between(service).await).await;
    service.kill();
    behind
}

/// How many attempts a pending timer has behind it, if any, and when the next can come at the soonest.
async fn waiting(client: &Client, timer: &Stubborn) -> Option<(usize, i64)> {
    let (shown, failed) = tokio::join!(client.timer(&timer.id), attempts(client, &timer.id));
    assert_ne!(shown["status"], "completed", "{} ended before a moment for the kill was found", timer.kind.path);
    let number = failed.len();
    let is_waiting = number > 0 && shown["status"] == "pending" && shown["attempt"] == number;
    let (least, _) = wait_after(timer.kind, number, 0);
    is_waiting.then(|| (number, ended(&failed[number - 1]) + least))
}

/// When an attempt ended at the soonest, as the service remembers it.
fn ended(attempt: &Value) -> i64 {
    let began = micros(attempt["started_at"].as_str().unwrap_or_else(|| panic!("a start in {attempt}")));
    began + 1_000 * attempt["took_ms"].as_i64().unwrap_or_else(|| panic!("a duration in {attempt}"))
}

/// The least and the most that may lie between the end of the attempt with this number, whose receiver asked for a pause, and the
/// next.
fn wait_after(kind: &Kind, number: usize, asked: i64) -> (i64, i64) {
    let cap = if kind.max_interval == kinds::CAP.0 { kinds::CAP.1 } else { i64::MAX };
    let exponent = u32::try_from(number).expect("a small number").saturating_sub(1);
    let interval = (INITIAL_MICROS * MULTIPLIER.pow(exponent)).min(cap);
    let asked = asked.min(cap);
    ((interval - interval / 10).max(asked), (interval + interval / 10).max(asked))
}

/// Checks everything about one timer that has failed and then worked; by how much an attempt came late at the most.
async fn check(client: &Client, timer: &Stubborn, exchanges: &[Exchange], at: i64, gap: &Gap) -> i64 {
    let (kind, path) = (timer.kind, timer.kind.path);
    let shown = client.timer(&timer.id).await;
    assert_eq!((shown["status"].as_str(), shown["attempt"].as_u64()), (Some("completed"), Some(FAILURES as u64 + 1)), "{shown}");
    let failed = attempts(client, &timer.id).await;
    check_record(kind, &failed, FAILURES);

    let arrived = if kind.fail.is_some() { FAILURES + 1 } else { 1 };
    assert_eq!(exchanges.len(), arrived, "{path} {exchanges:#?}");
    for (exchange, number) in exchanges.iter().zip(FAILURES + 2 - arrived..) {
        let call = &exchange.call;
        assert_eq!(attempt(call), number, "{path} {call:?}");
        assert_eq!((call.header("x-timer-id"), micros(call.header("x-timer-scheduled-at"))), (timer.id.as_str(), at), "{path}");
        let webhook_id = exchanges[0].call.header("webhook-id");
        assert!(!webhook_id.is_empty() && call.header("webhook-id") == webhook_id, "{path} {call:?}");
        match kind.api {
            Api::Native => assert_eq!(call.json(), json!({"n": 1}), "{path}"),
            Api::V1 => {
                assert_eq!((&call.json()["payload"], &call.json()["attempt"]), (&json!({"n": 1}), &json!(number)), "{path}")
            }
        }
    }
    check_times(kind, &known_attempts(kind, &failed, exchanges), at, gap)
}

/// What the service remembers of the failures of one timer.
fn check_record(kind: &Kind, failed: &[Value], failures: usize) {
    let path = kind.path;
    assert_eq!(failed.len(), failures, "{path} {failed:#?}");
    for (attempt, number) in failed.iter().zip(1..) {
        let seen = (attempt["number"].as_u64(), attempt["outcome"].as_str(), attempt["status"].as_u64());
        assert_eq!(seen, (Some(number), Some(kind.outcome), kind.status.map(u64::from)), "{path} {attempt}");
        assert!(attempt["node"].as_str().is_some_and(|node| !node.is_empty()), "{path} {attempt}");
    }
}

/// The attempts as the receiver saw them. Only the service knows when it gave up waiting, and when it was refused.
fn known_attempts(kind: &Kind, failed: &[Value], exchanges: &[Exchange]) -> Vec<Attempt> {
    let remembered = failed.iter().map(|attempt| {
        let began = micros(attempt["started_at"].as_str().expect("checked before"));
        Attempt { began, ended: ended(attempt), asked: 0 }
    });
    let seen = exchanges.iter().zip(1..).map(|(exchange, number)| {
        let ended = match kind.outcome {
            "timeout" if number <= FAILURES => ended(&failed[number - 1]),
            _ => exchange.ended.expect("every call has ended"),
        };
        Attempt { began: exchange.call.arrived, ended, asked: asked(exchange.said.as_deref(), ended) }
    });
    if kind.fail.is_some() { seen.collect() } else { remembered.chain(seen).collect() }
}

/// For how long this answer asks to be left alone, from when it was given.
fn asked(said: Option<&str>, given: i64) -> i64 {
    let Some(value) = said.and_then(|said| said.lines().find_map(|line| line.strip_prefix("retry-after: "))) else { return 0 };
    let at_date = |text: &str| {
        let since = httpdate::parse_http_date(text).expect("a date").duration_since(std::time::UNIX_EPOCH);
        i64::try_from(since.expect("after 1970").as_micros()).expect("a time of our days") - given
    };
    value.parse::<i64>().map_or_else(|_| at_date(value), |seconds| seconds * 1_000_000)
}

/// None is early, and none later than the machine and the kill explain; by how much one was late without the kill.
fn check_times(kind: &Kind, attempts: &[Attempt], at: i64, gap: &Gap) -> i64 {
    assert!(attempts[0].began >= at, "{}: the first is early by {} µs", kind.path, at - attempts[0].began);
    let mut latest = 0;
    for (number, pair) in (1..).zip(attempts.windows(2)) {
        let (least, most) = wait_after(kind, number, pair[0].asked);
        let waited = pair[1].began - pair[0].ended;
        assert!(waited >= least, "{}: {waited} µs after attempt {number}, at least {least}: {attempts:#?}", kind.path);
        if pair[0].ended < gap.killed && gap.killed < pair[1].began {
            let limit = most.max(gap.healthy - pair[0].ended + TAKE_OVER_MICROS);
            assert!(waited <= limit + tolerated(NOISE_MICROS), "{}: {waited} µs after attempt {number} and a kill", kind.path);
        } else {
            assert!(
                waited <= most + tolerated(NOISE_MICROS),
                "{}: {waited} µs after attempt {number}, at most {most}",
                kind.path
            );
            latest = latest.max(waited - most);
        }
    }
    latest
}

async fn a_spent_policy_leaves_a_failed_timer_with_the_last_reason_and_the_number_of_attempts(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let receiver = Scripted::start(|call| match (call.path.as_str(), attempt(call)) {
        ("/changing", 1) => kinds::status("500 Internal Server Error", ""),
        ("/changing", 2) => Act::Reset,
        ("/changing", 3) => kinds::status("404 Not Found", ""),
        ("/hurried", _) => kinds::status("500 Internal Server Error", ""),
        _ => kind_of(call).fail(),
    });
    let absent = Absent::new();
    let at = now() + LEAD_MICROS;
    let policy = json!({"max_retries": 2, "initial_interval": "20ms", "backoff_multiplier": 2, "max_interval": "50ms"});
    let timers = register(&client, |kind| url_of(kind, &receiver, &absent), at, &policy).await;
    let changing = native(&client, &receiver.url("/changing"), at, &policy).await;
    let hurry = json!({"max_retries": 1000, "initial_interval": "250ms", "backoff_multiplier": 1, "max_duration": "2s"});
    let hurried = native(&client, &receiver.url("/hurried"), at, &hurry).await;
    client.wait_until_finished(TIMEOUT).await;

    for timer in &timers {
        let path = timer.kind.path;
        check_spent(&client, &timer.id, &[timer.kind.reason, "; gave up after 3 attempts"]).await;
        check_record(timer.kind, &attempts(&client, &timer.id).await, 3);
        let arrived = if timer.kind.fail.is_some() { 3 } else { 0 };
        assert_eq!(receiver.exchanges(path).len(), arrived, "{path}");
    }
    check_spent(&client, &changing, &["answered 404", "; gave up after 3 attempts"]).await;
    assert_eq!(receiver.exchanges("/changing").len(), 3);

    // At most two seconds in steps of at least 225 ms.
    let calls = receiver.exchanges("/hurried");
    assert!((2..=9).contains(&calls.len()), "{calls:#?}");
    let attempts = format!("; gave up after {} attempts: the next would come later than max_duration 2s", calls.len());
    check_spent(&client, &hurried, &["answered 500", &attempts]).await;
    assert!(calls.iter().all(|call| call.call.arrived <= at + 2_000_000 + tolerated(NOISE_MICROS)), "{calls:#?}");
    service.stop().await;
}

/// The timer has failed for good, for this reason, and says after how many attempts.
async fn check_spent(client: &Client, id: &str, reason: &[&str]) {
    let shown = client.timer(id).await;
    let error = shown["last_error"].as_str().unwrap_or_default();
    assert_eq!(shown["status"], "failed", "{shown}");
    assert!(reason.iter().all(|part| error.contains(part)), "{reason:?} in {error}");
    let remembered = attempts(client, id).await;
    assert_eq!(shown["attempt"], remembered.len(), "{shown}");
}
