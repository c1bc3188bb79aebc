//! What was asked and answered, and whether the calls that arrived agree with it.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
};

use super::CALL_TIME;
use crate::rig::Call;

/// How a cancel or update ended, if one was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Change {
    #[default]
    None,
    /// At this time the answer 200 was there.
    Acknowledged(i64),
    /// The timer was not pending any more.
    TooLate,
    /// No answer: it may have been carried out or not.
    Unknown,
}

/// One timer whose create was acknowledged.
#[derive(Debug, Clone, Default)]
pub struct Told {
    pub execute_at: i64,
    pub update: Change,
    pub cancel: Change,
}

#[derive(Default)]
pub struct History(Mutex<HashMap<String, Told>>);

/// How long before a kill a call may have arrived whose result is not on record: what the call takes, and a second to record it.
const UNRECORDED_MICROS_MAX: i64 = CALL_TIME.as_micros() as i64 + 1_000_000;
/// How long after a kill the receiver may still read what the service had sent before. No new one can have called by then.
const READ_LATE_MICROS_MAX: i64 = 20_000;

pub const OLD: &str = "old";
pub const NEW: &str = "new";

pub struct Summary {
    pub created: usize,
    pub updated: usize,
    pub canceled: usize,
    pub calls: usize,
    pub repeated: usize,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { created, updated, canceled, calls, repeated } = self;
        write!(
            f,
            "{created} creates, {updated} updates, {canceled} cancels acknowledged; {calls} calls, {repeated} of them repeated"
        )
    }
}

impl History {
    pub fn tell(&self, id: &str, told: Told) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned(), told);
    }

    /// Fails the test at the first thing that must not be.
    pub fn check(&self, calls: &[Call], kills: &[i64]) -> Summary {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut by_timer: HashMap<&str, Vec<&Call>> = HashMap::new();
        for call in calls {
            by_timer.entry(call.timer_id()).or_default().push(call);
        }
        for (id, told) in told.iter() {
            let calls = by_timer.get(id.as_str()).map(Vec::as_slice).unwrap_or_default();
            check_delivered(id, told, calls);
            check_cancel(id, told, calls);
            check_update(id, told, calls);
        }
        let repeated = by_timer.values().map(|calls| check_repetitions(calls, kills)).sum();
        let count = |of: fn(&Told) -> Change| told.values().filter(|told| matches!(of(told), Change::Acknowledged(_))).count();
        Summary {
            created: told.len(),
            updated: count(|told| told.update),
            canceled: count(|told| told.cancel),
            calls: calls.len(),
            repeated,
        }
    }
}

fn check_delivered(id: &str, told: &Told, calls: &[&Call]) {
    if matches!(told.cancel, Change::None | Change::TooLate) {
        assert!(!calls.is_empty(), "lost: {id} {told:?}");
    }
}

fn check_cancel(id: &str, told: &Told, calls: &[&Call]) {
    let Change::Acknowledged(at) = told.cancel else { return };
    // One that was under way at a kill is pending again afterwards, and can then be canceled for good.
    let after = calls.iter().filter(|call| call.arrived > at).count();
    assert_eq!(after, 0, "called after its cancel was acknowledged: {id} {told:?} {calls:?}");
    if at < told.execute_at {
        assert!(calls.is_empty(), "called although it was canceled before it was due: {id} {told:?} {calls:?}");
    }
}

fn check_update(id: &str, told: &Told, calls: &[&Call]) {
    let Change::Acknowledged(at) = told.update else { return };
    let version = |call: &Call| call.json()["version"].as_str().map(str::to_owned);
    let old_after = calls.iter().filter(|call| call.arrived > at && version(call).as_deref() == Some(OLD)).count();
    assert_eq!(old_after, 0, "the old version was called after the update was acknowledged: {id} {told:?} {calls:?}");
    if matches!(told.cancel, Change::None | Change::TooLate) {
        assert!(calls.iter().any(|call| version(call).as_deref() == Some(NEW)), "the update is lost: {id} {told:?} {calls:?}");
    }
}

