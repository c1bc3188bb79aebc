use domain::Metric;

/// The metrics of this crate. Tasks that run in other crates are counted under the same name.
pub const METRICS: &[Metric] = &[
    Metric::gauge("timer_pending_in_memory", "Timers of the near term that wait in memory"),
    Metric::gauge("timer_in_flight", "Deliveries under way"),
    Metric::gauge("timer_in_flight_max", "How many deliveries this process may have under way"),
    Metric::gauge("timer_in_flight_per_destination_max", "How many of them to one receiver"),
    Metric::gauge(
        "timer_oldest_overdue_seconds",
        "How late the oldest timer is that should have fired and waits, of all nodes; 0 when there is none",
    ),
    Metric::gauge(
        "timer_permits_exhausted",
        "1 while due timers wait because their tenant holds all the permits, or all the memory, that it may hold now",
    ),
    Metric::gauge("timer_shards_owned", "Shards this node holds"),
    Metric::gauge("timer_shards", "Shards there are"),
    Metric::gauge("timer_nodes", "Nodes that live, this one included"),
    Metric::gauge("timer_clock_skew_seconds", "How far this node's clock is ahead of the database's"),
    Metric::counter("timer_shards_gained_total", "Shards that came to this node"),
    Metric::counter("timer_shards_handed_over_total", "Shards that this node handed over to other nodes"),
    Metric::counter("timer_shards_lost_total", "Shards that were taken from this node"),
    Metric::counter("timer_leases_lost_total", "Times that this node's lease ran out and other nodes took its shards"),
    Metric::counter("timer_nudges_sent_total", "Timers of other nodes that they were told of"),
    Metric::counter("timer_nudges_received_total", "Timers that other nodes told of"),
    Metric::counter(
        "timer_nudges_dropped_total",
        "Timers of other nodes that they could not be told of; they find them themselves",
    ),
    Metric::counter("timer_claims_total", "Timers claimed for delivery"),
    Metric::counter("timer_claims_refused_total", "Due entries that were no longer pending, or moved, when claimed"),
    Metric::histogram("timer_claim_batch_size", "Timers asked for in one claim"),
    Metric::counter("timer_loaded_total", "Timers read ahead into memory"),
    Metric::counter("timer_sweep_repaired_total", "Overdue timers that only the sweep found"),
    Metric::counter("timer_recovered_total", "Claims taken over from a node that did not settle them"),
    Metric::counter("timer_purged_total", "Finished timers removed because of their age"),
    Metric::counter("timer_task_errors_total", "Background steps that failed and will be tried again, by task")
        .by(&[("task", &["beat", "tell", "hear", "load", "sweep", "purge", "claim", "recover", "commands", "stats", "overdue"])]),
];
