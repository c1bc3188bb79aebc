//! W5: creates and calls at the same time, at one rate, which is raised until the calls are late; then the highest rate for a
//! minute.
//!
//! ```text
//!   create  ──2,000/s──┬──2,600/s──┬── … ──┐ one timer in a hundred is late, twice running: the rate before it is held
//!   call        └──2,000/s──┬──2,600/s──┬── …
//! ```

use std::{ops::Range, time::Duration};

use crate::{
    ask::Ask,
    chart::grouped,
    error::Failed,
    ledger::Ledger,
    load::Answered,
    pace::{Pace, Sends},
    percentiles::Percentiles,
    plan::{self, Plan, Step},
    progress::{Note, Tell},
    record::Run,
    session::{Round, Session},
    usage::Usage,
    workload::fire::lateness,
};

pub const NAME: &str = "w5";
/// A call that is later than this is late.
const LATENESS_MAX_MICROS: i64 = 100_000;
/// A rate is sustained when at most one timer in this many is late, refused or lost.
const ONE_LATE_IN: u64 = 100;
const RATE_MAX: f64 = 200_000.0;
/// A single bad step may be caused by another process.
const BAD_STEPS_MAX: usize = 2;
const HOLDS_MAX: u32 = 4;
/// A rate that was not sustained is followed by this share of it.
const LOWER: f64 = 0.88;
/// From the decision for a rate to its first request.
const BEFORE_MICROS: i64 = 200_000;

/// How the rate is raised.
#[derive(Debug, Clone, Copy)]
pub struct Climb {
    pub first_rate: f64,
    pub factor: f64,
    pub step_seconds: f64,
    pub hold_seconds: f64,
    pub connections: usize,
}

/// Runs the steps and the highest rate that was sustained; without one, the lowest that was tried.
pub async fn run(session: &Session, climb: Climb, tell: Tell<'_>) -> Result<(Vec<Run>, Run), Failed> {
    let rates = plan::ladder(climb.first_rate, climb.factor, RATE_MAX);
    let steps = climb_up(session, climb, rates, tell).await?;
    let best = steps.iter().filter(|step| step.is_held == Some(true)).map(|step| step.rate).fold(climb.first_rate, f64::max);
    let mut rate = best;
    let say = |rate: f64| format!("{NAME}: {}/s for {} s", grouped(rate), climb.hold_seconds);
    tell(Note::Doing(&say(rate)));
    let mut hold = hold(session, climb, rate).await?;
    for _ in 1..HOLDS_MAX {
        if hold.is_held == Some(true) {
            break;
        }
        rate *= LOWER;
        tell(Note::Doing(&say(rate)));
        hold = self::hold(session, climb, rate).await?;
    }
    Ok((steps, hold))
}

async fn climb_up(session: &Session, climb: Climb, rates: impl Iterator<Item = f64>, tell: Tell<'_>) -> Result<Vec<Run>, Failed> {
    let (round, steps) = begin(session, climb.step_seconds, rates);
    let pace = Pace::begin(session, &round, &sends(session, &round, climb)).await?;
    let mut judged = Vec::new();
    for step in &steps {
        tell(Note::Doing(&format!("{NAME}: {}/s", grouped(step.per_second))));
        session.sleep_until(step.end + LATENESS_MAX_MICROS).await;
        let numbers = step.first..step.first + step.timers;
        judged.push(judge(&round.ledger, &round.plan, numbers, step, climb.connections));
        if judged.iter().rev().take_while(|run| run.is_held == Some(false)).count() >= BAD_STEPS_MAX {
            break;
        }
    }
    pace.stop();
    let created = pace.finish().await?;
    session.wait_for(&round, created.acknowledged).await;
    if let (Some(last), Some(_)) = (judged.last_mut(), &created.first_refusal) {
        last.first_refusal = created.first_refusal;
    }
    Ok(judged)
}

