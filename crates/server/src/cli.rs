//! Flags and environment variables, one declaration for both. Values are texts here; [`crate::settings`] gives them
//! their meaning, so that every bad one ends in the same kind of sentence.

mod bench;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use self::bench::{BenchCommand, BenchOptions, MeasureOptions, ReportOptions};
use crate::{exit::Failure, stores};

#[derive(Debug, Parser)]
#[command(name = "timer", version, about = "A durable timer service: registers calls for later and makes them on time.")]
#[command(after_help = "Start with `timer dev`: it needs no configuration and prints a line to try it with.")]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the service
    Serve(Options),
    /// Try it out: loopback only, a key made up for you, and a receiver that shows what arrives
    Dev(Options),
    /// Bring the database up to date, and stop
    Migrate(StoreOptions),
    /// Copy an SQLite database into a new file, also while the service runs
    Backup(BackupOptions),
    /// Put a backup in the place of an SQLite database, while no service runs
    Restore(RestoreOptions),
    /// Ask a running service on this machine how it is; exits with 0 when it is healthy
    Healthcheck(HealthcheckOptions),
    /// Show the processes that share the work, at a running service
    Status(StatusOptions),
    /// Issue, list and revoke API keys, at a running service
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Put a service under load, and show how fast and how late it is
    Bench(BenchOptions),
}

#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Issue a key; it is printed once and can never be shown again
    Create(CreateKeyOptions),
    /// Show every key that was issued, without what opens anything
    List(ListKeysOptions),
    /// Take a key out of use, for good
    Revoke(RevokeKeyOptions),
}

#[derive(Debug, Clone, Args)]
pub struct CreateKeyOptions {
    /// What to call it, for those who look at the list
    pub name: String,
    /// A namespace that it opens; give it again for each further one
    #[arg(long = "namespace", value_name = "NAMESPACE", required_unless_present = "all_namespaces")]
    pub namespaces: Vec<String>,
    /// Let it open every namespace
    #[arg(long, conflicts_with = "namespaces")]
    pub all_namespaces: bool,
    /// Let it read and change nothing
    #[arg(long)]
    pub read_only: bool,
    #[command(flatten)]
    pub service: ServiceOptions,
}

#[derive(Debug, Clone, Args)]
pub struct ListKeysOptions {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub service: ServiceOptions,
}

#[derive(Debug, Clone, Args)]
pub struct RevokeKeyOptions {
    /// The id of the key, as the list shows it
    pub id: String,
    #[command(flatten)]
    pub service: ServiceOptions,
}

#[derive(Debug, Clone, Args)]
pub struct StatusOptions {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub service: ServiceOptions,
}

