//! What an operator can watch is there before it moves.

use throwaway::Nats;

use crate::rig::{Backend, Service, beside_others, blocking, for_each_store, with_commands};

const GUIDE: &str = include_str!("../../../../docs/book/src/run/monitoring.md");

for_each_store!(every_metric_that_an_operator_is_told_of_is_there_from_the_start);

/// The metrics in the tables of the guide; those that end in `…` are the beginnings of several.
fn told() -> Vec<&'static str> {
    let rows = GUIDE.lines().filter(|line| line.starts_with("| `timer_")).filter_map(|line| line.split('|').nth(1));
    rows.flat_map(|names| names.split('`').filter(|name| name.starts_with("timer_"))).collect()
}

async fn every_metric_that_an_operator_is_told_of_is_there_from_the_start(backend: Backend) {
    let _machine = beside_others().await;
    let nats = blocking(Nats::start);
    let mut service = Service::start_with(&backend, &with_commands(&nats.url())).await;
    let metrics = service.client().get("/metrics").await.text;
    let told = told();
    assert!(told.len() > 40, "{told:?}");
    let is_there = |name: &str| {
        metrics
            .lines()
            .filter_map(|line| line.strip_prefix(name.trim_end_matches('…')))
            .any(|rest| name.ends_with('…') || ["{", " ", "_bucket{", "_count"].iter().any(|begin| rest.starts_with(begin)))
    };
    let missing: Vec<_> = told.into_iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "{missing:?} in\n{metrics}");
    for moved_never in ["timer_leases_lost_total 0", "timer_canceled_total 0", "timer_commands_total{result=\"dead\"} 0"] {
        assert!(metrics.lines().any(|line| line == moved_never), "{moved_never} in\n{metrics}");
    }
    service.stop().await;
}
