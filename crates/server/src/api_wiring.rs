//! The API, as the settings want it.

use std::sync::Arc;

use api::{ApiConfig, ApiKey, HealthItem, Rates, Reading};
use scheduler::{Permits, Scheduler};

use crate::{rlimit, settings::Settings};

/// What follows from the settings, and what `/healthz` tells of the scheduler.
pub fn config(
    settings: &Settings,
    files: rlimit::Shares,
    metrics: Arc<dyn Fn() -> String + Send + Sync>,
    scheduler: Arc<Scheduler>,
) -> ApiConfig {
    let item = |name, read: Box<dyn Fn() -> serde_json::Value + Send + Sync>| HealthItem {
        name,
        read: Arc::new(move || Reading { value: read(), well: true }),
    };
    let egress = settings.delivery.egress.to_string();
    let lagging = Arc::clone(&scheduler);
    let compared = Arc::clone(&scheduler);
    let permitted = Arc::clone(&scheduler);
    let clock_skew = HealthItem {
        name: "clock_skew_seconds",
        read: Arc::new(move || {
            let (skew, is_wrong) = compared.clock_skew();
            Reading { value: skew.into(), well: !is_wrong }
        }),
    };
    let health = vec![
        // A process without shards is healthy: another process holds them, and this one stands by.
        item("shards", Box::new(move || scheduler.shards_held().into())),
        item("lag_seconds", Box::new(move || lagging.lag().as_duration().as_secs_f64().into())),
        clock_skew,
        // A process with exhausted permits is healthy: a restart would not help, and other tenants are served.
        item("permits", Box::new(move || permits(permitted.permits()))),
        item("egress", Box::new(move || egress.clone().into())),
    ];
    ApiConfig {
        api_key: ApiKey::new(settings.api_key.expose()),
        base_path: settings.base_path.clone(),
        book_url: settings.book_url.clone(),
        rates: Rates::new(settings.rate_limit),
        limits: api::Limits {
            connections_max: files.api,
            connections_per_address_max: settings.connections_per_address_max,
            ..api::Limits::default()
        },
        health,
        metrics,
        tracer: None,
        dev: None,
        console: None,
    }
}

fn permits(permits: Permits) -> serde_json::Value {
    serde_json::json!({"in_flight": permits.in_flight, "max": permits.max, "exhausted": permits.is_exhausted})
}
