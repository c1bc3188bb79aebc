//! The metrics of this crate.

use domain::Metric;

const CONNECTED: &str = "timer_nats_connected";
const RECONNECTS: &str = "timer_nats_reconnects_total";
const ROUND_SIZE: &str = "timer_nats_round_size";

/// The metrics. Which connections exist depends on the configuration: without a NATS server there are none, and none is away.
pub const METRICS: &[Metric] = &[
    Metric::gauge(CONNECTED, "1 while the connection to the NATS server stands, else 0").by(&[("connection", &[])]),
    Metric::counter(RECONNECTS, "Connections to a NATS server that replaced a lost one").by(&[("connection", &[])]),
    Metric::histogram(ROUND_SIZE, "How many messages shared one confirmation of the NATS server").by(&[("connection", &[])]),
];

/// Publishes the metrics of a connection from its start, so that they exist before their first change.
pub(crate) fn begin(connection: &'static str) {
    connected(connection, false);
    metrics::counter!(RECONNECTS, "connection" => connection).increment(0);
    drop(metrics::histogram!(ROUND_SIZE, "connection" => connection));
}

pub(crate) fn connected(connection: &'static str, is_connected: bool) {
    metrics::gauge!(CONNECTED, "connection" => connection).set(f64::from(u8::from(is_connected)));
}

pub(crate) fn reconnected(connection: &'static str) {
    metrics::counter!(RECONNECTS, "connection" => connection).increment(1);
}

pub(crate) fn round(connection: &'static str, messages: u32) {
    metrics::histogram!(ROUND_SIZE, "connection" => connection).record(f64::from(messages));
}
