//! The results, as they are stored in files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{machine::Machine, percentiles::Percentiles, usage::Usage};

/// Everything that one invocation has measured, and the conditions under which it did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// In RFC 3339.
    pub started_at: String,
    pub service: Service,
    pub machine: Machine,
    /// The speed of the disk at that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<Disk>,
    /// The speed of memory at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    pub ceilings: Vec<Ceiling>,
    pub runs: Vec<Run>,
    /// What a number of pending timers takes.
    #[serde(default)]
    pub held: Vec<Held>,
    /// The rates that were tried on the way to the highest one.
    #[serde(default)]
    pub climb: Vec<Run>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Service {
    pub url: String,
    pub version: String,
    /// The database, such as `SQLite` or `PostgreSQL 17`.
    pub store: String,
    /// The settings with which the service was started, as far as they are known.
    pub settings: BTreeMap<String, String>,
    /// Anything else that must be known to judge the results, in the operator's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// 4 KiB overwritten and synced (fdatasync), one after the other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    pub directory: String,
    pub filesystem: Option<String>,
    pub writes_per_second: f64,
    pub write: Percentiles,
}

/// Memory of this machine, by one thread: other processes, and other virtual machines of the same host, slow it down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// How much was copied from one buffer to another.
    pub copied_gigabytes_per_second: f64,
    /// How long an access takes whose address only the access before it tells.
    pub access_nanoseconds: f64,
}

/// The throughput of this load client and this receiver without a service between them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    pub connections: usize,
    pub posts_per_second: f64,
    pub foreign_share: Option<f64>,
}

/// One run of one workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub workload: String,
    /// Timers that were pending besides, due much later.
    pub pending: u64,
    pub timers: u64,
    pub connections: usize,
    pub destinations: usize,
    /// From the first request to the last answer, or from the first due time to the last arrival.
    pub seconds: f64,
    /// Timers per second during that time.
    pub rate: f64,
    /// The answer times of creates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<Percentiles>,
    /// The lateness of calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Percentiles>,
    /// Requests that were not confirmed.
    pub refused: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_refusal: Option<String>,
    /// Acknowledged timers that never arrived.
    pub lost: u64,
    /// Calls beyond the first of each timer.
    pub duplicates: u64,
    /// Calls that came before their due time.
    pub early: u64,
    /// The requests that were sent at given rates, one entry for each kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<Stream>,
    /// The most calls that a slow receiver had under way at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_max: Option<u64>,
    /// Whether the rate was sustained: at most one timer in a hundred was late, refused or lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_held: Option<bool>,
    pub usage: Usage,
    /// Microseconds of CPU time that the service and its database spent on each timer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_micros_each: Option<f64>,
}

/// Requests of one kind, sent at a given rate whether or not the service keeps up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    pub name: String,
    /// The rate that was wanted.
    pub per_second: f64,
    pub requests: u64,
    pub refused: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_refusal: Option<String>,
    /// From when each request should have been sent to its answer.
    pub answers: Percentiles,
    /// The longest that a request had to wait for a connection, because all were busy with earlier ones.
    pub behind_max_ms: f64,
}

/// An idle service with this many pending timers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Held {
    pub timers: u64,
    /// How fast they were created, in timers per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill_rate: Option<f64>,
    pub resident_bytes: Option<u64>,
    pub resident_bytes_max: Option<u64>,
    /// What the database server takes besides, with its buffers; none where the store is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_bytes: Option<u64>,
    pub store_bytes: Option<u64>,
    /// The time for the first page of all timers, with their count.
    pub first_page_ms: f64,
    /// The time for the count of pending timers, with the first page of them.
    pub count_ms: f64,
}

impl Record {
    /// The median run for each workload and each number of pending timers, in the order in which they were made.
    pub fn medians(&self) -> Vec<&Run> {
        let mut groups: Vec<Vec<&Run>> = Vec::new();
        for run in &self.runs {
            let is_same = |other: &&Run| other.workload == run.workload && other.pending == run.pending;
            match groups.iter_mut().find(|group| group.first().is_some_and(is_same)) {
                Some(group) => group.push(run),
                None => groups.push(vec![run]),
            }
        }
        groups.into_iter().filter_map(middle).collect()
    }

    /// Merges the results of the same store from another time.
    fn merge(&mut self, other: Self) {
        self.disk = self.disk.take().or(other.disk);
        self.memory = self.memory.or(other.memory);
        for ceiling in other.ceilings {
            // Keeps the higher ceiling: under better conditions the load client could do no more than that.
            match self.ceilings.iter_mut().find(|own| own.connections == ceiling.connections) {
                Some(own) if own.posts_per_second >= ceiling.posts_per_second => {}
                Some(own) => *own = ceiling,
                None => self.ceilings.push(ceiling),
            }
        }
        self.runs.extend(other.runs);
        self.held.extend(other.held);
        self.climb.extend(other.climb);
    }

