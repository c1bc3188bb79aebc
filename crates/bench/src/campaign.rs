//! One invocation of the benchmark: what is measured, in what order and how often.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use domain::Clock;
use serde_json::Value;

use crate::{
    ceiling, disk,
    error::Failed,
    load::Load,
    machine::Machine,
    memory,
    record::{Held, Record, Run, Service},
    session::Session,
    workload::{
        Workload,
        create::{self, Creates},
        fire::{self, Fires},
        life::{self, Climb},
        pending::Pile,
    },
};

const CEILING_POSTS: u64 = 20_000;
const DISK_TIME: Duration = Duration::from_secs(1);
const MEMORY_TIME: Duration = Duration::from_millis(300);

#[derive(Debug, Clone)]
pub struct Campaign {
    pub workloads: Vec<Workload>,
    /// How often each workload is run; the median run counts.
    pub runs: u32,
    /// The number of timers, instead of each workload's own.
    pub timers: Option<u64>,
    /// The number of connections, instead of each workload's own.
    pub connections: Option<usize>,
    /// The numbers of pending timers in W4, in order.
    pub sizes: Vec<u64>,
    /// A short run that shows that everything works, not how well.
    pub is_quick: bool,
    /// Whether W4 leaves its timers behind, because the database is thrown away anyway.
    pub leaves_pile: bool,
    /// The directory in which the disk is probed.
    pub directory: PathBuf,
    /// The settings with which the service was started, as far as they are known.
    pub settings: BTreeMap<String, String>,
    /// Anything else that must be known to judge the results.
    pub note: Option<String>,
}

