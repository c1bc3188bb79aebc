//! What must be true in the end.

use std::time::Duration;

use domain::{Clock, Delivery, Status, Timer, TimerId};
use store::{Filter, TimerStore};

use super::{
    client::{self, Answer, Told, Verb},
    ledger::{Check, Ending, Life, Reply},
    world::World,
};

/// How long after the last fault everything that is due must have come to its end: a lease, a look for what was left behind, and
/// the time that callers and receivers take.
pub const SETTLING_TIME: Duration = Duration::from_secs(30);
/// How late anything may be by then.
const LATE_MAX: Duration = Duration::from_secs(15);
/// So many that every shard has some, and how long they may take when all is well: a sweep finds what no node was told of.
const PROBES: u64 = 32;
const PROBE_TIME: Duration = Duration::from_millis(2_500);

pub async fn judge(world: &World) {
    what_is_new_is_served(world).await;
    let told = world.history.all();
    answers_were_kept(world, &told);
    let ids: Vec<TimerId> = world.outside.ledger.books().timers.keys().copied().collect();
    for id in ids {
        let stored = world.outside.tampering.get(&world.outside.model, id).await.unwrap();
        ended_well(world, id, stored.as_ref());
    }
    numbers_add_up(world).await;
}

/// Every shard has an owner that does its work.
async fn what_is_new_is_served(world: &World) {
    let ids = client::probe(world, PROBES).await;
    tokio::time::sleep(PROBE_TIME).await;
    let ledger = &world.outside.ledger;
    for id in ids {
        let status = ledger.books().timers.get(&id).map(|life| life.status);
        if status != Some(Status::Completed) {
            ledger.violated(Check::Stuck, Some(id), format_args!("due at once when all was well, and now {status:?}"));
        }
    }
}

/// What callers were told is what happened.
fn answers_were_kept(world: &World, told: &[Told]) {
    let ledger = &world.outside.ledger;
    let mut violations = Vec::new();
    let mut violated = |check, id, what: String| violations.push((check, id, what));
    let books = ledger.books();
    for Told { verb, id, answer, at } in told {
        let life = books.timers.get(id);
        let claims_after = || life.into_iter().flat_map(|life| &life.claims).filter(|taken| taken.since > *at);
        match (verb, answer) {
            (Verb::Create, Answer::Done(_)) if life.is_none() => {
                violated(Check::Lost, *id, "its caller was told that it is there, and it never was".to_owned());
            }
            (Verb::Create, Answer::NotDone) => {
                let was_told_else = told.iter().any(|other| other.id == *id && other.answer != Answer::NotDone);
                if life.is_some() && !was_told_else {
                    violated(Check::Ghost, *id, "its caller was told that nothing was done".to_owned());
                }
            }
            (Verb::Cancel, Answer::Done(_)) => {
                if claims_after().next().is_some() {
                    violated(Check::Ghost, *id, "claimed after its caller was told that it is canceled".to_owned());
                }
                if let Some(life) = life.filter(|life| life.status != Status::Canceled) {
                    violated(Check::State, *id, format!("{}, though its caller was told that it is canceled", life.status));
                }
            }
            (Verb::Update | Verb::Fire | Verb::Retry, Answer::Done(revision))
                if claims_after().any(|taken| taken.revision < *revision) =>
            {
                violated(Check::Ghost, *id, format!("claimed in a version before {revision}, which had been answered"));
            }
            _ => {}
        }
    }
    drop(books);
    violations.into_iter().for_each(|(check, id, what)| ledger.violated(check, Some(id), format_args!("{what}")));
}

/// The timer has come to the end that it had to come to, and the store says so.
fn ended_well(world: &World, id: TimerId, stored: Option<&Timer>) {
    let ledger = &world.outside.ledger;
    let now = world.outside.truth.now();
    let mut violations = Vec::new();
    let books = ledger.books();
    let life = &books.timers[&id];
    let mut violated = |check: Check, what: String| violations.push((check, what));
    let is_late = now.since(life.at).as_duration() > LATE_MAX;
    match (stored, life.status) {
        (None, status) if !status.is_finished() => violated(Check::Lost, format!("it was {status}, and is not there any more")),
        (Some(stored), _) if (stored.status, stored.revision, stored.attempt) != (life.status, life.revision, attempts(life)) => {
            let kept = (stored.status, stored.revision, stored.attempt);
            violated(Check::State, format!("stored as {kept:?}, but {:?}", (life.status, life.revision, attempts(life))));
        }
        (_, Status::Pending) if is_late => violated(Check::Stuck, format!("pending, though due at {}", life.at)),
        (_, Status::Executing) if life.claims.last().is_some_and(|taken| now.since(taken.since).as_duration() > LATE_MAX) => {
            violated(Check::Stuck, "executing, and no node delivers it".to_owned());
        }
        _ => {}
    }
    let of_version = |call: &&super::ledger::Call| call.id == id && call.revision == life.revision;
    let last = books.calls.iter().rfind(of_version);
    match life.status {
        Status::Completed if !books.calls.iter().filter(of_version).any(|call| call.reply == Reply::Delivered) => {
            violated(Check::Lost, "completed without a call".to_owned());
        }
        Status::Failed if !last.is_some_and(|call| call.reply == Reply::Failed) && !failed_by_rule(life) => {
            violated(Check::Lost, "failed without a call that failed".to_owned());
        }
        _ => {}
    }
    drop(books);
    violations.into_iter().for_each(|(check, what)| ledger.violated(check, Some(id), format_args!("{what}")));
}

/// How many attempts the store should count.
fn attempts(life: &Life) -> u32 {
    match (life.status, life.claims.last()) {
        (Status::Pending | Status::Canceled | Status::Expired, _) | (_, None) => life.attempt,
        (_, Some(taken)) => taken.attempt,
    }
}

/// One that must not be called twice fails when its node is gone.
fn failed_by_rule(life: &Life) -> bool {
    let is_taken_over = life.claims.last().is_some_and(|taken| taken.ending == Some(Ending::TakenOver));
    life.delivery == Delivery::AtMostOnce && is_taken_over
}

async fn numbers_add_up(world: &World) {
    let (model, ledger) = (&world.outside.model, &world.outside.ledger);
    let all = model.count(&Filter::default()).await.unwrap().timers;
    let mut sum = 0;
    for status in Status::ALL {
        sum += model.count(&Filter { status: Some(status), ..Filter::default() }).await.unwrap().timers;
    }
    let known = ledger.books().timers.len() as u64;
    if sum != all || all > known {
        ledger.violated(Check::State, None, format_args!("{all} timers, of which {sum} in all states, of {known} made"));
    }
    let calls = ledger.books().calls.len();
    let answers = world.history.all().len();
    ledger.note(format_args!("{calls} calls, {answers} answers, {all} of {known} timers left, {:?}", world.elapsed()));
}
