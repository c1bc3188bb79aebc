//! What the texts of the command line and the environment mean. Every bad value ends in one sentence that names the
//! variable.

mod nats;

use std::{
    net::{IpAddr, SocketAddr},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use api::RateLimit;
use delivery::NamespaceRules;
use domain::{AttemptLog, Horizon, Invalid, Span};
use tracing_subscriber::EnvFilter;

use crate::{
    cli::{ApiOptions, CallbackOptions, LogOptions, Options, StoreOptions, TimerOptions},
    exit::Failure,
    stores::{self, Database},
};

pub struct Settings {
    pub api_key: String,
    pub rate_limit: Option<RateLimit>,
    pub connections_per_address_max: usize,
    pub address: SocketAddr,
    pub database: Arc<dyn Database>,
    pub horizon: Horizon,
    pub overdue_window: Option<Span>,
    pub retry_interval_min: Span,
    pub scheduler: scheduler::Config,
    pub delivery: delivery::Config,
    /// The server for callbacks of type `nats`, and for the NATS command consumer.
    pub nats: Option<::nats::Options>,
    pub has_command_consumer: bool,
}

/// What differs between `timer serve` and `timer dev` where nothing was said.
#[derive(Debug, Clone)]
pub struct Defaults {
    pub api_key: Option<String>,
    pub bind: IpAddr,
}

const API_KEY_CHARS_MIN: usize = 32;
const NODE_NAME_CHARS_MAX: usize = 100;
const RETRY_INTERVAL_MIN: Span = Span::from_secs(1);

pub fn parse(options: &Options, defaults: Defaults) -> Result<Settings, Failure> {
    let nats = nats::parse_server(&options.nats)?;
    Ok(Settings {
        api_key: parse_api_key(&options.api, defaults.api_key)?,
        rate_limit: parse_rate_limit(&options.api)?,
        connections_per_address_max: number(
            "CONNECTIONS_PER_ADDRESS_MAX",
            &options.api.connections_per_address_max,
            1..=1_000_000,
            api::Limits::default().connections_per_address_max,
        )?,
        address: parse_address(&options.api, defaults.bind)?,
        database: parse_database(&options.store)?,
        horizon: parse_horizon(&options.timers)?,
        overdue_window: parse_overdue_window(&options.timers)?,
        retry_interval_min: optional_span("RETRY_INTERVAL_MIN", &options.callbacks.retry_interval_min)?
            .unwrap_or(RETRY_INTERVAL_MIN),
        scheduler: parse_scheduler(&options.timers, &options.callbacks)?,
        delivery: parse_delivery(&options.callbacks)?,
        has_command_consumer: nats::parse_broker(&options.nats, nats.is_some())?,
        nats,
    })
}

fn parse_api_key(options: &ApiOptions, default: Option<String>) -> Result<String, Invalid> {
    let key = given(&options.api_key).map(str::to_owned).or(default);
    match key {
        Some(key) if key.chars().count() < API_KEY_CHARS_MIN => {
            wrong("API_KEY", &format!("must have at least {API_KEY_CHARS_MIN} characters"))
        }
        Some(key) if !key.bytes().all(|b| matches!(b, 0x21..=0x7e)) => {
            wrong("API_KEY", "must be printable ASCII without blanks, because it travels in a header")
        }
        Some(key) => Ok(key),
        None => wrong("API_KEY", &format!("is required: choose one of at least {API_KEY_CHARS_MIN} characters")),
    }
}

fn parse_rate_limit(options: &ApiOptions) -> Result<Option<RateLimit>, Invalid> {
    let count = |variable, text, default| number(variable, text, 1..=1_000_000, default);
    if given(&options.rate_limit).is_none() {
        return match given(&options.rate_limit_burst) {
            Some(_) => wrong("RATE_LIMIT_BURST", "is set, but RATE_LIMIT is not"),
            None => Ok(None),
        };
    }
    let per_second = count("RATE_LIMIT", &options.rate_limit, 1)?;
    Ok(Some(RateLimit { per_second, burst: count("RATE_LIMIT_BURST", &options.rate_limit_burst, per_second)? }))
}

fn parse_address(options: &ApiOptions, default_bind: IpAddr) -> Result<SocketAddr, Invalid> {
    let bind = match given(&options.bind) {
        Some(text) => text.parse().or_else(|_| wrong("BIND", "must be an IP address such as 0.0.0.0 or 127.0.0.1"))?,
        None => default_bind,
    };
    // Port 0 lets the system choose a free one; the start-up message says which.
    let port = number("PORT", &options.port, 0..=u16::MAX, 8080)?;
    Ok(SocketAddr::new(bind, port))
}

pub fn parse_port(text: &Option<String>) -> Result<u16, Invalid> {
    number("PORT", text, 1..=u16::MAX, 8080)
}

pub fn parse_database(options: &StoreOptions) -> Result<Arc<dyn Database>, Failure> {
    Ok(stores::parse_database(options)?)
}

/// Of several ways to name a server, the one that was used. Two would leave open which is meant.
fn only_one<'a>(named: &[(&'static str, Option<&'a str>)]) -> Result<Option<(&'static str, &'a str)>, Invalid> {
    let mut used = named.iter().filter_map(|(variable, value)| value.map(|value| (*variable, value)));
    match (used.next(), used.next()) {
        (Some((first, _)), Some((second, _))) => wrong(first, &format!("and {second} are both set: give only one of them")),
        (one, _) => Ok(one),
    }
}

