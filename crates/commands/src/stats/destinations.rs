use std::collections::{BTreeMap, HashSet};

use domain::{DurationHistogram, Namespace, Span, Timestamp};
use store::{GENERATION_MICROS, NodeReceiver, ReceiverReport, SLOT_MICROS};

use super::is_meant;
use crate::{CommandError, Commands, call};

/// The most receivers of one answer: those that were called last.
const LISTED_MAX: usize = 1_000;
/// The time after its last write from which a node is taken to have no calls under way any more.
pub(super) const IN_FLIGHT_KNOWN: Span = Span::from_secs(30);
const MINUTE_MICROS: i64 = 60_000_000;
/// The number of failures in a row from which a receiver counts as failing, whatever came before them.
const FAILURES_MAX: u32 = 5;
/// A receiver of which half the calls take longer is slow.
const SLOW_MICROS: u64 = 1_000_000;

/// The receivers that were called of late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destinations {
    /// Sorted by name.
    pub destinations: Vec<DestinationStatus>,
    /// Whether these are all.
    pub is_complete: bool,
}

/// One receiver, as all nodes saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DestinationStatus {
    /// `host:port`, or a NATS subject.
    pub name: String,
    pub health: DestinationHealth,
    pub in_flight: u32,
    /// Calls that delivered, and calls that did not, in the last minute and in the last ten.
    pub delivered_1m: u32,
    pub failed_1m: u32,
    pub delivered_10m: u32,
    pub failed_10m: u32,
    pub took_p50_micros: Option<u64>,
    pub took_p99_micros: Option<u64>,
    /// How long the calls of the last ten minutes took.
    pub took: DurationHistogram,
    pub failures_in_a_row: u32,
    pub last_error: Option<String>,
    pub pending_retries: u32,
}

/// How a receiver is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DestinationHealth {
    Good,
    /// Half of its calls take longer than a second.
    Slow,
    /// The last five calls failed, or half of those of the last minute (of the last ten where there was none).
    Failing,
    /// No call ended within the last ten minutes.
    Silent,
}

impl Commands {
    /// The receivers of the namespaces that are named, or of all that the caller sees.
    pub async fn destinations(&self, namespaces: &[Namespace]) -> Result<Destinations, CommandError> {
        let visible = self.visible(namespaces)?;
        Ok(listed(self.receivers(&visible).await?, self.clock.now()))
    }

    /// What nodes know of receivers. What this process knows is newer than what it wrote down.
    pub(super) async fn receivers(&self, visible: &[Namespace]) -> Result<Vec<NodeReceiver>, CommandError> {
        let mut reports = call::reading(self.stores.stats.receivers(visible)).await?;
        let live = (self.stats.live.receivers)();
        let newer: HashSet<_> =
            live.iter().map(|receiver| (receiver.node, &receiver.namespace, receiver.destination.as_str())).collect();
        reports.retain(|receiver| !newer.contains(&(receiver.node, &receiver.namespace, receiver.destination.as_str())));
        reports.extend(live.iter().filter(|receiver| is_meant(visible, &receiver.namespace)).cloned());
        Ok(reports)
    }
}

fn listed(reports: Vec<NodeReceiver>, now: Timestamp) -> Destinations {
    let mut by_name: BTreeMap<String, Vec<NodeReceiver>> = BTreeMap::new();
    for report in reports {
        by_name.entry(report.destination.clone()).or_default().push(report);
    }
    let last_call = |reports: &[NodeReceiver]| reports.iter().filter_map(|receiver| ended_at(&receiver.report)).max();
    let mut destinations: Vec<_> =
        by_name.into_iter().map(|(name, reports)| (last_call(&reports), merged(name, &reports, now))).collect();
    let is_complete = destinations.len() <= LISTED_MAX;
    if !is_complete {
        destinations.sort_by_key(|(last_call, _)| std::cmp::Reverse(*last_call));
        destinations.truncate(LISTED_MAX);
        destinations.sort_by(|(_, one), (_, other)| one.name.cmp(&other.name));
    }
    Destinations { destinations: destinations.into_iter().map(|(_, destination)| destination).collect(), is_complete }
}

fn ended_at(report: &ReceiverReport) -> Option<i64> {
    report.delivered_at_micros.max(report.failed_at_micros)
}

/// What all nodes, and all namespaces that the caller sees, know of one receiver.
fn merged(name: String, reports: &[NodeReceiver], now: Timestamp) -> DestinationStatus {
    let since = |minutes: i64| (now.as_micros() - minutes * MINUTE_MICROS).div_euclid(SLOT_MICROS);
    let (delivered_1m, failed_1m) = calls_since(reports, since(1));
    let (delivered_10m, failed_10m) = calls_since(reports, since(10));
    let mut took = DurationHistogram::default();
    let oldest = (now.as_micros() - 10 * MINUTE_MICROS).div_euclid(GENERATION_MICROS);
    let spans = reports.iter().flat_map(|receiver| &receiver.report.took);
    spans.filter(|(span, _)| *span >= oldest).for_each(|(_, more)| took.add(more));
    let delivered_at = reports.iter().filter_map(|receiver| receiver.report.delivered_at_micros).max();
    let failing = reports.iter().filter(|receiver| receiver.report.failed_at_micros > delivered_at);
    let failures_in_a_row = failing.map(|receiver| receiver.report.failures_in_a_row).sum();
    let last_failed = reports.iter().max_by_key(|receiver| receiver.report.failed_at_micros);
    let is_known = |receiver: &&NodeReceiver| now.since(receiver.written_at) <= IN_FLIGHT_KNOWN;
    let retries = reports.iter().flat_map(|receiver| &receiver.report.retries);
    let (took_p50_micros, took_p99_micros) = (took.quantile(0.5), took.quantile(0.99));
    let recent = if delivered_1m + failed_1m > 0 { (delivered_1m, failed_1m) } else { (delivered_10m, failed_10m) };
    DestinationStatus {
        name,
        health: DestinationHealth::of(recent, failures_in_a_row, took_p50_micros),
        in_flight: reports.iter().filter(is_known).map(|receiver| receiver.report.in_flight).sum(),
        delivered_1m,
        failed_1m,
        delivered_10m,
        failed_10m,
        took_p50_micros,
        took_p99_micros,
        took,
        failures_in_a_row,
        last_error: last_failed.and_then(|receiver| receiver.report.last_error.clone()),
        pending_retries: retries.filter(|(minute, _)| *minute >= now.minute()).map(|(_, count)| count).sum(),
    }
}