/// The running service that is asked.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The service that is asked")]
pub struct ServiceOptions {
    /// Where the service is [default: http://127.0.0.1:8080, or another PORT]
    #[arg(long, env = "TIMER_URL", value_name = "URL")]
    pub url: Option<String>,
    /// Its port, if it runs on this machine [default: 8080]
    #[arg(long, env = "PORT", value_name = "PORT")]
    pub port: Option<String>,
    /// The administrator's key
    #[arg(long, env = "API_KEY", hide_env_values = true, value_name = "KEY")]
    pub api_key: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct Options {
    #[command(flatten)]
    pub api: ApiOptions,
    #[command(flatten)]
    pub store: StoreOptions,
    #[command(flatten)]
    pub timers: TimerOptions,
    #[command(flatten)]
    pub callbacks: CallbackOptions,
    #[command(flatten)]
    pub nats: NatsOptions,
    #[command(flatten)]
    pub logs: LogOptions,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Who may call, and where")]
pub struct ApiOptions {
    /// The administrator's key, sent as X-API-Key, at least 32 characters; `timer dev` makes one up
    #[arg(long, env = "API_KEY", hide_env_values = true, value_name = "KEY")]
    pub api_key: Option<String>,
    /// How many requests per second one key may make [default: no limit]
    #[arg(long, env = "RATE_LIMIT", value_name = "COUNT")]
    pub rate_limit: Option<String>,
    /// How many requests one key may make at once after a pause [default: those of one second]
    #[arg(long, env = "RATE_LIMIT_BURST", value_name = "COUNT")]
    pub rate_limit_burst: Option<String>,
    /// How many connections one client address may have; all clients behind one proxy share its address [default: 64]
    #[arg(long, env = "CONNECTIONS_PER_ADDRESS_MAX", value_name = "COUNT")]
    pub connections_per_address_max: Option<String>,
    /// Port of the HTTP API [default: 8080]
    #[arg(long, env = "PORT", value_name = "PORT")]
    pub port: Option<String>,
    /// Address of the HTTP API [default: 0.0.0.0; `timer dev`: 127.0.0.1]
    #[arg(long, env = "BIND", value_name = "ADDRESS")]
    pub bind: Option<String>,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Where timers are kept")]
pub struct StoreOptions {
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL", help = database_url_help())]
    pub database_url: Option<String>,
    /// The SQLite file, as a plain path instead of a URL
    #[arg(long, env = "TIMER_DB_PATH", value_name = "FILE")]
    pub db_path: Option<String>,
    /// Host of a PostgreSQL server, instead of a URL
    #[arg(long, env = "PG_HOST", value_name = "HOST")]
    pub pg_host: Option<String>,
    /// Its port [default: 5432]
    #[arg(long, env = "PG_PORT", value_name = "PORT")]
    pub pg_port: Option<String>,
    /// The name to log in with
    #[arg(long, env = "PG_USER", value_name = "USER")]
    pub pg_user: Option<String>,
    /// The password to log in with; any character may be in it
    #[arg(long, env = "PG_PASSWORD", hide_env_values = true, value_name = "PASSWORD")]
    pub pg_password: Option<String>,
    /// The database
    #[arg(long, env = "PG_DB_NAME", value_name = "NAME")]
    pub pg_db_name: Option<String>,
}

fn database_url_help() -> String {
    format!("{} [default: sqlite://timer.db]", stores::url_forms())
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "What timers may be, and what becomes of them")]
pub struct TimerOptions {
    /// A timer must lie at least this far ahead [default: 0s, and up to a minute ago counts as now]
    #[arg(long, env = "MIN_DELAY", value_name = "DURATION")]
    pub min_delay: Option<String>,
    /// A timer may lie at most this far ahead [default: no limit]
    #[arg(long, env = "MAX_HORIZON", value_name = "DURATION")]
    pub max_horizon: Option<String>,
    /// How long finished timers are kept [default: 30d]
    #[arg(long, env = "RETENTION", value_name = "DURATION")]
    pub retention: Option<String>,
    /// A timer later than this fails instead of being called [default: none, it is called however late]
    #[arg(long, env = "OVERDUE_WINDOW", value_name = "DURATION")]
    pub overdue_window: Option<String>,
    /// Milliseconds between two sweeps for timers that a wake-up missed [default: 1000]
    #[arg(long, env = "TIMER_POLLING_INTERVAL", value_name = "MILLISECONDS")]
    pub polling_interval: Option<String>,
    /// What to call this process among those that share a database [default: the name of this machine, and the port]
    #[arg(long, env = "NODE_NAME", value_name = "NAME")]
    pub node_name: Option<String>,
    /// The most timers to claim at once [default: 256]
    #[arg(long, env = "TIMER_BATCH_SIZE", value_name = "COUNT")]
    pub batch_size: Option<String>,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Callbacks")]
pub struct CallbackOptions {
    /// Which addresses callbacks may reach: private (all but link-local and cloud metadata) or public [default: private]
    #[arg(long, env = "EGRESS", value_name = "POLICY")]
    pub egress: Option<String>,
    /// What is let through all the same: networks, or hosts with or without a port, separated by commas
    #[arg(long, env = "EGRESS_ALLOW", value_name = "LIST")]
    pub egress_allow: Option<String>,
    /// Signs callbacks: a secret of the form whsec_…. While you change it, give new and old with a comma between
    #[arg(long, env = "SIGNING_SECRET", hide_env_values = true, value_name = "SECRET")]
    pub signing_secret: Option<String>,
    /// A JSON file with retry policies and signing secrets of single namespaces: {"NAME": {"retry_policy": {…}, "signing_secret": "whsec_…"}}
    #[arg(long, env = "NAMESPACES_FILE", value_name = "FILE")]
    pub namespaces_file: Option<String>,
    /// Which attempts are kept to be looked up: off, failures or all; the last few of each timer [default: failures]
    #[arg(long, env = "ATTEMPTS", value_name = "WHICH")]
    pub attempts: Option<String>,
    /// No attempt of a timer starts sooner than this after the one before has ended, whatever its retry policy says; 0s for no such limit [default: 1s]
    #[arg(long, env = "RETRY_INTERVAL_MIN", value_name = "DURATION")]
    pub retry_interval_min: Option<String>,
    /// The most calls under way at once [default: 2048]
    #[arg(long, env = "IN_FLIGHT_MAX", value_name = "COUNT")]
    pub in_flight_max: Option<String>,
    /// The most calls under way at once to one host and port, to the NATS server, or to one of its streams [default: 256]
    #[arg(long, env = "IN_FLIGHT_PER_DESTINATION_MAX", value_name = "COUNT")]
    pub in_flight_per_destination_max: Option<String>,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "NATS")]
pub struct NatsOptions {
    /// nats://USER:PASSWORD@HOST:PORT, or tls:// for an encrypted connection; several servers of one cluster with commas between [default: none, HTTP callbacks only]
    #[arg(long, env = "NATS_URL", hide_env_values = true, value_name = "URL")]
    pub nats_url: Option<String>,
    /// The same, under the name that broker-driven modules know
    #[arg(long, env = "TIMER_BROKER_URL", hide_env_values = true, value_name = "URL")]
    pub broker_url: Option<String>,
    /// Host of a NATS server, instead of a URL
    #[arg(long, env = "NATS_HOST", value_name = "HOST")]
    pub nats_host: Option<String>,
    /// Its port [default: 4222]
    #[arg(long, env = "NATS_PORT", value_name = "PORT")]
    pub nats_port: Option<String>,
    /// The name to log in with [default: none]
    #[arg(long, env = "NATS_USER", value_name = "USER")]
    pub nats_user: Option<String>,
    /// The password to log in with; any character may be in it
    #[arg(long, env = "NATS_PASSWORD", hide_env_values = true, value_name = "PASSWORD")]
    pub nats_password: Option<String>,
    /// nats: take ScheduleTimer commands from JetStream, and publish DueTimeReached there [default: off]
    #[arg(long, env = "TIMER_BROKER", value_name = "BROKER")]
    pub broker: Option<String>,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Logs")]
pub struct LogOptions {
    /// What is logged: error, warn, info, debug or trace, also by crate (info,delivery=debug) [default: info]
    #[arg(long, env = "RUST_LOG", value_name = "FILTER")]
    pub log: Option<String>,
    /// text for people, json for machines [default: text]
    #[arg(long, env = "LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct HealthcheckOptions {
    /// Port of the HTTP API [default: 8080]
    #[arg(long, env = "PORT", value_name = "PORT")]
    pub port: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct BackupOptions {
    /// The new file; one that exists is never overwritten
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub store: StoreOptions,
}

#[derive(Debug, Clone, Args)]
pub struct RestoreOptions {
    /// The backup; it is copied and stays as it is
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Replace the database that is there; what it holds is lost
    #[arg(long)]
    pub replace: bool,
    #[command(flatten)]
    pub store: StoreOptions,
}

/// Reads `.env` from the current directory or one above it, if there is one. What the environment says already wins.
pub fn read_dotenv() -> Result<(), Failure> {
    match dotenvy::dotenv() {
        Ok(_) => Ok(()),
        Err(error) if error.not_found() => Ok(()),
        Err(dotenvy::Error::LineParse(_, column)) => {
            // The line itself is not shown: it may hold a secret.
            Err(Failure::Configuration(format!(".env has a line that cannot be read (at its character {column}).")))
        }
        Err(error) => Err(Failure::Configuration(format!(".env cannot be read: {error}."))),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn verify_cli() {
        Cli::command().debug_assert();
    }
}
