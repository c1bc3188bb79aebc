//! The settings of the service. Each is declared once, in the file of its theme: flag, environment variable, type, rule, default
//! and help. `.env.example` and `docs/book/src/reference/settings.md` are generated from these declarations.
//!
//! Here is what follows from all of them together.

mod api;
mod callbacks;
mod console;
mod contradictions;
mod logs;
mod nats;
mod timers;
mod traces;

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use ::api::{BasePath, BookUrl, RateLimit};
use clap::Args;
use domain::{Horizon, Invalid, Span};

pub use self::{
    api::base_path,
    callbacks::ANSWER_BYTES_IN_DEV,
    console::{Console, ConsoleOptions, Switch},
    logs::{LogFormat, LogOptions},
};
use self::{
    api::{API_KEY_CHARS_MIN, ApiOptions},
    callbacks::CallbackOptions,
    nats::{Broker, NatsOptions},
    timers::TimerOptions,
    traces::TraceOptions,
};
use crate::{
    exit::Failure,
    stores::{self, Database, StoreOptions},
    values::Secret,
};

/// The port of the HTTP API where none is given, for the service and for the commands that ask it.
pub const PORT: &str = "8080";

/// What `timer serve` and `timer dev` can be told.
#[derive(Debug, Clone, Args)]
pub struct Options {
    #[command(flatten)]
    api: ApiOptions,
    #[command(flatten)]
    store: StoreOptions,
    #[command(flatten)]
    timers: TimerOptions,
    #[command(flatten)]
    callbacks: CallbackOptions,
    #[command(flatten)]
    nats: NatsOptions,
    #[command(flatten)]
    console: ConsoleOptions,
    #[command(flatten)]
    traces: TraceOptions,
    #[command(flatten)]
    pub logs: LogOptions,
    /// Every setting with the value that holds, secrets masked.
    #[arg(skip)]
    pub effective: Vec<(String, String)>,
}

/// What the service is to do: the settings in the form in which its parts take them.
pub struct Settings {
    pub api_key: Secret,
    pub rate_limit: Option<RateLimit>,
    pub connections_per_address_max: usize,
    pub base_path: BasePath,
    pub book_url: Option<BookUrl>,
    pub address: SocketAddr,
    pub database: Arc<dyn Database>,
    pub horizon: Horizon,
    pub overdue_window: Option<Span>,
    pub retry_interval_min: Span,
    pub scheduler: scheduler::Config,
    pub delivery: delivery::Config,
    /// The text of the secrets that calls are signed with.
    pub signing_secret: Option<Secret>,
    /// The server for callbacks of type `nats`, and for the NATS command consumer.
    pub nats: Option<::nats::Options>,
    pub has_command_consumer: bool,
    pub console: ConsoleOptions,
    /// Where traces are sent, if they are recorded.
    pub traces: Option<::traces::Config>,
    /// What the console adds in `timer dev`.
    pub development: Option<::console::Development>,
    pub effective: Vec<(String, String)>,
}

/// What differs between `timer serve` and `timer dev` where a setting is not given.
#[derive(Debug, Clone)]
pub struct Defaults {
    pub api_key: Option<Secret>,
    pub bind: IpAddr,
    pub signing_secret: Option<Secret>,
    /// How much of an answer is kept with an attempt.
    pub answer_bytes_max: usize,
}

impl Settings {
    pub fn resolve(options: &Options, defaults: Defaults) -> Result<Self, Failure> {
        contradictions::refuse(options)?;
        let Options { api, store, timers, callbacks, nats, console, traces, logs: _, effective } = options;
        Ok(Self {
            api_key: api.api_key.clone().or(defaults.api_key).ok_or_else(api_key_is_required)?,
            rate_limit: api.rate_limit(),
            connections_per_address_max: api.connections_per_address_max,
            base_path: api.base_path.clone().unwrap_or_default(),
            book_url: api.book_url.clone(),
            address: SocketAddr::new(api.bind.unwrap_or(defaults.bind), api.port),
            database: stores::resolve(store)?,
            horizon: timers.horizon(),
            overdue_window: timers.overdue_window,
            retry_interval_min: callbacks.retry_interval_min,
            scheduler: scheduler_config(timers, callbacks),
            delivery: callbacks.delivery(defaults.signing_secret.as_ref(), defaults.answer_bytes_max)?,
            signing_secret: callbacks.signing_secret.clone().or(defaults.signing_secret),
            nats: nats.server()?,
            has_command_consumer: nats.broker == Broker::Nats,
            console: console.clone(),
            traces: traces.config()?,
            development: None,
            effective: effective.clone(),
        })
    }
}

impl Settings {
    /// What stands before the id of a timer in the address of its page, where the address that people open is known.
    pub fn timer_page(&self) -> Option<Arc<str>> {
        let is_served = matches!(self.console.console, Console::Served(_));
        let url = self.console.console_url.as_ref().filter(|_| is_served)?;
        Some(format!("{}{}/console/timers/", url.origin(), self.base_path.as_str()).into())
    }
}

fn api_key_is_required() -> Invalid {
    Invalid::new("API_KEY", format!("is required: choose one of at least {API_KEY_CHARS_MIN} characters"))
}

fn scheduler_config(timers: &TimerOptions, callbacks: &CallbackOptions) -> scheduler::Config {
    scheduler::Config {
        claim_batch_max: timers.batch_size,
        in_flight_max: callbacks.in_flight_max,
        in_flight_per_destination_max: callbacks.in_flight_per_destination_max,
        sweep_interval: Duration::from_millis(timers.polling_interval),
        name: timers.node_name.clone().unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        retention: timers.retention,
        ..scheduler::Config::default()
    }
}

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
