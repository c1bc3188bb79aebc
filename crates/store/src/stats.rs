use std::{collections::BTreeMap, time::Duration};

use domain::{DurationHistogram, Namespace, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{NodeId, Unreadable};

/// Which pending timers are counted, by the minute in which they are due.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DueQuery {
    /// Empty: every namespace.
    pub namespaces: Vec<Namespace>,
    /// The first minute, and the one after the last.
    pub from: i64,
    pub to: i64,
    /// How many minutes a bucket has; at least one.
    pub step: i64,
    /// What is due later than this is not claimed by any node.
    pub now: Timestamp,
    pub budget: Duration,
}

impl DueQuery {
    /// How many buckets the answer has when everything is counted. The last may be cut short by `to`.
    pub fn buckets(&self) -> usize {
        let minutes = self.to.saturating_sub(self.from).max(0);
        usize::try_from(minutes.div_euclid(self.step) + i64::from(minutes.rem_euclid(self.step) != 0)).unwrap_or(0)
    }

    /// The bucket of a minute, if it is counted.
    pub fn bucket(&self, minute: i64) -> Option<usize> {
        (self.from..self.to).contains(&minute).then(|| usize::try_from((minute - self.from).div_euclid(self.step)).ok()).flatten()
    }
}

/// How many timers are pending in each bucket.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DueCounts {
    /// In the order of time. There are fewer than the query has where the budget ran out.
    pub pending: Vec<u64>,
    /// Whether a part of the timers was counted and the rest inferred from it.
    pub is_estimate: bool,
}

/// What happened within one minute.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Digest {
    /// Timers that were registered.
    pub created: u64,
    /// Calls that were made.
    pub fired: u64,
    /// Timers that ended well.
    pub completed: u64,
    /// Timers that ended as failed; expired ones are not counted.
    pub failed: u64,
    /// Calls that failed and are repeated.
    pub retried: u64,
    pub lateness_max_micros: u64,
    pub lateness: DurationHistogram,
    /// The keys that were used, by id, and when each was, in microseconds. In the digest of all namespaces alone.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub keys_used: BTreeMap<String, i64>,
}

impl Digest {
    pub fn add(&mut self, other: &Self) {
        self.created += other.created;
        self.fired += other.fired;
        self.completed += other.completed;
        self.failed += other.failed;
        self.retried += other.retried;
        self.lateness_max_micros = self.lateness_max_micros.max(other.lateness_max_micros);
        self.lateness.add(&other.lateness);
        self.note_keys(&other.keys_used);
    }

    /// When keys were used, as far as that is later than what it knows.
    pub fn note_keys(&mut self, used: &BTreeMap<String, i64>) {
        for (key, at) in used {
            let latest = self.keys_used.entry(key.clone()).or_insert(*at);
            *latest = (*latest).max(*at);
        }
    }
}

/// What one node did within one minute: in one namespace, or in all of them together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeDigest {
    pub node: NodeId,
    pub minute: i64,
    /// `None`: all namespaces.
    pub namespace: Option<Namespace>,
    pub digest: Digest,
}

/// What one node knows of one receiver of one namespace. Its parts are marked with their times, so that a reader can tell what is
/// recent by its own clock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReceiverReport {
    pub in_flight: u32,
    /// How calls ended: the slot of time ([`SLOT_MICROS`]), how many delivered, and how many did not. The oldest first.
    pub calls: Vec<(i64, u32, u32)>,
    /// How long calls took, by the span of time ([`GENERATION_MICROS`]) in which they ended. The oldest first.
    pub took: Vec<(i64, DurationHistogram)>,
    /// Since the last call that delivered.
    pub failures_in_a_row: u32,
    pub delivered_at_micros: Option<i64>,
    pub failed_at_micros: Option<i64>,
    pub last_error: Option<String>,
    /// How many failed calls are repeated, by the minute up to which each is.
    pub retries: Vec<(i64, u32)>,
}

/// How long a slot of [`ReceiverReport::calls`] is.
pub const SLOT_MICROS: i64 = 10_000_000;
/// How long a span of [`ReceiverReport::took`] is.
pub const GENERATION_MICROS: i64 = 300_000_000;

/// What one node knows of one receiver, as it wrote it down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReceiver {
    pub node: NodeId,
    pub namespace: Namespace,
    /// `host:port`, or a NATS subject.
    pub destination: String,
    pub written_at: Timestamp,
    pub report: ReceiverReport,
}

/// What a node writes down from time to time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStats {
    pub digests: Vec<NodeDigest>,
    pub receivers: Vec<NodeReceiver>,
    /// What any node wrote about earlier times is removed.
    pub forget_before: Timestamp,
}

impl NodeStats {
    pub const fn is_empty(&self) -> bool {
        self.digests.is_empty() && self.receivers.is_empty()
    }
}

/// The most receivers that are read at once: those that were written last.
pub const RECEIVERS_READ_MAX: usize = 10_000;
/// The most namespaces that are listed.
pub const NAMESPACES_LISTED_MAX: usize = 1_000;

/// What a namespace has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceCount {
    pub namespace: Namespace,
    pub pending: u64,
    pub failed: u64,
    /// When its oldest pending timer was due, if one is overdue.
    pub oldest_overdue: Option<Timestamp>,
}

/// What namespaces have, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamespaceCounts {
    /// At most [`NAMESPACES_LISTED_MAX`].
    pub namespaces: Vec<NamespaceCount>,
    /// Whether a part of the pending timers was counted and the rest inferred from it.
    pub pending_is_estimate: bool,
    /// Whether there are more failed ones than were counted.
    pub failed_is_estimate: bool,
    /// Whether there are no more namespaces than these.
    pub is_complete: bool,
}

/// The text of a report, as stores keep it.
pub fn write_report<T: Serialize>(report: &T) -> String {
    // Neither keys nor values can be refused: all of them are numbers and texts.
    serde_json::to_string(report).unwrap_or_default()
}

/// What [`write_report`] wrote, by this version or another.
pub fn read_report<T: for<'a> Deserialize<'a>>(text: &str) -> Result<T, Unreadable> {
    serde_json::from_str(text).map_err(|error| Unreadable(format!("a report cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_one_another_and_the_last_may_be_short() {
        let query = |from, to, step| DueQuery {
            namespaces: Vec::new(),
            from,
            to,
            step,
            now: Timestamp::from_micros(0),
            budget: Duration::ZERO,
        };
        for (from, to, step, buckets) in [(0, 60, 1, 60), (0, 60, 7, 9), (5, 5, 1, 0), (5, 4, 1, 0), (-3, 3, 6, 1)] {
            assert_eq!(query(from, to, step).buckets(), buckets, "{from} to {to} by {step}");
        }
        let query = query(10, 20, 4);
        for (minute, bucket) in [(9, None), (10, Some(0)), (13, Some(0)), (14, Some(1)), (19, Some(2)), (20, None)] {
            assert_eq!(query.bucket(minute), bucket, "{minute}");
        }
    }

    #[test]
    fn a_report_of_another_version_is_read_as_far_as_it_is_known() {
        let digest = Digest { fired: 3, failed: 1, ..Digest::default() };
        assert_eq!(read_report::<Digest>(&write_report(&digest)).unwrap(), digest);
        assert_eq!(read_report::<Digest>(r#"{"fired": 3, "failed": 1, "hopes": 7}"#).unwrap(), digest);
        assert!(read_report::<Digest>("{").is_err());
    }
}
