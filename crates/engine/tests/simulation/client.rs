use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use commands::{CommandError, Commands, EarliestAllowed, NewTimerRequest, Patch, Rules, Searches, Stats, Stores, Target};
use domain::{
    Callback, CallbackKind, Caller, Clock, Delivery, Expiry, Horizon, Key, KindSet, Options, RequestedTime, RetryPolicy, Span,
    Timer, TimerId, Timestamp,
};
use store::DueEntry;

use super::{dice::Dice, node::Node, world::World};

/// What callers asked for, and what they were told.
#[derive(Default)]
pub struct History(Mutex<Vec<Told>>);

#[derive(Debug, Clone)]
pub struct Told {
    pub verb: Verb,
    pub id: TimerId,
    pub answer: Answer,
    pub at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Create,
    Update,
    Fire,
    Cancel,
    Retry,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It is done, and this is the revision.
    Done(u32),
    /// Nothing was changed, because the store could not be reached.
    NotDone,
    /// It cannot be done.
    Refused,
    Unknown,
}

impl History {
    pub fn all(&self) -> Vec<Told> {
        self.0.lock().unwrap().clone()
    }
}

/// How long a caller waits.
const TIMEOUT: Duration = Duration::from_secs(25);

/// The clients, each with one timer. Ends when all have done what they wanted.
pub async fn run(world: Arc<World>) {
    let plan = world.outside.plan.clone();
    let mut stories = tokio::task::JoinSet::new();
    for nth in 0..plan.timers {
        let mut dice = Dice::new(plan.seed, 0x10_0000 + nth);
        let begins = dice.millis(0, u64::try_from(plan.length.as_millis()).unwrap_or(u64::MAX));
        let world = Arc::clone(&world);
        stories.spawn(async move {
            tokio::time::sleep(begins).await;
            story(&world, nth, dice).await;
        });
    }
    while stories.join_next().await.is_some() {}
}

/// Registers timers that are due at once, and says which.
pub async fn probe(world: &World, count: u64) -> Vec<TimerId> {
    let mut dice = Dice::new(world.outside.plan.seed, 4);
    let mut ids = Vec::new();
    for nth in 0..count {
        let asked = RequestedTime::At(world.outside.truth.now());
        let key = Some(Key::parse(&format!("{}-probe-{nth}", world.outside.plan.seed)).unwrap());
        let target = Target::Callback(callback(nth));
        let request = NewTimerRequest { earliest_allowed: EarliestAllowed::Any, key, ..NewTimerRequest::new(asked, target) };
        let id = TimerId::keyed(&request.namespace, request.key.as_ref().unwrap());
        ask(world, &mut dice, Verb::Create, id, Some(&request)).await;
        ids.push(id);
    }
    ids
}

/// Registers one timer, asking again until there is an answer, and perhaps changes its mind later.
async fn story(world: &World, nth: u64, mut dice: Dice) {
    let request = request(world, nth, &mut dice);
    let mut created = None;
    for _ in 0..4 {
        let id = TimerId::keyed(&request.namespace, request.key.as_ref().unwrap());
        match ask(world, &mut dice, Verb::Create, id, Some(&request)).await {
            Some(Answer::Done(_)) => {
                created = Some(id);
                break;
            }
            Some(Answer::Refused) => return,
            _ => tokio::time::sleep(dice.millis(10, 3_000)).await,
        }
    }
    let Some(id) = created else { return };
    let verb = match dice.below(10) {
        0 | 1 => Verb::Update,
        2 | 3 => Verb::Cancel,
        4 => Verb::Fire,
        5 => Verb::Retry,
        _ => return,
    };
    tokio::time::sleep(dice.millis(0, 8_000)).await;
    ask(world, &mut dice, verb, id, None).await;
}

