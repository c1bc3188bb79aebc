//! Creates, cancels and calls at one steady rate each, beside many pending timers, and lists beside them: what a service meets on
//! an ordinary day.
//!
//! ```text
//!   creates ──1,000/s──▶ ┐
//!   cancels ──1,000/s──▶ ├ service with a million pending timers ──1,000 calls/s──▶ sink
//!   lists ────0, 1, 20/s▶┘
//! ```
//!
//! The rates are given (open loop). A service that does not keep up falls behind, and that is what is measured.

use std::time::Duration;

use crate::{
    ask::Ask,
    error::Failed,
    pace::{Pace, Sends},
    percentiles::Percentiles,
    plan::{self, Plan},
    record::{Run, Stream},
    session::Session,
    workload::{
        change,
        fire::{self, Fires},
        pending::Pile,
    },
};

/// The rates of lists that are compared, per second.
pub const LISTS: [u32; 3] = [0, 1, 20];
/// More lists than this are never under way at once.
const LIST_CONNECTIONS_MAX: usize = 20;
/// How long before the first request the measurement of CPU time starts.
const METER_BEFORE_MICROS: i64 = 50_000;

/// The size of the workload.
#[derive(Debug, Clone, Copy)]
pub struct Mixed {
    /// Creates per second, and as many cancels and calls.
    pub rate: u32,
    /// How many of each.
    pub count: u64,
    /// How many connections creates have; cancels have as many.
    pub connections: usize,
}

pub async fn run(session: &Session, workload: &str, mixed: Mixed, lists: u32, pile: &Pile) -> Result<Run, Failed> {
    let canceled = change::prepare(session, mixed.count).await?;
    let created = session.begin_unheard(mixed.count, plan::much_later(session.now()));
    let fires = Fires { timers: mixed.count, destinations: 1, gap_micros: gap(mixed.rate) };
    let (round, first, registered) = fire::prepare_fires(session, fires).await?;
    let sends = |ask, rate: u32, count, connections| Sends {
        ask,
        count,
        at: Plan::Every { first, gap: gap(rate) },
        ahead: Duration::ZERO,
        connections,
    };
    let seconds = mixed.count as f64 / f64::from(mixed.rate);
    let list_count = (f64::from(lists) * seconds).ceil() as u64;
    let list_connections = usize::try_from(lists).unwrap_or(usize::MAX).min(LIST_CONNECTIONS_MAX);
    let mut under_way = Vec::new();
    for (round, rate, sends) in [
        (&created, mixed.rate, sends(Ask::Create, mixed.rate, mixed.count, mixed.connections)),
        (&canceled, mixed.rate, sends(Ask::Cancel, mixed.rate, mixed.count, mixed.connections)),
        (pile.round(), lists, sends(Ask::List, lists, list_count, list_connections)),
    ] {
        if sends.count > 0 {
            under_way.push((sends.ask, rate, Pace::begin(session, round, &sends).await?));
        }
    }
    session.sleep_until(first - METER_BEFORE_MICROS).await;
    let meter = session.meter();
    let mut streams = Vec::new();
    for (ask, rate, pace) in under_way {
        streams.push((ask, rate, pace.finish().await?));
    }
    session.sleep_until(round.plan.due(mixed.count.saturating_sub(1))).await;
    session.wait_for(&round, registered.acknowledged).await;
    let usage = meter.stop().await;
    for left in [&round, &created, &canceled] {
        session.clear(left).await?;
    }
    let mut run = fire::judge(&round, 0..mixed.count, registered);
    let done: u64 = streams.iter().map(|(_, _, answered)| answered.acknowledged).sum();
    run.streams = streams.into_iter().map(|(ask, rate, answered)| Stream::of(ask.name(), rate, answered)).collect();
    run.refused += run.streams.iter().map(|stream| stream.refused).sum::<u64>();
    run.first_refusal = run.first_refusal.or(run.streams.iter().find_map(|stream| stream.first_refusal.clone()));
    Ok(Run {
        workload: workload.to_owned(),
        pending: pile.timers(),
        connections: mixed.connections,
        destinations: 1,
        answers: run.streams.first().map(|creates| creates.answers),
        cpu_micros_each: usage.micros_each(done + round.ledger.arrived()),
        usage,
        ..run
    })
}

impl Stream {
    fn of(name: &str, rate: u32, answered: crate::load::Answered) -> Self {
        Self {
            name: name.to_owned(),
            per_second: f64::from(rate),
            requests: answered.acknowledged + answered.refused,
            refused: answered.refused,
            first_refusal: answered.first_refusal,
            answers: Percentiles::of(answered.answers).unwrap_or_default(),
            behind_max_ms: answered.behind_max as f64 / 1e3,
        }
    }
}

/// Microseconds between two requests.
fn gap(rate: u32) -> i64 {
    1_000_000 / i64::from(rate.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Answered;

    #[test]
    fn a_rate_becomes_a_gap() {
        assert_eq!([1, 20, 1_000, 3_000].map(gap), [1_000_000, 50_000, 1_000, 333]);
    }

    #[test]
    fn a_stream_says_how_many_were_asked_for_and_how_far_it_fell_behind() {
        let answered = Answered {
            acknowledged: 3,
            refused: 1,
            first_refusal: Some("503".to_owned()),
            answers: vec![1_000, 2_000, 3_000, 4_000],
            behind_max: 2_500,
            ..Answered::default()
        };
        let stream = Stream::of("creates", 100, answered);
        assert_eq!((stream.requests, stream.refused, stream.per_second), (4, 1, 100.0));
        assert_eq!((stream.answers.p50, stream.answers.max, stream.behind_max_ms), (2.0, 4.0, 2.5));
    }
}
