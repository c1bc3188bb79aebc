//! What was asked of services while they were disturbed, what was answered, and whether the calls that arrived agree with it.
//!
//! ```text
//!   load ──asks──▶ services ──calls──▶ receiver
//!     └─ tells ──▶ history ◀── checks ──┘    no loss, nothing early, no ghost, no call again without a fault,
//!                     ▲                      soon again after each fault, every answer in one order
//!                  faults
//! ```

mod fault;
mod load;
mod order;

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt, stream};

use crate::{
    lateness::Lateness,
    rig::{Call, Client, micros, now, tolerated},
};
pub use fault::Fault;
pub use load::{Apis, Asker, Load, Mixture};
pub use order::{Act, Operation, Status};

/// How long a result may take to be on record, beside what the call takes.
const RECORDED_WITHIN_MICROS: i64 = 1_000_000;
/// How long after a fault the receiver may still read what was sent before.
const READ_LATE_MICROS_MAX: i64 = 50_000;
/// From the last look before a call to its arrival.
const ON_THE_WIRE_MICROS_MAX: i64 = 100_000;

/// Everything that was asked, by the key of the timer.
pub struct History {
    told: Mutex<HashMap<String, Told>>,
    unrecorded_micros_max: i64,
}

/// One timer.
#[derive(Debug, Clone, Default)]
struct Told {
    id: Option<String>,
    asked: Vec<Operation>,
    /// When each version is due; for one without an answer, not before then.
    due: HashMap<u32, i64>,
}

/// A question whose answer is not there yet.
pub struct Question {
    key: String,
    place: usize,
}

pub struct Summary {
    pub created: usize,
    pub unanswered: usize,
    pub updated: usize,
    pub canceled: usize,
    pub calls: usize,
    /// Calls that were made again.
    pub repeated: usize,
    /// Of these, calls that a paused node had been about to make.
    pub held: usize,
    /// Between the time at which a timer could fire and its call, faults not counted.
    pub waits: Lateness,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { created, unanswered, updated, canceled, calls, repeated, held, waits } = self;
        write!(
            f,
            "{created} creates, {updated} updates, {canceled} cancels acknowledged, {unanswered} creates without an answer; {calls} \
             calls, {repeated} of them again ({held} held by a pause); waited beside faults: {waits}"
        )
    }
}

impl History {
    /// For receivers that take up to `call_time`.
    pub fn new(call_time: Duration) -> Self {
        let call_micros = i64::try_from(call_time.as_micros()).expect("a call of less than an age");
        Self { told: Mutex::default(), unrecorded_micros_max: call_micros + tolerated(RECORDED_WITHIN_MICROS) }
    }

    fn told(&self) -> MutexGuard<'_, HashMap<String, Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be told before the question is sent: it may be carried out although no answer comes.
    pub fn ask(&self, key: &str, act: Act, due_at_least: Option<i64>) -> Question {
        let mut told = self.told();
        let told = told.entry(key.to_owned()).or_default();
        if let (Act::Create { version } | Act::Update { version }, Some(due)) = (act, due_at_least) {
            told.due.insert(version, due);
        }
        told.asked.push(Operation { from: now(), to: i64::MAX, act });
        Question { key: key.to_owned(), place: told.asked.len() - 1 }
    }

    /// It is done, or it was found that things stand as `act` says.
    pub fn answered(&self, question: &Question, act: Act) {
        let mut told = self.told();
        let asked = &mut told.get_mut(&question.key).expect("it was asked").asked[question.place];
        (asked.to, asked.act) = (now(), act);
    }

    /// When this version is due, by the answer.
    pub fn due(&self, key: &str, version: u32, at: i64) {
        self.told().get_mut(key).expect("it was asked").due.insert(version, at);
    }

    pub fn known_as(&self, key: &str, id: String) {
        self.told().get_mut(key).expect("it was asked").id = Some(id);
    }

    pub fn id(&self, key: &str) -> Option<String> {
        self.told().get(key)?.id.clone()
    }

    /// Asks for every timer whose id is known how it ended. Nothing may be under way any more.
    pub async fn read_back(&self, client: &Client) {
        const AT_ONCE: usize = 16;
        let known: Vec<(String, String)> =
            self.told().iter().filter_map(|(key, told)| Some((key.clone(), told.id.clone()?))).collect();
        let read = async |(key, id): &(String, String)| {
            let question = self.ask(key, Act::Nothing, None);
            let timer = client.timer(id).await;
            self.answered(&question, order::read(&timer));
            assert!(timer["status"] == "completed" || timer["status"] == "canceled", "not finished: {timer}");
        };
        stream::iter(&known).for_each_concurrent(AT_ONCE, read).await;
    }

