use std::{sync::Arc, time::Duration};

use domain::{Metric, MetricKind};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder};

use crate::{
    exit::Failure,
    settings::{LogFormat, LogOptions},
    stores::STORES,
};

/// Buckets of everything that is measured in seconds: from a tenth of a millisecond to minutes.
const SECONDS: [f64; 15] = [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0];
/// Buckets of batch sizes.
const SIZES: [f64; 8] = [1.0, 4.0, 16.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

/// Sends the log to standard error, in the wanted form.
pub fn log(options: &LogOptions) {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(options.log.to_filter())
        .with_writer(std::io::stderr)
        .with_target(false)
        // A log whose reader is gone must not disturb the work. The default is to panic.
        .log_internal_errors(false);
    match options.log_format {
        LogFormat::Text => builder.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
}

/// How often single measurements become metrics. Until then each takes memory, and it may be that no client ever asks for the metrics.
const UPKEEP_EVERY: Duration = Duration::from_millis(250);

/// Collects metrics from now on, on the runtime that this is called on; the answer renders them as Prometheus reads them.
pub fn metrics() -> Result<Arc<dyn Fn() -> String + Send + Sync>, Failure> {
    let failed = |error: BuildError| Failure::run(format!("metrics cannot be collected: {error}."), error);
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
        .and_then(|builder| builder.set_buckets_for_metric(Matcher::Suffix("_size".to_owned()), &SIZES))
        .and_then(|builder| builder.set_buckets_for_metric(Matcher::Suffix("_rows".to_owned()), &SIZES))
        .and_then(|builder| builder.set_buckets_for_metric(Matcher::Suffix("_timers".to_owned()), &SIZES))
        .map_err(failed)?
        .install_recorder()
        .map_err(failed)?;
    let upkept = handle.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(UPKEEP_EVERY).await;
            upkept.run_upkeep();
        }
    });
    let of_stores = STORES.iter().map(|kind| kind.metrics);
    METRICS.into_iter().chain(of_stores).flatten().for_each(begin);
    Ok(Arc::new(move || handle.render()))
}

/// Every metric, by the part of the service that it belongs to. [`STORES`] has those of single stores.
pub const METRICS: [&[Metric]; 8] = [
    api::METRICS,
    broker::METRICS,
    commands::METRICS,
    delivery::METRICS,
    engine::METRICS,
    nats::METRICS,
    scheduler::METRICS,
    store::METRICS,
];

/// Describes a metric, and makes the series that are known from the start: what begins to exist with its first event does not rise
/// for the monitoring that watches it.
fn begin(metric: &Metric) {
    let (name, help) = (metric.name, metric.help);
    match metric.kind {
        MetricKind::Counter => metrics::describe_counter!(name, help),
        MetricKind::Gauge => metrics::describe_gauge!(name, help),
        MetricKind::Histogram => metrics::describe_histogram!(name, help),
    }
    for labels in metric.series() {
        match metric.kind {
            MetricKind::Counter => metrics::counter!(name, &labels).increment(0),
            MetricKind::Gauge => metrics::gauge!(name, &labels).increment(0.0),
            MetricKind::Histogram => drop(metrics::histogram!(name, &labels)),
        }
    }
}
