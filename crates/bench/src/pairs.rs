//! Two builds in turns: each workload runs against one, then the other, so that both meet the same weather.
//!
//! ```text
//!   w1  ours ─ other ─ ours ─ other ─ …   one ratio for each pair; the median counts, and the range tells how sure it is
//!   w2  ours ─ other ─ …
//! ```
//!
//! Each run has a service and a database of its own, so that none meets what another has left.

use std::{net::IpAddr, sync::Arc, time::Duration};

use domain::Clock;
use serde::{Deserialize, Serialize};

use crate::{
    campaign::Campaign,
    embedded::{Embedded, Wanted},
    error::Failed,
    machine::Machine,
    progress::{Note, Tell},
    ratio::{Pair, Ratios, ratios},
    record::{Disk, Memory, Record, Run, Service},
    session::Session,
    workload::Workload,
};

/// What is compared, and how.
#[derive(Debug)]
pub struct Pairs {
    /// What is run; `runs` is the number of pairs.
    pub campaign: Campaign,
    pub ours: Wanted,
    pub other: Wanted,
    /// The address of this machine as the services reach it.
    pub receiver: IpAddr,
}

/// Everything that the pairs have measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// In RFC 3339.
    pub started_at: String,
    pub machine: Machine,
    pub disk: Option<Disk>,
    pub memory: Option<Memory>,
    pub ours: Side,
    pub other: Side,
    /// Ours divided by the other's.
    pub ratios: Vec<Ratios>,
    pub pairs: Vec<Pair>,
}

/// One of the two builds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Side {
    pub program: String,
    /// The service as the last run found it.
    pub service: Service,
}

impl Pairs {
    pub async fn run(&self, clock: &Arc<dyn Clock>, tell: Tell<'_>) -> Result<Comparison, Failed> {
        let Record { started_at, machine, disk, memory, .. } = self.campaign.conditions(clock.as_ref(), tell);
        let mut comparison = Comparison { started_at, machine, disk, memory, ..Comparison::default() };
        for workload in &self.campaign.workloads {
            for pair in 1..=self.campaign.runs.max(1) {
                let say = |side: &str| format!("{workload}, pair {pair}, {side}");
                tell(Note::Doing(&say("ours")));
                let (ours, runs) = self.run_once(&self.ours, *workload, clock, &mut named("ours", tell)).await?;
                tell(Note::Doing(&say("the other")));
                let (other, other_runs) = self.run_once(&self.other, *workload, clock, &mut named("the other", tell)).await?;
                (comparison.ours, comparison.other) = (ours, other);
                comparison.pairs.extend(matched(runs, other_runs));
            }
        }
        comparison.ratios = ratios(&comparison.pairs);
        Ok(comparison)
    }

    async fn run_once(
        &self,
        wanted: &Wanted,
        workload: Workload,
        clock: &Arc<dyn Clock>,
        tell: Tell<'_>,
    ) -> Result<(Side, Vec<Run>), Failed> {
        let started = Embedded::start(wanted).await?;
        let once = Campaign { runs: 1, leaves_pile: true, ..self.campaign.clone() };
        let target = started.target().clone();
        let session = Session::open(target, self.receiver, once.destinations(), Duration::ZERO, clock.clone())?;
        let service = once.service(&session).await?;
        let mut record = Record::default();
        once.measure(&session, workload, &mut record, tell).await?;
        Ok((Side { program: wanted.program.display().to_string(), service }, record.runs))
    }
}

/// Reports the runs of one side under its name.
fn named(side: &str, tell: Tell<'_>) -> impl FnMut(Note<'_>) {
    move |note| match note {
        Note::Done(run) => tell(Note::Done(&Run { workload: format!("{} {side}", run.workload), ..run.clone() })),
        note => tell(note),
    }
}

/// The runs of the same workload beside the same number of pending timers.
fn matched(ours: Vec<Run>, mut others: Vec<Run>) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for run in ours {
        let is_same = |other: &Run| (&other.workload, other.pending) == (&run.workload, run.pending);
        if let Some(at) = others.iter().position(is_same) {
            pairs.push(Pair { other: others.remove(at), ours: run });
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_two_runs_of_one_workload_beside_as_many_pending_timers() {
        let run = |workload: &str, pending, rate| Run { workload: workload.to_owned(), pending, rate, ..Run::default() };
        let ours = vec![run("w1", 10, 1.0), run("w1", 20, 2.0), run("w2", 10, 3.0)];
        let other = vec![run("w1", 20, 4.0), run("w1", 10, 5.0)];
        let rates: Vec<_> = matched(ours, other).iter().map(|pair| (pair.ours.rate, pair.other.rate)).collect();
        assert_eq!(rates, [(1.0, 5.0), (2.0, 4.0)]);
    }
}