/// Parts of an address would be passed over where its host is not named.
pub fn refuse_parts_without(host: &str, parts: &[(&str, &Option<String>)]) -> Result<(), Invalid> {
    match parts.iter().find(|(_, value)| given(value).is_some()) {
        Some((variable, _)) => wrong(variable, &format!("is set, but {host} is not: say where the server is")),
        None => Ok(()),
    }
}

fn parse_horizon(options: &TimerOptions) -> Result<Horizon, Invalid> {
    let min_delay = optional_span("MIN_DELAY", &options.min_delay)?.unwrap_or(Span::ZERO);
    let max_horizon = optional_span("MAX_HORIZON", &options.max_horizon)?;
    if max_horizon.is_some_and(|max| max <= min_delay) {
        return wrong("MAX_HORIZON", "must be longer than MIN_DELAY");
    }
    Ok(Horizon { min_delay, max_horizon })
}

fn parse_overdue_window(options: &TimerOptions) -> Result<Option<Span>, Invalid> {
    match optional_span("OVERDUE_WINDOW", &options.overdue_window)? {
        // Nothing is called in no time at all: every timer would fail.
        Some(Span::ZERO) => wrong("OVERDUE_WINDOW", "must be longer than 0s"),
        window => Ok(window),
    }
}

fn parse_scheduler(timers: &TimerOptions, callbacks: &CallbackOptions) -> Result<scheduler::Config, Invalid> {
    let defaults = scheduler::Config::default();
    let count = |variable, text, default| number(variable, text, 1..=1_000_000, default);
    let name = given(&timers.node_name).unwrap_or_default().to_owned();
    if name.chars().count() > NODE_NAME_CHARS_MAX || name.chars().any(char::is_control) {
        return wrong("NODE_NAME", &format!("must have at most {NODE_NAME_CHARS_MAX} printable characters"));
    }
    let sweep_millis = number("TIMER_POLLING_INTERVAL", &timers.polling_interval, 10..=60_000, 1000)?;
    Ok(scheduler::Config {
        claim_batch_max: number("TIMER_BATCH_SIZE", &timers.batch_size, 1..=10_000, defaults.claim_batch_max)?,
        in_flight_max: count("IN_FLIGHT_MAX", &callbacks.in_flight_max, defaults.in_flight_max)?,
        in_flight_per_destination_max: count(
            "IN_FLIGHT_PER_DESTINATION_MAX",
            &callbacks.in_flight_per_destination_max,
            defaults.in_flight_per_destination_max,
        )?,
        sweep_interval: Duration::from_millis(sweep_millis),
        name,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        retention: optional_span("RETENTION", &timers.retention)?.unwrap_or(defaults.retention),
        ..defaults
    })
}