    /// How many posts per second the load client could make over about as many connections.
    pub fn ceiling(&self, connections: usize) -> Option<f64> {
        let nearest = self.ceilings.iter().min_by_key(|ceiling| ceiling.connections.abs_diff(connections))?;
        Some(nearest.posts_per_second)
    }
}

/// One record for each service, store and set of settings, in the order in which they first appear.
pub fn by_service(records: &[Record]) -> Vec<Record> {
    let mut merged: Vec<Record> = Vec::new();
    for record in records {
        // The address differs each time, so it is ignored.
        let key = |record: &Record| Service { url: String::new(), ..record.service.clone() };
        match merged.iter_mut().find(|known| key(known) == key(record) && known.machine == record.machine) {
            Some(known) => known.merge(record.clone()),
            None => merged.push(record.clone()),
        }
    }
    merged
}

/// The workloads whose rate is no result.
const AT_A_GIVEN_RATE: [&str; 4] = ["w3", "mixed", "lists", "slow"];

/// The median run; of two the worse one. Runs at a given rate are ordered by their lateness.
fn middle(mut group: Vec<&Run>) -> Option<&Run> {
    let key = |run: &Run| match run.lateness {
        Some(lateness) if AT_A_GIVEN_RATE.iter().any(|name| run.workload.starts_with(name)) => -lateness.p99,
        _ => run.rate,
    };
    group.sort_by(|a, b| key(a).total_cmp(&key(b)));
    group.get((group.len().checked_sub(1)?) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(workload: &str, pending: u64, rate: f64, p99: f64) -> Run {
        let lateness = Some(Percentiles { p99, ..Percentiles::default() });
        Run { workload: workload.to_owned(), pending, rate, lateness, ..Run::default() }
    }

    #[test]
    fn of_several_runs_the_one_in_the_middle_counts() {
        let runs = vec![
            run("w1", 0, 300.0, 0.0),
            run("w1", 0, 100.0, 0.0),
            run("w3", 0, 500.0, 2.0),
            run("w1", 1_000, 50.0, 0.0),
            run("w1", 0, 200.0, 0.0),
            run("w3", 0, 501.0, 9.0),
            run("w3", 0, 499.0, 3.0),
        ];
        let record = Record { runs, ..Record::default() };
        let medians: Vec<_> = record.medians().iter().map(|run| (run.workload.as_str(), run.pending, run.rate)).collect();
        assert_eq!(medians, [("w1", 0, 200.0), ("w3", 0, 499.0), ("w1", 1_000, 50.0)]);
    }

    #[test]
    fn the_ceiling_is_the_one_over_about_as_many_connections() {
        let ceiling = |connections, posts_per_second| Ceiling { connections, posts_per_second, foreign_share: None };
        let record = Record { ceilings: vec![ceiling(64, 100.0), ceiling(256, 80.0)], ..Record::default() };
        assert_eq!(
            [4, 64, 128, 200, 256].map(|connections| record.ceiling(connections)),
            [Some(100.0), Some(100.0), Some(100.0), Some(80.0), Some(80.0)]
        );
        assert_eq!(Record::default().ceiling(64), None);
    }

    #[test]
    fn records_of_one_service_become_one_and_those_of_another_stay_apart() {
        let record = |store: &str, url: &str, workload: &str, posts_per_second| Record {
            service: Service { store: store.to_owned(), url: url.to_owned(), ..Service::default() },
            ceilings: vec![Ceiling { connections: 64, posts_per_second, foreign_share: None }],
            runs: vec![run(workload, 0, 1.0, 1.0)],
            ..Record::default()
        };
        let records = [record("a", "1", "w1", 5.0), record("b", "2", "w1", 5.0), record("a", "3", "w2", 7.0)];
        let merged = by_service(&records);
        assert_eq!(merged.iter().map(|record| record.service.store.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(merged[0].runs.iter().map(|run| run.workload.as_str()).collect::<Vec<_>>(), ["w1", "w2"]);
        assert_eq!(merged[0].ceilings, [Ceiling { connections: 64, posts_per_second: 7.0, foreign_share: None }]);
    }

    #[test]
    fn a_record_survives_its_file() {
        let mut record = Record { runs: vec![run("w2", 5, 1.5, 2.5)], held: vec![Held::default()], ..Record::default() };
        record.service.settings.insert("MIN_DELAY".to_owned(), "0s".to_owned());
        record.disk = Some(Disk { filesystem: Some("ext4".to_owned()), ..Disk::default() });
        record.memory = Some(Memory { copied_gigabytes_per_second: 5.5, access_nanoseconds: 120.0 });
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
    }
}
