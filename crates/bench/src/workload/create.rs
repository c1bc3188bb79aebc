//! W1: how fast timers are registered, each one on disk before its answer.

use crate::{error::Failed, load::Load, percentiles::Percentiles, plan::Plan, record::Run, session::Session};

const AHEAD_MICROS: i64 = 600_000_000;
const GAP_MICROS: i64 = 1_000;

/// The size of the workload.
#[derive(Debug, Clone, Copy)]
pub struct Creates {
    pub timers: u64,
    pub load: Load,
}

pub async fn run(session: &Session, workload: &str, creates: Creates) -> Result<Run, Failed> {
    let Creates { timers, load } = creates;
    let plan = Plan::Every { first: session.now() + AHEAD_MICROS, gap: GAP_MICROS };
    let round = session.begin(timers, 1, plan);
    let meter = session.meter();
    let created = session.create(&round, 0..timers, load).await?;
    let usage = meter.stop().await;
    session.clear(&round).await?;
    Ok(Run {
        workload: workload.to_owned(),
        timers,
        connections: load.connections,
        destinations: 1,
        seconds: created.seconds,
        rate: created.rate(),
        refused: created.refused,
        cpu_micros_each: usage.micros_each(created.acknowledged),
        usage,
        answers: Percentiles::of(created.answers),
        first_refusal: created.first_refusal,
        ..Run::default()
    })
}
