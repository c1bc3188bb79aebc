//! W2 and W3: how late the calls are, for many timers at one instant and for timers at a steady rate.

use std::{ops::Range, time::Duration};

use crate::{
    error::Failed,
    ledger::Ledger,
    load::{Answered, Load},
    percentiles::Percentiles,
    plan::Plan,
    record::Run,
    session::{Round, Session},
};

/// The timers of these workloads are created in batches, because only their firing is measured.
const LOAD: Load = Load { connections: 4, timers_per_request: 500 };
/// The expected rate of creates. When they take longer, the whole run is repeated with more time.
const CREATES_PER_SECOND: u64 = 10_000;
const TRIES_MAX: u32 = 4;
/// How long before the first due time all creates must be acknowledged.
const REST: Duration = Duration::from_millis(500);
/// How long before the first due time the measurement of CPU time starts.
const METER_BEFORE_MICROS: i64 = 50_000;

/// The size of the workload, and its due times.
#[derive(Debug, Clone, Copy)]
pub struct Fires {
    pub timers: u64,
    pub destinations: usize,
    /// The gap between one due time and the next, in microseconds; 0 makes it one instant.
    pub gap_micros: i64,
}

pub async fn run(session: &Session, workload: &str, fires: Fires) -> Result<Run, Failed> {
    let (round, first, created) = prepare_fires(session, fires).await?;
    session.sleep_until(first - METER_BEFORE_MICROS).await;
    let meter = session.meter();
    session.sleep_until(round.plan.due(fires.timers.saturating_sub(1))).await;
    session.wait_for(&round, created.acknowledged).await;
    let usage = meter.stop().await;
    if round.ledger.arrived() < fires.timers {
        session.clear(&round).await?;
    }
    Ok(Run {
        workload: workload.to_owned(),
        connections: LOAD.connections,
        destinations: fires.destinations,
        cpu_micros_each: usage.micros_each(round.ledger.arrived()),
        usage,
        ..judge(&round, 0..fires.timers, created)
    })
}

/// What became of the timers with these `numbers`, of which `created` says how many were acknowledged.
pub fn judge(round: &Round, numbers: Range<u64>, created: Answered) -> Run {
    let (first, timers) = (round.plan.due(numbers.start), numbers.end - numbers.start);
    let lateness = lateness(&round.ledger, &round.plan, numbers.clone());
    let arrived = lateness.len() as u64;
    let last = numbers.filter_map(|number| round.ledger.first_at(number)).max().unwrap_or(first);
    let seconds = (last - first) as f64 / 1e6;
    Run {
        timers,
        seconds,
        rate: if seconds > 0.0 { arrived as f64 / seconds } else { 0.0 },
        refused: created.refused,
        first_refusal: created.first_refusal,
        lost: created.acknowledged.saturating_sub(arrived),
        duplicates: round.ledger.duplicates(),
        early: lateness.iter().filter(|micros| **micros < 0).count() as u64,
        lateness: Percentiles::of(lateness),
        ..Run::default()
    }
}

/// Creates all timers of `fires` in time, as those of one tenant: those of several would be called in turns.
pub async fn prepare_fires(session: &Session, fires: Fires) -> Result<(Round, i64, Answered), Failed> {
    let Fires { timers, destinations, gap_micros: gap } = fires;
    let begin = |first| {
        let round = session.begin(timers, destinations, Plan::Every { first, gap });
        Round { is_one_namespace: true, ..round }
    };
    prepare(session, timers, begin, async |round: &Round| session.create(round, 0..timers, LOAD).await).await
}

/// Creates all timers so early that the last is acknowledged well before the first is due, which `begin` gets.
pub async fn prepare(
    session: &Session,
    timers: u64,
    begin: impl Fn(i64) -> Round,
    create: impl AsyncFn(&Round) -> Result<Answered, Failed>,
) -> Result<(Round, i64, Answered), Failed> {
    let mut ahead = session.lead + REST * 2 + Duration::from_millis(timers * 1_000 / CREATES_PER_SECOND);
    for _ in 0..TRIES_MAX {
        let first = session.now() + i64::try_from(ahead.as_micros()).unwrap_or(i64::MAX);
        let round = begin(first);
        let created = create(&round).await?;
        let left = Duration::from_micros(u64::try_from(first - session.now()).unwrap_or_default());
        if left >= REST && (created.refused == 0 || left >= session.lead) {
            return Ok((round, first, created));
        }
        session.clear(&round).await?;
        ahead = session.lead + REST * 2 + Duration::from_secs_f64(created.seconds * 2.0).max(ahead);
    }
    Err(Failed::Run(format!("the service did not register {timers} timers before they were due.")))
}

/// The lateness of each timer that has arrived, in microseconds.
pub fn lateness(ledger: &Ledger, plan: &Plan, numbers: Range<u64>) -> Vec<i64> {
    numbers.filter_map(|number| Some(ledger.first_at(number)? - plan.due(number))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_arrival_less_due_time_of_those_that_arrived() {
        let ledger = Ledger::new(1, 4);
        for (number, at) in [(0, 1_000), (1, 3_100), (3, 6_900)] {
            ledger.note(1, number, at);
        }
        let plan = Plan::Every { first: 1_000, gap: 2_000 };
        assert_eq!(lateness(&ledger, &plan, 0..4), [0, 100, -100]);
    }
}