fn parse_delivery(options: &CallbackOptions) -> Result<delivery::Config, Invalid> {
    let policy = given(&options.egress).unwrap_or("private");
    let allow = given(&options.egress_allow).unwrap_or_default();
    let egress = delivery::Egress::parse(policy, allow)?;
    let signing = given(&options.signing_secret).map(delivery::SigningSecrets::parse).transpose()?;
    let namespaces = Arc::new(read_namespaces(options)?);
    let attempt_log = parse_attempts(options)?;
    Ok(delivery::Config {
        egress,
        signing,
        namespaces,
        attempt_log,
        idle_connections_max: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

fn read_namespaces(options: &CallbackOptions) -> Result<NamespaceRules, Invalid> {
    let Some(path) = given(&options.namespaces_file) else { return Ok(NamespaceRules::default()) };
    let text = std::fs::read_to_string(path).or_else(|error| wrong("NAMESPACES_FILE", &format!("cannot be read: {error}")))?;
    NamespaceRules::parse(&text)
}

fn parse_attempts(options: &CallbackOptions) -> Result<AttemptLog, Invalid> {
    let text = given(&options.attempts);
    text.map_or(Some(AttemptLog::default()), AttemptLog::parse)
        .map_or_else(|| wrong("ATTEMPTS", "must be off, failures or all"), Ok)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

pub fn parse_log_filter(options: &LogOptions) -> Result<EnvFilter, Invalid> {
    let text = given(&options.log).unwrap_or("info");
    // The library takes a bare word that is no level for the name of a crate, and then logs nothing else.
    let is_level = |word: &str| ["off", "error", "warn", "info", "debug", "trace"].contains(&word.to_ascii_lowercase().as_str());
    let is_sound = text.split(',').all(|word| word.contains(['=', '[']) || is_level(word));
    // The NATS library tells every event of a connection, and every attempt at one, beside what we tell of it.
    let text = if text.contains("async_nats") { text.to_owned() } else { format!("async_nats=off,{text}") };
    match EnvFilter::try_new(text) {
        Ok(filter) if is_sound => Ok(filter),
        _ => wrong("RUST_LOG", "must be a level or a filter such as info,delivery=debug"),
    }
}

pub fn parse_log_format(options: &LogOptions) -> Result<LogFormat, Invalid> {
    match given(&options.log_format) {
        None | Some("text") => Ok(LogFormat::Text),
        Some("json") => Ok(LogFormat::Json),
        Some(_) => wrong("LOG_FORMAT", "must be text or json"),
    }
}

/// A variable that is set but empty counts as not set: that is how compose files leave things out.
pub fn given(value: &Option<String>) -> Option<&str> {
    value.as_deref().filter(|value| !value.is_empty())
}

fn optional_span(variable: &str, text: &Option<String>) -> Result<Option<Span>, Invalid> {
    given(text).map(|text| Span::parse(variable, text)).transpose()
}

pub fn number<N>(variable: &str, text: &Option<String>, range: std::ops::RangeInclusive<N>, default: N) -> Result<N, Invalid>
where
    N: FromStr + PartialOrd + std::fmt::Display + Copy,
{
    match given(text).map(str::parse) {
        None => Ok(default),
        Some(Ok(number)) if range.contains(&number) => Ok(number),
        Some(_) => wrong(variable, &format!("must be a number between {} and {}", range.start(), range.end())),
    }
}

fn wrong<T>(variable: &str, rule: &str) -> Result<T, Invalid> {
    Err(Invalid::new(variable, rule))
}

#[cfg(test)]
mod tests;