/// A call may be repeated only when it was under way at a kill, and then it is the same call to its receiver. Says how many are.
fn check_repetitions(calls: &[&Call], kills: &[i64]) -> usize {
    let mut by_occurrence: HashMap<(String, &str), Vec<&Call>> = HashMap::new();
    for call in calls {
        by_occurrence.entry((call.json()["version"].to_string(), call.header("x-timer-scheduled-at"))).or_default().push(call);
    }
    let mut repeated = 0;
    for calls in by_occurrence.values() {
        for pair in calls.windows(2) {
            repeated += 1;
            assert_eq!(pair[0].header("webhook-id"), pair[1].header("webhook-id"), "{pair:?}");
            let [earlier, later] = [pair[0].arrived, pair[1].arrived];
            let unrecorded = earlier - READ_LATE_MICROS_MAX..=earlier + UNRECORDED_MICROS_MAX;
            let under_way = kills.iter().any(|kill| *kill <= later && unrecorded.contains(kill));
            assert!(under_way, "called twice, but not under way at a kill: {pair:?}, kills: {kills:?}");
        }
    }
    repeated
}

/// The checks themselves: each of these histories must be refused, and the good one must not.
#[cfg(test)]
mod tests {
    use super::*;

    const KILL: i64 = 10_000_000;
    /// Just before and just after it.
    const BEFORE: i64 = KILL - 1;
    const AFTER: i64 = KILL + 100_000;
    /// Long enough before it for any result to be on record.
    const RECORDED: i64 = KILL - UNRECORDED_MICROS_MAX - 1;

    fn call(version: &str, arrived: i64, webhook_id: &str) -> Call {
        let headers = [("x-timer-id", "t"), ("x-timer-scheduled-at", "due"), ("webhook-id", webhook_id)];
        Call {
            method: "POST".to_owned(),
            path: "/".to_owned(),
            headers: headers
                .iter()
                .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")))
                .collect(),
            body: format!(r#"{{"version":"{version}"}}"#),
            arrived,
        }
    }

    fn is_refused(told: Told, calls: &[Call]) -> bool {
        let history = History::default();
        history.tell("t", told);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| history.check(calls, &[KILL]))).is_err()
    }

    #[test]
    fn good_histories_pass_and_planted_faults_are_found() {
        let due = Told { execute_at: 100, ..Told::default() };
        let canceled = |at| Told { cancel: Change::Acknowledged(at), ..due.clone() };
        let updated = |at| Told { update: Change::Acknowledged(at), ..due.clone() };
        for (what, told, calls, refused) in [
            ("delivered", due.clone(), vec![call(OLD, 101, "w")], false),
            ("repeated over a kill", due.clone(), vec![call(OLD, BEFORE, "w"), call(OLD, AFTER, "w")], false),
            (
                "sent before a kill and read after it",
                due.clone(),
                vec![call(OLD, KILL + 1_000, "w"), call(OLD, AFTER, "w")],
                false,
            ),
            ("canceled in time", canceled(50), vec![], false),
            ("under way at a kill, then canceled", canceled(AFTER), vec![call(OLD, BEFORE, "w")], false),
            ("updated", updated(50), vec![call(NEW, 101, "w")], false),
            ("no answer to a cancel", Told { cancel: Change::Unknown, ..due.clone() }, vec![], false),
            ("lost", due.clone(), vec![], true),
            ("lost after a cancel that came too late", Told { cancel: Change::TooLate, ..due.clone() }, vec![], true),
            ("repeated without a kill", due.clone(), vec![call(OLD, 101, "w"), call(OLD, 102, "w")], true),
            ("repeated before a kill", due.clone(), vec![call(OLD, BEFORE - 1, "w"), call(OLD, BEFORE, "w")], true),
            ("repeated after a kill", due.clone(), vec![call(OLD, AFTER, "w"), call(OLD, AFTER + 1, "w")], true),
            ("on record before a kill, repeated", due.clone(), vec![call(OLD, RECORDED, "w"), call(OLD, AFTER, "w")], true),
            (
                "repeated over a kill, and once more",
                due.clone(),
                vec![call(OLD, BEFORE, "w"), call(OLD, AFTER, "w"), call(OLD, AFTER + 1, "w")],
                true,
            ),
            ("repeated as another call", due.clone(), vec![call(OLD, BEFORE, "w"), call(OLD, AFTER, "x")], true),
            ("called after a cancel", canceled(600), vec![call(OLD, 601, "w")], true),
            ("called before a cancel that came before it was due", canceled(50), vec![call(OLD, 49, "w")], true),
            ("the old version after an update", updated(50), vec![call(OLD, 101, "w"), call(NEW, 102, "w")], true),
            ("an update that is lost", updated(50), vec![call(OLD, 49, "w")], true),
        ] {
            assert_eq!(is_refused(told, &calls), refused, "{what}");
        }
    }
}
