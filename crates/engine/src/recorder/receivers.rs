use std::{
    collections::{BTreeMap, hash_map::RandomState},
    hash::BuildHasher,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering},
    },
};

use domain::{Definition, Namespace, Span, Timestamp};
use store::{GENERATION_MICROS, NodeId, NodeReceiver, ReceiverReport, SLOT_MICROS};

use super::CallEnd;

/// How many receivers are in memory. While there are as many, calls to others are not counted by receiver.
const RECEIVERS_MAX: usize = 4_096;
/// How many are written at once; the rest follow with the next write.
const WRITTEN_MAX: usize = 1_000;
/// The time without calls after which a receiver is dropped, unless calls to it are still to be retried.
const IDLE_MAX: Span = Span::from_secs(15 * 60);
/// How many slots, and how many longer spans, are remembered: together ten minutes, and those that are not over.
const SLOTS_KEPT: i64 = 61;
const GENERATIONS_KEPT: i64 = 3;
const ERROR_CHARS_MAX: usize = 200;
const MINUTES_PER_HOUR: i64 = 60;
/// Retries that are due later than this are counted as due then.
const RETRIES_AHEAD_MAX: i64 = 7 * 24 * MINUTES_PER_HOUR;

/// The receivers that were called of late.
#[derive(Debug, Default)]
pub(super) struct Receivers {
    /// The receivers by a hash of namespace and address, so that a look-up needs no text of its own.
    known: Mutex<BTreeMap<u64, Vec<Arc<Receiver>>>>,
    count: AtomicU32,
    hasher: RandomState,
}

/// One receiver, as one namespace calls it.
#[derive(Debug)]
pub(super) struct Receiver {
    namespace: Namespace,
    destination: String,
    in_flight: AtomicU32,
    is_written: AtomicBool,
    moved_at: AtomicI64,
    report: Mutex<ReceiverReport>,
}

impl Receivers {
    /// The receiver of a callback; `None` for an event, and where there is no memory for one more.
    pub(super) fn find(&self, definition: &Definition, now: Timestamp) -> Option<Arc<Receiver>> {
        let called = definition.callback.address()?;
        let hash = self.hasher.hash_one((&definition.namespace, &called));
        let mut known = self.known();
        let same_hash = known.get(&hash).map(Vec::as_slice).unwrap_or_default();
        let is_meant =
            |receiver: &&Arc<Receiver>| receiver.namespace == definition.namespace && called.is_written(&receiver.destination);
        if let Some(receiver) = same_hash.iter().find(is_meant) {
            return Some(Arc::clone(receiver));
        }
        if self.count.load(Ordering::Relaxed) as usize >= RECEIVERS_MAX {
            return None;
        }
        let receiver = Arc::new(Receiver {
            namespace: definition.namespace.clone(),
            destination: called.to_string(),
            in_flight: AtomicU32::new(0),
            is_written: AtomicBool::new(true),
            moved_at: AtomicI64::new(now.as_micros()),
            report: Mutex::default(),
        });
        known.entry(hash).or_default().push(Arc::clone(&receiver));
        self.count.fetch_add(1, Ordering::Relaxed);
        Some(receiver)
    }

    pub(super) fn all(&self, node: NodeId, now: Timestamp) -> Vec<NodeReceiver> {
        self.known().values().flatten().map(|receiver| receiver.written(node, now)).collect()
    }

    /// Those with calls since the last time or under way, at most [`WRITTEN_MAX`]; they count as written from now on. Receivers that
    /// are long idle are dropped.
    pub(super) fn take_unwritten(&self, node: NodeId, now: Timestamp) -> Vec<NodeReceiver> {
        let mut known = self.known();
        known.retain(|_, same_hash| {
            same_hash.retain(|receiver| !receiver.is_idle(now));
            !same_hash.is_empty()
        });
        self.count.store(u32::try_from(known.values().map(Vec::len).sum::<usize>()).unwrap_or(u32::MAX), Ordering::Relaxed);
        let moved = known
            .values()
            .flatten()
            .filter(|receiver| !receiver.is_written.load(Ordering::Relaxed) || receiver.in_flight.load(Ordering::Relaxed) > 0);
        let take = |receiver: &Arc<Receiver>| {
            receiver.is_written.store(true, Ordering::Relaxed);
            receiver.written(node, now)
        };
        moved.take(WRITTEN_MAX).map(take).collect()
    }

