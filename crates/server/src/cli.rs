//! The commands and their options. The settings of the service are declared in [`crate::settings`].

#[cfg(feature = "bench")]
mod bench;
#[cfg(test)]
mod help;
mod parse;

use std::path::PathBuf;

use api::BasePath;
use clap::{Args, Parser, Subcommand};
use domain::Invalid;

#[cfg(feature = "bench")]
pub use self::bench::{BenchCommand, BenchOptions, MeasureOptions, ReportOptions};
#[cfg(test)]
pub use self::parse::try_parse;
pub use self::parse::{parse, read_dotenv};
use crate::{
    settings::{Options, PORT, base_path},
    stores::StoreOptions,
    values::{Deferred, Secret, number, secret},
};

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
    Dev(DevOptions),
    /// Bring the database up to date, and stop
    Migrate(StoreOptions),
    /// Copy an SQLite database into a new file, also while the service runs
    Backup(BackupOptions),
    /// Put a backup in the place of an SQLite database, while no service runs
    Restore(RestoreOptions),
    /// Ask a running service on this machine how it is; exits with 0 when it is healthy
    Healthcheck(LocalOptions),
    /// Show the processes that share the work, at a running service
    Status(StatusOptions),
    /// Issue, list and revoke API keys, at a running service
    #[command(subcommand)]
    Keys(KeysCommand),
    #[command(flatten)]
    Terminal(terminal::Command),
    /// Put a service under load, and show how fast and how late it is
    #[cfg(feature = "bench")]
    Bench(BenchOptions),
}

#[derive(Debug, Clone, Args)]
pub struct DevOptions {
    /// Print one line of JSON once it takes requests, for tests that start it: url, api_key, receiver, signing_secret, console
    #[arg(long)]
    pub ready_json: bool,
    #[command(flatten)]
    pub service: Options,
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
    /// What the list of keys calls it
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
    /// Where the service is; unset means PORT on this machine
    #[arg(long, env = "TIMER_URL", value_name = "URL")]
    pub url: Option<String>,
    #[command(flatten)]
    pub local: LocalOptions,
    /// The administrator's key
    #[arg(long, env = "API_KEY", hide_env_values = true, value_name = "KEY", value_parser = secret())]
    pub api_key: Option<Secret>,
}

/// A service on this machine.
#[derive(Debug, Clone, Args)]
pub struct LocalOptions {
    /// Port of the service, if it runs on this machine
    #[arg(long, env = "PORT", value_name = "PORT", value_parser = number(1..=u16::MAX).deferred(), default_value = PORT)]
    pub port: Deferred<u16>,
    /// Path under which it serves everything, if it runs on this machine
    #[arg(long, env = "BASE_PATH", value_name = "PATH", value_parser = base_path().deferred())]
    pub base_path: Option<Deferred<BasePath>>,
}

impl LocalOptions {
    /// What its paths begin with.
    pub fn base_path(&self) -> Result<BasePath, Invalid> {
        Ok(self.base_path.as_ref().map(Deferred::get).transpose()?.unwrap_or_default())
    }
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
