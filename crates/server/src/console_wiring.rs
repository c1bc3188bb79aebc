//! The web console, as the settings want it.

use std::sync::Arc;

use api::{ApiConfig, Exporter, HealthItem};
use axum::Router;
use commands::{Commands, KeyRing};
use console::{ConsoleConfig, HealthProbe, HealthReading, Payloads, SignedCall, TimerReader};
use delivery::SigningSecrets;
use domain::{Invalid, SystemClock};
use tokio_util::sync::CancellationToken;

use crate::settings::{Console, Settings, Switch};

/// The pages, unless there are to be none.
pub fn router(
    settings: &Settings,
    api: &ApiConfig,
    commands: &Commands,
    keyring: &Arc<KeyRing>,
    stop: &CancellationToken,
) -> Option<Router> {
    let Console::Served(mode) = settings.console.console else { return None };
    let exporter = Exporter::default();
    let payloads = if settings.development.is_some() { Payloads::Shown } else { Payloads::Hidden };
    let (rates, clock) = (api.rates.clone(), Arc::clone(&commands.clock));
    let config = ConsoleConfig {
        api_key: settings.api_key.expose().to_owned(),
        base_path: settings.base_path.as_str().to_owned(),
        mode,
        url: settings.console.console_url.clone(),
        insecure_cookie: settings.console.console_insecure_cookie == Switch::On,
        payloads: settings.console.console_payloads.unwrap_or(payloads),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        store: settings.database.describe(),
        settings: settings.effective.clone(),
        health: api.health.iter().cloned().map(probe).collect(),
        export: Some(Arc::new(move |commands, filter, format| exporter.export(commands, filter, format))),
        clock: Arc::new(SystemClock::default()),
        rate: Arc::new(move |caller| rates.take(caller, clock.monotonic())),
        reader: TimerReader { new_timer: api::read_new_timer, patch: api::read_patch },
        verify,
        development: settings.development.clone(),
        dev: api.dev.clone(),
        stop: stop.clone(),
    };
    Some(console::router(config, commands, Arc::clone(keyring)))
}

fn verify(call: &SignedCall<'_>) -> Result<bool, Invalid> {
    let secrets = SigningSecrets::parse(call.secret).map_err(|invalid| invalid.named("secret"))?;
    Ok(secrets.verifies(call.webhook_id, call.timestamp, call.body.as_bytes(), call.signature))
}

/// The same that `/healthz` tells.
fn probe(item: HealthItem) -> HealthProbe {
    let read = move || {
        let reading = (item.read)();
        let value = reading.value.as_str().map_or_else(|| reading.value.to_string(), str::to_owned);
        HealthReading { value, is_well: reading.well }
    };
    HealthProbe { name: item.name, read: Arc::new(read) }
}
