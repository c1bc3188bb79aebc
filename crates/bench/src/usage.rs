//! The share of the machine that a run takes: the service, its database, the load itself, and all other processes.

use std::{fs, sync::Arc, time::Duration};

use domain::Clock;
use serde::{Deserialize, Serialize};

use crate::processes::{self, Watched};

const TICKS_PER_SECOND: f64 = 100.0;
/// The polling interval for the end of work: a service that has answered still records results, and its database follows.
const QUIET_STEP: Duration = Duration::from_millis(100);
const QUIET_STEPS_MAX: u32 = 20;
/// CPU seconds below which a step counts as idle.
const QUIET_SECONDS_MAX: f64 = 0.011;

/// The CPU time of one run, in seconds. Values that could not be read are missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    pub service_seconds: Option<f64>,
    pub database_seconds: Option<f64>,
    pub bench_seconds: Option<f64>,
    /// The share of the machine that other processes took meanwhile: 1 is all of it.
    pub foreign_share: Option<f64>,
    /// The share that the host of a virtual machine took away (steal).
    pub stolen_share: Option<f64>,
}

impl Usage {
    /// Microseconds of CPU that service and database spent on each of `operations`.
    pub fn micros_each(&self, operations: u64) -> Option<f64> {
        let seconds = self.service_seconds? + self.database_seconds.unwrap_or_default();
        (operations > 0).then(|| seconds * 1e6 / operations as f64)
    }
}

/// Compares two moments.
pub struct Meter {
    clock: Arc<dyn Clock>,
    watched: Watched,
    before: Sample,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sample {
    machine: Option<Machine>,
    service: Option<f64>,
    database: Option<f64>,
    bench: Option<f64>,
}

/// The first line of `/proc/stat`, in seconds summed over all cores.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Machine {
    busy: f64,
    stolen: f64,
    all: f64,
}

impl Meter {
    pub fn start(clock: &Arc<dyn Clock>, watched: Watched) -> Self {
        Self { clock: clock.clone(), watched, before: sample(watched) }
    }

    /// Ends the measurement: what all processes took until now, plus what service and database take until they are idle.
    pub async fn stop(self) -> Usage {
        let done = sample(self.watched);
        let mut last = done;
        let began = self.clock.monotonic();
        for step in 1..=QUIET_STEPS_MAX {
            let next = QUIET_STEP * step;
            tokio::time::sleep(next.saturating_sub(self.clock.monotonic().saturating_sub(began))).await;
            let now = sample(self.watched);
            let worked = |now: Option<f64>, last: Option<f64>| now.zip(last).map_or(0.0, |(now, last)| now - last);
            let quiet = worked(now.service, last.service) + worked(now.database, last.database) <= QUIET_SECONDS_MAX;
            last = now;
            if quiet {
                break;
            }
        }
        compare(&self.before, &done, &last)
    }
}

fn compare(before: &Sample, done: &Sample, quiet: &Sample) -> Usage {
    let spent = |from: Option<f64>, to: Option<f64>| Some((to? - from?).max(0.0));
    let ours = [(before.service, done.service), (before.database, done.database), (before.bench, done.bench)];
    let ours: f64 = ours.into_iter().filter_map(|(from, to)| spent(from, to)).sum();
    let machine = before.machine.zip(done.machine).filter(|(from, to)| to.all > from.all);
    Usage {
        service_seconds: spent(before.service, quiet.service),
        database_seconds: spent(before.database, quiet.database),
        bench_seconds: spent(before.bench, done.bench),
        foreign_share: machine.map(|(from, to)| ((to.busy - from.busy - ours) / (to.all - from.all)).clamp(0.0, 1.0)),
        stolen_share: machine.map(|(from, to)| ((to.stolen - from.stolen) / (to.all - from.all)).clamp(0.0, 1.0)),
    }
}

fn sample(watched: Watched) -> Sample {
    Sample {
        machine: fs::read_to_string("/proc/stat").ok().and_then(|stat| parse_machine(&stat)),
        service: watched.service_cpu_seconds(),
        database: watched.database_cpu_seconds(),
        bench: processes::own_cpu_seconds(),
    }
}

fn parse_machine(stat: &str) -> Option<Machine> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let seconds: Vec<f64> = line.split_whitespace().map_while(|ticks| ticks.parse().ok()).collect();
    // Guest time, the last two fields, is part of user time already.
    let [user, nice, system, idle, waiting, hard, soft, stolen, ..] = seconds[..] else { return None };
    let busy = (user + nice + system + hard + soft) / TICKS_PER_SECOND;
    let stolen = stolen / TICKS_PER_SECOND;
    Some(Machine { busy, stolen, all: busy + stolen + (idle + waiting) / TICKS_PER_SECOND })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_none_of_our_processes_took_was_taken_by_other_ones() {
        let machine = |busy, stolen, all| Some(Machine { busy, stolen, all });
        let before = Sample { machine: machine(10.0, 1.0, 100.0), service: Some(1.0), database: None, bench: Some(2.0) };
        let done = Sample { machine: machine(18.0, 1.5, 110.0), service: Some(4.0), database: None, bench: Some(4.0) };
        let quiet = Sample { machine: None, service: Some(4.5), database: None, bench: Some(4.1) };
        let usage = compare(&before, &done, &quiet);
        assert_eq!(usage.service_seconds, Some(3.5));
        assert_eq!((usage.bench_seconds, usage.database_seconds), (Some(2.0), None));
        assert_eq!((usage.foreign_share, usage.stolen_share), (Some(0.3), Some(0.05)));
        assert_eq!(usage.micros_each(1_000), Some(3_500.0));
        assert_eq!(Usage::default().micros_each(1_000), None);
    }

    #[test]
    fn the_first_line_of_stat_is_the_whole_machine() {
        let stat = "cpu  100 50 150 1000 200 30 70 100 40 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n";
        assert_eq!(parse_machine(stat), Some(Machine { busy: 4.0, stolen: 1.0, all: 17.0 }));
        assert_eq!(parse_machine("intr 1"), None);
    }
}