    /// The last write failed, or its outcome is unknown.
    pub(super) fn mark_unwritten(&self) {
        self.known().values().flatten().for_each(|receiver| receiver.is_written.store(false, Ordering::Relaxed));
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<u64, Vec<Arc<Receiver>>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Receiver {
    pub(super) fn begin(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn leave(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.is_written.store(false, Ordering::Relaxed);
    }

    pub(super) fn ended(&self, end: &CallEnd<'_>) {
        self.moved_at.store(end.at.as_micros(), Ordering::Relaxed);
        note(&mut self.report(), end);
    }

    fn is_idle(&self, now: Timestamp) -> bool {
        let moved_at = Timestamp::from_micros(self.moved_at.load(Ordering::Relaxed));
        let is_quiet = self.in_flight.load(Ordering::Relaxed) == 0 && now.since(moved_at) > IDLE_MAX;
        is_quiet && self.report().retries.iter().all(|(minute, _)| *minute < now.minute())
    }

    fn written(&self, node: NodeId, now: Timestamp) -> NodeReceiver {
        let report = ReceiverReport { in_flight: self.in_flight.load(Ordering::Relaxed), ..self.report().clone() };
        let (namespace, destination) = (self.namespace.clone(), self.destination.clone());
        NodeReceiver { node, namespace, destination, written_at: now, report }
    }

    fn report(&self) -> MutexGuard<'_, ReceiverReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn note(report: &mut ReceiverReport, end: &CallEnd<'_>) {
    let micros = end.at.as_micros();
    let (slot, generation) = (micros.div_euclid(SLOT_MICROS), micros.div_euclid(GENERATION_MICROS));
    let (delivered, failed) = (u32::from(end.failure.is_none()), u32::from(end.failure.is_some()));
    match report.calls.last_mut() {
        Some(last) if last.0 == slot => *last = (slot, last.1.saturating_add(delivered), last.2.saturating_add(failed)),
        _ => {
            report.calls.retain(|(earlier, ..)| *earlier > slot - SLOTS_KEPT && *earlier < slot);
            report.calls.push((slot, delivered, failed));
        }
    }
    if report.took.last().is_none_or(|(last, _)| *last != generation) {
        report.took.retain(|(earlier, _)| *earlier > generation - GENERATIONS_KEPT && *earlier < generation);
        report.took.push((generation, Default::default()));
    }
    if let Some((_, took)) = report.took.last_mut() {
        took.record(u64::try_from(end.took.as_micros()).unwrap_or(u64::MAX));
    }
    match end.failure {
        None => {
            report.failures_in_a_row = 0;
            report.delivered_at_micros = Some(micros);
        }
        Some(failure) => {
            report.failures_in_a_row = report.failures_in_a_row.saturating_add(1);
            report.failed_at_micros = Some(micros);
            report.last_error = Some(failure.chars().take(ERROR_CHARS_MAX).collect());
        }
    }
    if let Some(retry_at) = end.retry_at {
        note_retry(&mut report.retries, retry_at.minute(), end.at.minute());
    }
}

/// Counts a retry under the minute in which it is due, or, where that is more than an hour ahead, under the end of its hour: so few
/// entries tell of any number of retries.
fn note_retry(retries: &mut Vec<(i64, u32)>, due: i64, now: i64) {
    retries.retain(|(minute, _)| *minute >= now);
    let due = due.clamp(now, now + RETRIES_AHEAD_MAX);
    let hour_ends = due.div_euclid(MINUTES_PER_HOUR) * MINUTES_PER_HOUR + MINUTES_PER_HOUR - 1;
    let due = if due - now > MINUTES_PER_HOUR { hour_ends } else { due };
    match retries.iter_mut().find(|(minute, _)| *minute == due) {
        Some((_, count)) => *count = count.saturating_add(1),
        None => retries.push((due, 1)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_893_456_000_000_000);

    fn later(secs: u32) -> Timestamp {
        NOW.saturating_add(Span::from_secs(secs))
    }

    fn end(at: Timestamp, failure: Option<&str>) -> CallEnd<'_> {
        CallEnd { at, took: Duration::from_millis(20), failure, retry_at: None }
    }

    #[test]
    fn a_report_remembers_ten_minutes_and_the_failures_since_the_last_success() {
        let mut report = ReceiverReport::default();
        note(&mut report, &end(NOW, None));
        note(&mut report, &end(later(9), Some("503")));
        note(&mut report, &end(later(10), Some("timeout")));
        let slot = NOW.as_micros() / SLOT_MICROS;
        assert_eq!(report.calls, [(slot, 1, 1), (slot + 1, 0, 1)]);
        assert_eq!((report.failures_in_a_row, report.last_error.as_deref()), (2, Some("timeout")));
        assert_eq!((report.took.len(), report.took[0].1.count()), (1, 3));
        note(&mut report, &end(later(611), None));
        assert_eq!((report.calls.len(), report.failures_in_a_row), (2, 0));
        note(&mut report, &end(later(1_800), None));
        assert_eq!((report.calls.len(), report.took.len()), (1, 1));
    }

    #[test]
    fn retries_are_counted_by_the_minute_or_the_hour() {
        let mut retries = Vec::new();
        for due in [100, 101, 101, 160, 161, 162, 200, 90, 1_000_000] {
            note_retry(&mut retries, due, 100);
        }
        assert_eq!(retries, [(100, 2), (101, 2), (160, 1), (179, 2), (239, 1), (10_199, 1)]);
        note_retry(&mut retries, 170, 170);
        assert_eq!(retries, [(179, 2), (239, 1), (10_199, 1), (170, 1)]);
    }
}