fn request(world: &World, nth: u64, dice: &mut Dice) -> NewTimerRequest {
    let delay = match dice.below(10) {
        0..3 => Duration::ZERO,
        3..7 => dice.millis(0, 5_000),
        7..9 => dice.millis(5_000, 60_000),
        _ => dice.millis(60_000, 600_000),
    };
    let delay = Span::from_micros_clamped(i64::try_from(delay.as_micros()).unwrap_or(i64::MAX));
    let asked = if dice.percent(20) {
        RequestedTime::After(delay)
    } else {
        RequestedTime::At(world.outside.truth.now().saturating_add(delay))
    };
    let retry_policy = dice.percent(60).then(|| RetryPolicy {
        max_retries: 1 + dice.below(4) as u32,
        initial_interval: Span::from_millis(200 + dice.below(3_000) as u32),
        backoff_multiplier: 1.5,
        max_interval: Span::from_secs(5),
        max_duration: None,
    });
    // Chance of its own, so that every other choice of a seed stays what it was.
    let mut expiry = Dice::new(world.outside.plan.seed, 0x20_0000 + nth);
    let expiry = expiry.percent(20).then(|| Expiry::After(Span::from_millis(1 + expiry.below(8_000) as u32)));
    let is_told = Dice::new(world.outside.plan.seed, 0x30_0000 + nth).percent(10);
    let told = || is_told.then(|| Box::new(callback(nth % 6)));
    NewTimerRequest {
        earliest_allowed: EarliestAllowed::Any,
        options: Options { expiry, on_success: told(), on_failure: told(), ..Options::default() },
        key: Some(Key::parse(&format!("{}-{nth}", world.outside.plan.seed)).unwrap()),
        retry_policy,
        delivery: if dice.percent(25) { Delivery::AtMostOnce } else { Delivery::AtLeastOnce },
        ..NewTimerRequest::new(asked, Target::Callback(callback(dice.below(6))))
    }
}

fn callback(host: u64) -> Callback {
    Callback::from_json(&format!(r#"{{"type":"http","url":"http://receiver-{host}.example/"}}"#)).unwrap()
}

/// Asks some node, and writes down what it says.
async fn ask(world: &World, dice: &mut Dice, verb: Verb, id: TimerId, request: Option<&NewTimerRequest>) -> Option<Answer> {
    let node = dice.pick(&world.reachable()).cloned()?;
    let commands = commands(&node);
    let later = Patch {
        asked: Some(RequestedTime::After(Span::from_millis(dice.below(20_000) as u32))),
        earliest_allowed: EarliestAllowed::Any,
        callback: dice.percent(50).then(|| callback(dice.below(6))),
        ..Patch::default()
    };
    let asked = async {
        match (verb, request) {
            (Verb::Create, Some(request)) => commands.create(request.clone()).await.map(|outcome| outcome.timer().clone()),
            (Verb::Cancel, _) => commands.cancel(id, None).await,
            (Verb::Fire, _) => commands.fire(id, None).await,
            (Verb::Retry, _) => commands.retry(id, None).await,
            (Verb::Update | Verb::Create, _) => commands.update(id, &later, None).await,
        }
    };
    let answer = match tokio::time::timeout(TIMEOUT, asked).await {
        Ok(result) => Answer::of(result),
        Err(_) => Answer::Unknown,
    };
    let at = world.outside.truth.now();
    let what = format!("a caller of {} hears of its {verb:?}: {answer:?}", super::ledger::short(node.id));
    world.outside.ledger.heard(id, format_args!("{what}"));
    world.history.0.lock().unwrap().push(Told { verb, id, answer, at });
    Some(answer)
}

impl Answer {
    fn of(result: Result<Timer, CommandError>) -> Self {
        match result {
            Ok(timer) => Self::Done(timer.revision),
            Err(CommandError::Unknown(_)) => Self::Unknown,
            Err(CommandError::Unavailable(_)) => Self::NotDone,
            Err(_) => Self::Refused,
        }
    }
}

fn commands(node: &Arc<Node>) -> Commands {
    let scheduler = Arc::clone(&node.scheduler);
    Commands {
        stores: Stores::of(Arc::clone(&node.store)),
        clock: Arc::clone(&node.clock) as Arc<dyn Clock>,
        rules: Rules {
            horizon: Horizon { min_delay: Span::ZERO, max_horizon: None },
            callbacks: KindSet::EMPTY.with(CallbackKind::Http),
            callback_check: Arc::new(|_, _| Ok(())),
        },
        nudge: Arc::new(move |entries: &[DueEntry]| scheduler.nudge(entries)),
        caller: Caller::Administrator,
        searches: Searches::default(),
        stats: Stats::default(),
    }
}