async fn hold(session: &Session, climb: Climb, rate: f64) -> Result<Run, Failed> {
    let parts = (climb.hold_seconds / climb.step_seconds).ceil().max(1.0);
    let (round, steps) = begin(session, climb.hold_seconds / parts, std::iter::repeat_n(rate, parts as usize));
    let meter = session.meter();
    let pace = Pace::begin(session, &round, &sends(session, &round, climb)).await?;
    for step in &steps {
        session.sleep_until(step.end + LATENESS_MAX_MICROS).await;
        let due = step.first + step.timers;
        if late(&round.ledger, &round.plan, 0..due) * ONE_LATE_IN > round.timers {
            break;
        }
    }
    pace.stop();
    let created = pace.finish().await?;
    session.wait_for(&round, created.acknowledged).await;
    let usage = meter.stop().await;
    Ok(held(&round, rate, climb, created, usage))
}

fn held(round: &Round, rate: f64, climb: Climb, created: Answered, usage: Usage) -> Run {
    let late = late(&round.ledger, &round.plan, 0..round.timers);
    let lateness = lateness(&round.ledger, &round.plan, 0..round.timers);
    Run {
        workload: NAME.to_owned(),
        timers: round.timers,
        connections: climb.connections,
        destinations: 1,
        seconds: climb.hold_seconds,
        rate,
        refused: created.refused,
        first_refusal: created.first_refusal,
        lost: created.acknowledged.saturating_sub(lateness.len() as u64),
        duplicates: round.ledger.duplicates(),
        early: lateness.iter().filter(|micros| **micros < 0).count() as u64,
        is_held: Some(late * ONE_LATE_IN <= round.timers),
        cpu_micros_each: usage.micros_each(lateness.len() as u64),
        answers: Percentiles::of(created.answers),
        lateness: Percentiles::of(lateness),
        usage,
        ..Run::default()
    }
}

/// How long before its due time a timer is created: as short as the service allows, and long enough to be registered in time.
fn ahead(session: &Session) -> Duration {
    session.lead + Duration::from_secs(1)
}

/// Each timer is created a fixed time before it is due.
fn sends(session: &Session, round: &Round, climb: Climb) -> Sends {
    let (count, at) = (round.timers, round.plan.clone());
    Sends { ask: Ask::Create, count, at, ahead: ahead(session), connections: climb.connections }
}

fn begin(session: &Session, step_seconds: f64, rates: impl Iterator<Item = f64>) -> (Round, Vec<Step>) {
    let ahead = i64::try_from(ahead(session).as_micros()).unwrap_or(i64::MAX);
    let steps = plan::steps(session.now() + BEFORE_MICROS + ahead, step_seconds, rates);
    let timers = steps.last().map_or(0, |last| last.first + last.timers);
    (session.begin(timers, 1, Plan::Steps(steps.clone().into())), steps)
}

fn judge(ledger: &Ledger, plan: &Plan, numbers: Range<u64>, step: &Step, connections: usize) -> Run {
    let late = late(ledger, plan, numbers.clone());
    Run {
        workload: format!("{NAME} climb"),
        timers: step.timers,
        connections,
        destinations: 1,
        seconds: (step.end - step.begin) as f64 / 1e6,
        rate: step.per_second,
        lateness: Percentiles::of(lateness(ledger, plan, numbers)),
        is_held: Some(late * ONE_LATE_IN <= step.timers),
        ..Run::default()
    }
}

/// How many have not arrived, or not in time.
fn late(ledger: &Ledger, plan: &Plan, numbers: Range<u64>) -> u64 {
    let is_late = |number: &u64| ledger.first_at(*number).is_none_or(|at| at - plan.due(*number) > LATENESS_MAX_MICROS);
    numbers.filter(is_late).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_held_when_at_most_one_in_a_hundred_is_late_or_missing() {
        let steps = plan::steps(1_000_000, 1.0, [200.0]);
        let plan = Plan::Steps(steps.clone().into());
        let judged = |late: u64, missing: u64| {
            let ledger = Ledger::new(1, 200);
            for number in missing..200 {
                let lateness = if number < missing + late { LATENESS_MAX_MICROS + 1 } else { LATENESS_MAX_MICROS };
                ledger.note(1, number, plan.due(number) + lateness);
            }
            judge(&ledger, &plan, 0..200, &steps[0], 8)
        };
        for (late, missing, is_held) in [(0, 0, true), (2, 0, true), (1, 1, true), (3, 0, false), (0, 3, false)] {
            assert_eq!(judged(late, missing).is_held, Some(is_held), "{late} late, {missing} missing");
        }
        assert_eq!(judged(0, 0).lateness.unwrap().p99, 100.0);
    }
}