    /// Fails the test at the first thing that must not be. After [`read_back`](Self::read_back).
    pub fn check(&self, calls: &[Call], faults: &[Fault]) -> Summary {
        let told = self.told();
        let mut by_key: HashMap<String, Vec<&Call>> = HashMap::new();
        for call in calls {
            by_key.entry(call.json()["key"].as_str().expect("a key in each call").to_owned()).or_default().push(call);
        }
        let ghosts: Vec<_> = by_key.keys().filter(|key| !told.contains_key(*key)).collect();
        assert!(ghosts.is_empty(), "calls for what no client asked for: {ghosts:?}");
        let (mut repeated, mut held, mut waits) = (0, 0, Vec::new());
        for (key, told) in told.iter() {
            let calls = by_key.get(key).map(Vec::as_slice).unwrap_or_default();
            told.check_order(key, calls, faults);
            for (version, calls) in by_version(calls) {
                check_not_early(told, version, &calls);
                let again = self.check_repetitions(&calls, faults);
                repeated += again.0;
                held += again.1;
                waits.extend(told.waited(version, calls[0].arrived, faults));
            }
        }
        let done = |wanted: fn(Act) -> bool| {
            let is_done = |asked: &Operation| asked.to < i64::MAX && wanted(asked.act);
            told.values().filter(|told| told.asked.iter().any(is_done)).count()
        };
        let created = done(|act| matches!(act, Act::Create { .. }));
        Summary {
            created,
            unanswered: told.len() - created,
            updated: done(|act| matches!(act, Act::Update { .. })),
            canceled: done(|act| act == Act::Cancel),
            calls: calls.len(),
            repeated,
            held,
            waits: Lateness::of(waits),
        }
    }

    /// A call may be made again only when the one before was under way at a fault, and then it is the same call to its receiver, but
    /// another attempt: each claim counts one. Says how many are, and how many of them a pause had held back.
    fn check_repetitions(&self, calls: &[&Call], faults: &[Fault]) -> (usize, usize) {
        let attempts: HashSet<&str> = calls.iter().map(|call| call.header("x-timer-attempt")).collect();
        assert_eq!(attempts.len(), calls.len(), "claimed twice at once: {calls:?}");
        let mut held = 0;
        for pair in calls.windows(2) {
            assert_eq!(pair[0].header("webhook-id"), pair[1].header("webhook-id"), "{pair:?}");
            let [earlier, later] = [pair[0].arrived, pair[1].arrived];
            let was_under_way = faults.iter().any(|fault| {
                let sent = fault.from - self.unrecorded_micros_max..=fault.sent_until + tolerated(READ_LATE_MICROS_MAX);
                later >= fault.from && sent.contains(&earlier)
            });
            let was_held = faults.iter().any(|fault| fault.held_until(later));
            assert!(was_under_way || was_held, "called again, but not under way at a fault: {pair:?}, faults: {faults:?}");
            held += usize::from(!was_under_way);
        }
        (calls.len() - 1, held)
    }
}

impl Told {
    fn check_order(&self, key: &str, calls: &[&Call], faults: &[Fault]) {
        let called = calls.iter().map(|call| {
            let held_since = faults.iter().filter(|fault| fault.held_until(call.arrived)).map(|fault| fault.from).min();
            let from = held_since.unwrap_or(i64::MAX).min(call.arrived - tolerated(ON_THE_WIRE_MICROS_MAX));
            Operation { from, to: call.arrived, act: Act::Call { version: version(call) } }
        });
        let all: Vec<Operation> = self.asked.iter().copied().chain(called).collect();
        assert!(order::exists(&all), "no order of these makes sense: {key} {:?} {all:#?}", self.id);
    }

    /// From when this version could fire to its first call, without the faults in between.
    fn waited(&self, version: u32, called: i64, faults: &[Fault]) -> Option<i64> {
        let was_asked = |asked: &&Operation| asked.to < i64::MAX && asked.act.makes(version);
        let answered = self.asked.iter().find(was_asked)?.to;
        let from = answered.max(*self.due.get(&version)?);
        Some((called - from - fault::within(faults, from, called)).max(0))
    }
}

fn check_not_early(told: &Told, version: u32, calls: &[&Call]) {
    for call in calls {
        let due = told.due.get(&version).copied().unwrap_or(i64::MAX).max(micros(call.header("x-timer-scheduled-at")));
        assert!(call.arrived >= due, "early: {call:?} {told:?}");
    }
}

fn version(call: &Call) -> u32 {
    call.json()["version"].as_u64().and_then(|version| u32::try_from(version).ok()).expect("a version in each call")
}

fn by_version<'a>(calls: &[&'a Call]) -> HashMap<u32, Vec<&'a Call>> {
    let mut versions: HashMap<u32, Vec<&Call>> = HashMap::new();
    for call in calls {
        versions.entry(version(call)).or_default().push(call);
    }
    versions
}

#[cfg(test)]
mod tests;
