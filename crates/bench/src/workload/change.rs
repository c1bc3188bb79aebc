//! How fast single timers are canceled and updated, each change on disk before its answer.

use crate::{
    ask::Ask,
    error::Failed,
    load::Load,
    percentiles::Percentiles,
    plan,
    record::Run,
    session::{Round, Session},
    workload::create::Creates,
};

/// The timers are created in batches, because only their changes are measured.
const PREPARATION: Load = Load { connections: 4, timers_per_request: 500 };

/// Creates timers that are due much later, and then sends `ask` for each of them.
pub async fn run(session: &Session, workload: &str, ask: Ask, changes: Creates) -> Result<Run, Failed> {
    let Creates { timers, load } = changes;
    let round = prepare(session, timers).await?;
    let meter = session.meter();
    let answered = session.send(ask, &round, 0..timers, load).await?;
    let usage = meter.stop().await;
    session.clear(&round).await?;
    Ok(Run {
        workload: workload.to_owned(),
        timers,
        connections: load.connections,
        destinations: 1,
        seconds: answered.seconds,
        rate: answered.rate(),
        refused: answered.refused,
        cpu_micros_each: usage.micros_each(answered.acknowledged),
        usage,
        answers: Percentiles::of(answered.answers),
        first_refusal: answered.first_refusal,
        ..Run::default()
    })
}

/// Timers with ids that are due much later. Returns once the service has nothing left to do for them.
pub async fn prepare(session: &Session, timers: u64) -> Result<Round, Failed> {
    let round = Round { has_ids: true, ..session.begin_unheard(timers, plan::much_later(session.now())) };
    let created = session.create(&round, 0..timers, PREPARATION).await?;
    if created.refused > 0 {
        let why = created.first_refusal.unwrap_or_default();
        return Err(Failed::Run(format!("the service did not take all of {timers} timers to be changed: {why}.")));
    }
    session.meter().stop().await;
    Ok(round)
}
