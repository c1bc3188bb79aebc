use std::time::Duration;

use domain::Span;

/// What can be set about the scheduler.
#[derive(Debug, Clone)]
pub struct Config {
    /// How many entries may wait in memory.
    pub window_entries_max: usize,
    /// How far ahead the window is filled.
    pub look_ahead: Span,
    /// The largest batch to claim at once.
    pub claim_batch_max: usize,
    /// How long before its time a timer may be claimed: a call that waits for its time only is not late by what the store takes.
    pub claim_ahead: Span,
    /// How many deliveries may be under way, in all and to one destination.
    pub in_flight_max: usize,
    pub in_flight_per_destination_max: usize,
    /// For how long a heartbeat counts. After a node's death no node fires its timers for that long.
    pub node_lease: Span,
    /// For how long a timer is claimed: longer than any delivery can last.
    pub claim_lease: Span,
    /// How often the sweep looks for what was missed.
    pub sweep_interval: Duration,
    /// For how long finished timers are kept.
    pub retention: Span,
    /// The name that operators see for this node, and the version that it runs.
    pub name: String,
    pub version: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            window_entries_max: 1_000_000,
            look_ahead: Span::from_secs(600),
            claim_batch_max: 256,
            claim_ahead: Span::from_millis(8),
            in_flight_max: 2_048,
            // One tenant alone gets 256 of them: all but the share that is kept for further tenants.
            in_flight_per_destination_max: 264,
            node_lease: Span::from_millis(3_500),
            claim_lease: Span::from_secs(600),
            sweep_interval: Duration::from_secs(1),
            retention: Span::from_secs(30 * 24 * 3600),
            name: String::new(),
            version: String::new(),
        }
    }
}
