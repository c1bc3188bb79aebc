//! What this crate counts.

const CONNECTED: &str = "timer_nats_connected";
const RECONNECTS: &str = "timer_nats_reconnects_total";
const ROUND_SIZE: &str = "timer_nats_round_size";

/// Says what the metrics mean. To be called once a recorder is installed.
pub fn describe() {
    metrics::describe_gauge!(CONNECTED, "1 while the connection to the NATS server stands, else 0");
    metrics::describe_counter!(RECONNECTS, "Connections to a NATS server that replaced a lost one");
    metrics::describe_histogram!(ROUND_SIZE, "How many messages shared one confirmation of the NATS server");
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
