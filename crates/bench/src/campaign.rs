//! One invocation of the benchmark: what is measured, in what order and how often.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use domain::Clock;
use serde_json::Value;

use crate::{
    ceiling, disk,
    error::Failed,
    machine::Machine,
    memory,
    progress::{Note, Tell},
    record::{Record, Service},
    session::Session,
    shape::{Scale, Shape},
    workload::{
        Workload, change, create, fire, life,
        mixed::{self, Mixed},
        pending::Pile,
        slow,
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
    /// How many creates, cancels and calls a second the mixed load has of each, instead of its own number.
    pub rate: Option<u32>,
    /// How many timers are pending beside the mixed load.
    pub pending: u64,
    /// The numbers of pending timers in W4, in order.
    pub sizes: Vec<u64>,
    /// A short run that shows that everything works, not how well.
    pub is_quick: bool,
    /// Whether W4 and the mixed load leave their pending timers behind, because the database is thrown away anyway.
    pub leaves_pile: bool,
    /// The directory in which the disk is probed.
    pub directory: PathBuf,
    /// The settings with which the service was started, as far as they are known.
    pub settings: BTreeMap<String, String>,
    /// Anything else that must be known to judge the results.
    pub note: Option<String>,
}

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
        match Shape::of(workload, self.scale()) {
            Shape::Pile => self.pile(session, record, tell).await,
            Shape::Mixed(mixed, lists) => self.mix(session, workload, mixed, lists, record, tell).await,
            Shape::Climb(climb) => {
                let (climb, hold) = life::run(session, climb, tell).await?;
                tell(Note::Done(&hold));
                record.climb = climb;
                record.runs.push(hold);
                Ok(())
            }
            Shape::Creates(_) | Shape::Changes(..) | Shape::Fires(_) | Shape::Slow(_) => {
                self.repeat(session, workload, 0, record, tell).await
            }
        }
    }

    const fn scale(&self) -> Scale {
        Scale { timers: self.timers, connections: self.connections, rate: self.rate, is_quick: self.is_quick }
    }

    /// The most receivers that a workload calls.
    pub fn destinations(&self) -> usize {
        self.workloads.iter().map(|workload| Shape::of(*workload, self.scale()).destinations()).max().unwrap_or(1)
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
            let name = workload.name();
            let mut run = match Shape::of(workload, self.scale()) {
                Shape::Creates(creates) => create::run(session, name, creates).await?,
                Shape::Changes(ask, changes) => change::run(session, name, ask, changes).await?,
                Shape::Fires(fires) => fire::run(session, name, fires).await?,
                Shape::Slow(slow) => slow::run(session, name, slow).await?,
                Shape::Pile | Shape::Climb(_) | Shape::Mixed(..) => return Ok(()),
            };
            run.pending = pending;
            tell(Note::Done(&run));
            record.runs.push(run);
        }
        Ok(())
    }

    /// Runs the mixed load once for each rate of lists, on one pile.
    async fn mix(
        &self,
        session: &Session,
        workload: Workload,
        mixed: Mixed,
        lists: &[u32],
        record: &mut Record,
        tell: Tell<'_>,
    ) -> Result<(), Failed> {
        let mut pile = Pile::begin_in_one_namespace(session, self.pending);
        tell(Note::Doing(&format!("{workload}: creating {} pending timers", self.pending)));
        pile.fill(session, self.pending).await?;
        for _ in 0..self.runs.max(1) {
            for rate in lists {
                let name = if workload == Workload::Lists { format!("{workload} {rate}/s") } else { workload.to_string() };
                tell(Note::Doing(&format!("{name}: {}", workload.about())));
                let run = mixed::run(session, &name, mixed, *rate, &pile).await?;
                tell(Note::Done(&run));
                record.runs.push(run);
            }
        }
        if self.leaves_pile { Ok(()) } else { pile.clear(session).await }
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

fn describe(workload: Workload, pending: u64) -> String {
    let about = workload.about();
    if pending == 0 { format!("{workload}: {about}") } else { format!("{workload}: {about}, {pending} pending") }
}