/// What is reported while it runs.
#[derive(Debug)]
pub enum Note<'a> {
    Doing(&'a str),
    Done(&'a Run),
    Held(&'a Held),
}

pub type Tell<'a> = &'a mut dyn FnMut(Note<'_>);

impl Campaign {
    pub async fn run(&self, session: &Session, tell: Tell<'_>) -> Result<Record, Failed> {
        let mut record = self.conditions(session.clock.as_ref(), tell);
        record.service = self.service(session).await?;
        for connections in self.ceiling_connections() {
            tell(Note::Doing(&format!("load without a service, over {connections} connections")));
            record.ceilings.push(ceiling::measure(session, connections, self.ceiling_posts()).await?);
        }
        for workload in &self.workloads {
            self.measure(session, *workload, &mut record, tell).await?;
        }
        Ok(record)
    }

    /// An empty record with the machine and its speed.
    pub(crate) fn conditions(&self, clock: &dyn Clock, tell: Tell<'_>) -> Record {
        let mut record = Record { started_at: clock.now().to_string(), machine: Machine::here(), ..Record::default() };
        tell(Note::Doing("the disk"));
        // A failed probe makes the results harder to judge, but not worthless.
        record.disk = disk::probe(&self.directory, self.brief(DISK_TIME), clock).ok();
        tell(Note::Doing("memory"));
        record.memory = Some(memory::probe(self.brief(MEMORY_TIME), self.is_quick, clock));
        record
    }

    /// Runs one workload as often as is asked for, and adds the results to `record`.
    pub(crate) async fn measure(
        &self,
        session: &Session,
        workload: Workload,
        record: &mut Record,
        tell: Tell<'_>,
    ) -> Result<(), Failed> {
        match workload {
            Workload::W4 => self.pile(session, record, tell).await?,
            Workload::W5 => {
                let (climb, hold) = life::run(session, self.climb(), tell).await?;
                tell(Note::Done(&hold));
                record.climb = climb;
                record.runs.push(hold);
            }
            simple => self.repeat(session, simple, 0, record, tell).await?,
        }
        Ok(())
    }

    pub(crate) async fn service(&self, session: &Session) -> Result<Service, Failed> {
        let cluster: Value = serde_json::from_slice(&session.get("/cluster").await?).unwrap_or_default();
        let version = cluster["data"]["nodes"][0]["version"].as_str();
        let version =
            version.ok_or_else(|| Failed::Run(format!("what answers at {} is no timer service.", session.target.host)))?;
        Ok(Service {
            url: format!("http://{}", session.target.host),
            version: version.to_owned(),
            store: session.watched.store().unwrap_or_else(|| "unknown store".to_owned()),
            settings: self.settings.clone(),
            note: self.note.clone(),
        })
    }

    async fn repeat(
        &self,
        session: &Session,
        workload: Workload,
        pending: u64,
        record: &mut Record,
        tell: Tell<'_>,
    ) -> Result<(), Failed> {
        for _ in 0..self.runs.max(1) {
            tell(Note::Doing(&describe(workload, pending)));
            let mut run = match self.shape(workload) {
                Shape::Creates(creates) => create::run(session, workload.name(), creates).await?,
                Shape::Fires(fires) => fire::run(session, workload.name(), fires).await?,
            };
            run.pending = pending;
            tell(Note::Done(&run));
            record.runs.push(run);
        }
        Ok(())
    }

    async fn pile(&self, session: &Session, record: &mut Record, tell: Tell<'_>) -> Result<(), Failed> {
        let mut sizes = self.sizes.clone();
        sizes.sort_unstable();
        let mut pile = Pile::begin(session, sizes.last().copied().unwrap_or_default());
        // The baseline without pending timers.
        sizes.insert(0, 0);
        for size in sizes {
            tell(Note::Doing(&describe(Workload::W4, size)));
            let held = pile.grow(session, size).await?;
            tell(Note::Held(&held));
            record.held.push(held);
            // Without pending timers, W1 and W2 are workloads of their own.
            let again: &[Workload] = if size > 0 { &[Workload::W1, Workload::W2] } else { &[] };
            for workload in again {
                self.repeat(session, *workload, pile.timers(), record, tell).await?;
            }
        }
        if !self.leaves_pile {
            tell(Note::Doing("canceling what is pending"));
            pile.clear(session).await?;
        }
        Ok(())
    }

    fn shape(&self, workload: Workload) -> Shape {
        let timers = |usual: u64| self.timers.unwrap_or(if self.is_quick { usual / 10 } else { usual });
        let creates = |usual, connections, timers_per_request| {
            let connections = self.connections.unwrap_or(connections).max(1);
            Shape::Creates(Creates { timers: timers(usual), load: Load { connections, timers_per_request } })
        };
        let fires = |usual, destinations, gap_micros| Shape::Fires(Fires { timers: timers(usual), destinations, gap_micros });
        match workload {
            Workload::W1c => creates(20_000, 256, 1),
            Workload::W1b => creates(100_000, 8, 500),
            Workload::W2 => fires(20_000, 1, 0),
            Workload::W2x => fires(100_000, 100, 0),
            Workload::W3 => fires(15_000, 1, 2_000),
            Workload::W1 | Workload::W4 | Workload::W5 => creates(20_000, 64, 1),
        }
    }

    fn climb(&self) -> Climb {
        let connections = self.connections.unwrap_or(256).max(1);
        if self.is_quick {
            Climb { first_rate: 500.0, factor: 2.0, step_seconds: 1.0, hold_seconds: 5.0, connections }
        } else {
            Climb { first_rate: 2_000.0, factor: 1.3, step_seconds: 3.0, hold_seconds: 60.0, connections }
        }
    }

    fn ceiling_connections(&self) -> Vec<usize> {
        match self.connections {
            Some(connections) => vec![connections.max(1)],
            None if self.workloads.iter().any(|workload| matches!(workload, Workload::W1c | Workload::W5)) => vec![64, 256],
            None => vec![64],
        }
    }

    const fn ceiling_posts(&self) -> u64 {
        if self.is_quick { CEILING_POSTS / 10 } else { CEILING_POSTS }
    }

    fn brief(&self, usual: Duration) -> Duration {
        if self.is_quick { usual / 10 } else { usual }
    }
}

enum Shape {
    Creates(Creates),
    Fires(Fires),
}

fn describe(workload: Workload, pending: u64) -> String {
    let about = workload.about();
    if pending == 0 { format!("{workload}: {about}") } else { format!("{workload}: {about}, {pending} pending") }
}