fn calls_since(reports: &[NodeReceiver], slot: i64) -> (u32, u32) {
    let calls = reports.iter().flat_map(|receiver| &receiver.report.calls).filter(|(of, ..)| *of >= slot);
    calls.fold((0, 0), |(delivered, failed), (_, well, badly)| (delivered + well, failed + badly))
}

impl DestinationHealth {
    fn of((delivered, failed): (u32, u32), failures_in_a_row: u32, took_p50_micros: Option<u64>) -> Self {
        if delivered + failed == 0 {
            Self::Silent
        } else if failures_in_a_row >= FAILURES_MAX || failed >= delivered && failed > 0 {
            Self::Failing
        } else if took_p50_micros.is_some_and(|micros| micros > SLOW_MICROS) {
            Self::Slow
        } else {
            Self::Good
        }
    }
}

#[cfg(test)]
mod tests {
    use store::NodeId;

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_893_456_000_000_000);

    fn seen(node: u128, age_secs: u32, report: ReceiverReport) -> NodeReceiver {
        let (namespace, destination) = (Namespace::default(), "a:80".to_owned());
        let written_at = NOW.saturating_sub(Span::from_secs(age_secs));
        NodeReceiver { node: NodeId(node), namespace, destination, written_at, report }
    }

    fn slot(secs_ago: i64) -> i64 {
        (NOW.as_micros() - secs_ago * 1_000_000).div_euclid(SLOT_MICROS)
    }

    #[test]
    fn nodes_are_added_up_and_what_is_old_is_left_out() {
        let micros = NOW.as_micros();
        let one = ReceiverReport {
            in_flight: 2,
            calls: vec![(slot(700), 50, 50), (slot(300), 3, 4), (slot(20), 1, 1)],
            failures_in_a_row: 3,
            delivered_at_micros: Some(micros - 50_000_000),
            failed_at_micros: Some(micros - 20_000_000),
            last_error: Some("answered 503".to_owned()),
            retries: vec![(NOW.minute() - 1, 9), (NOW.minute(), 1), (NOW.minute() + 5, 2)],
            ..ReceiverReport::default()
        };
        let two = ReceiverReport {
            in_flight: 5,
            calls: vec![(slot(300), 1, 0)],
            failures_in_a_row: 9,
            delivered_at_micros: Some(micros - 400_000_000),
            failed_at_micros: Some(micros - 300_000_000),
            last_error: Some("older".to_owned()),
            ..ReceiverReport::default()
        };
        let met = merged("a:80".to_owned(), &[seen(1, 10, one), seen(2, 200, two)], NOW);
        assert_eq!((met.in_flight, met.delivered_1m, met.failed_1m), (2, 1, 1), "the second node has not written for long");
        assert_eq!((met.delivered_10m, met.failed_10m), (5, 5));
        assert_eq!(met.failures_in_a_row, 3, "the second failed before a call of the first delivered");
        assert_eq!((met.last_error.as_deref(), met.pending_retries), (Some("answered 503"), 3));
    }

    #[test]
    fn health_is_one_word() {
        for (calls, in_a_row, p50, health) in [
            ((0, 0), 0, None, DestinationHealth::Silent),
            ((10, 0), 0, Some(20_000), DestinationHealth::Good),
            ((10, 9), 2, Some(20_000), DestinationHealth::Good),
            ((10, 10), 2, Some(20_000), DestinationHealth::Failing),
            ((100, 5), 5, Some(20_000), DestinationHealth::Failing),
            ((0, 1), 1, Some(20_000), DestinationHealth::Failing),
            ((10, 0), 0, Some(1_000_001), DestinationHealth::Slow),
        ] {
            assert_eq!(DestinationHealth::of(calls, in_a_row, p50), health, "{calls:?} {in_a_row} {p50:?}");
        }
    }

    #[test]
    fn only_so_many_are_listed_and_those_were_called_last() {
        let report = |called: i64| ReceiverReport { delivered_at_micros: Some(called), ..ReceiverReport::default() };
        let one = |n: i64| NodeReceiver { destination: format!("{n:04}:80"), ..seen(1, 0, report(n)) };
        let met = listed((0..1_001).map(one).collect(), NOW);
        assert_eq!((met.destinations.len(), met.destinations[0].name.as_str(), met.is_complete), (1_000, "0001:80", false));
    }
}
