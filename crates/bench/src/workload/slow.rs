//! A receiver that takes seconds to answer, beside one that answers at once: how many calls the slow one has under way, and what
//! the fast one notices.
//!
//! ```text
//!   all due at one instant ──▶ service ──▶ slow receiver: 5 s for each call
//!   one every 10 ms ─────────▶         └─▶ fast receiver: lateness is measured here
//! ```

use std::time::Duration;

use crate::{
    error::Failed,
    load::Load,
    plan::{Plan, Step},
    record::Run,
    session::{Round, Session},
    workload::fire::{self, prepare},
};

const LOAD: Load = Load { connections: 4, timers_per_request: 500 };
/// The calls to the fast receiver, per second.
const FAST_PER_SECOND: u32 = 100;

/// The size of the workload.
#[derive(Debug, Clone, Copy)]
pub struct Slow {
    /// How many timers for the slow receiver are due at once.
    pub timers: u64,
    /// How long the slow receiver takes.
    pub pause: Duration,
    /// For how long the fast receiver is watched.
    pub seconds: u32,
}

pub async fn run(session: &Session, workload: &str, slow: Slow) -> Result<Run, Failed> {
    let fast = u64::from(FAST_PER_SECOND) * u64::from(slow.seconds);
    let timers = slow.timers + fast;
    session.slow_down(slow.pause);
    let begin = |first| session.begin(timers, 1, plan(slow, fast, first));
    let create = async |round: &Round| {
        let slow_round = Round { origins: vec![session.slow_origin()], ..round.clone() };
        let mut created = session.create(&slow_round, 0..slow.timers, LOAD).await?;
        let beside = session.create(round, slow.timers..timers, LOAD).await?;
        created.seconds += beside.seconds;
        created.add(beside);
        Ok(created)
    };
    let (round, _, created) = prepare(session, timers, begin, create).await?;
    session.sleep_until(round.plan.due(slow.timers)).await;
    let meter = session.meter();
    session.sleep_until(round.plan.due(timers - 1)).await;
    let arrived = || (slow.timers..timers).filter(|number| round.ledger.first_at(*number).is_some()).count() as u64;
    session.wait_until_arrived(arrived, fast).await;
    let usage = meter.stop().await;
    let in_flight_max = session.slow_in_flight_max();
    session.clear(&round).await?;
    session.wait_for_slow().await;
    let lost = if created.refused == 0 { fast - arrived() } else { 0 };
    Ok(Run {
        workload: workload.to_owned(),
        timers: slow.timers,
        connections: LOAD.connections,
        destinations: 2,
        lost,
        in_flight_max: Some(in_flight_max),
        cpu_micros_each: usage.micros_each(round.ledger.arrived()),
        usage,
        ..fire::judge(&round, slow.timers..timers, created)
    })
}

/// First the timers of the slow receiver, all at one instant, and from then on those of the fast one.
fn plan(slow: Slow, fast: u64, first: i64) -> Plan {
    let end = first + i64::from(slow.seconds) * 1_000_000;
    let burst = Step { first: 0, timers: slow.timers, begin: first, end: first, per_second: f64::INFINITY };
    let steady = Step { first: slow.timers, timers: fast, begin: first, end, per_second: f64::from(FAST_PER_SECOND) };
    Plan::Steps([burst, steady].into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slow_ones_are_due_at_once_and_the_fast_ones_one_after_the_other() {
        let plan = plan(Slow { timers: 3, pause: Duration::from_secs(5), seconds: 1 }, 100, 1_000);
        assert_eq!([0, 2, 3, 4, 102].map(|number| plan.due(number)), [1_000, 1_000, 1_000, 11_000, 991_000]);
    }
}
