//! Every metric of the service and its stores, as they are described to Prometheus.

use std::fmt::Write;

use domain::{Metric, MetricKind, MetricLabel};

use super::cell;
use crate::{stores::STORES, telemetry::METRICS};

pub(super) fn table() -> String {
    let of_stores = STORES.iter().map(|kind| kind.metrics);
    let mut all: Vec<&Metric> = METRICS.into_iter().chain(of_stores).flatten().collect();
    all.sort_by_key(|metric| metric.name);
    all.dedup_by_key(|metric| metric.name);
    let mut text = "| metric | type | labels | meaning |\n|---|---|---|---|\n".to_owned();
    for metric in all {
        let kind = match metric.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let labels: Vec<String> = metric.labels.iter().map(label).collect();
        writeln!(text, "| `{}` | {kind} | {} | {} |", metric.name, labels.join("; "), cell(metric.help)).expect("text");
    }
    text
}

/// The name of a label, and its values where they are known.
fn label((name, values): &MetricLabel) -> String {
    let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
    if values.is_empty() { format!("`{name}`") } else { format!("`{name}`: {}", values.join(", ")) }
}
