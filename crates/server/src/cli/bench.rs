//! The options of `timer bench`.

use clap::{Args, Subcommand};

#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BenchOptions {
    #[command(subcommand)]
    pub command: Option<BenchCommand>,
    #[command(flatten)]
    pub measure: MeasureOptions,
}

#[derive(Debug, Clone, Subcommand)]
pub enum BenchCommand {
    /// Make one page of what earlier runs have written with --json
    Report(ReportOptions),
}

#[derive(Debug, Clone, Args)]
pub struct ReportOptions {
    /// What `timer bench --json` has written
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
    /// The page to write; its charts are put beside it
    #[arg(long, value_name = "FILE.md")]
    pub out: String,
}

#[derive(Debug, Clone, Args)]
pub struct MeasureOptions {
    /// Which to run: w1, w1c, w1b (creates), w2, w2x (many calls at one instant), w3 (lateness), w4 (many pending timers), w5 (creates and calls at once) [default: these]; or where it may become slow: mixed (creates, cancels and calls beside many pending timers), lists (the same beside 0, 1 and 20 lists a second), cancels, updates, slow (a receiver that takes 5 s), burst (a million calls at one instant); cliffs is all of the latter
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// Start a service for this, on a SQLite file that is thrown away, or on --database-url
    #[arg(long)]
    pub embedded: bool,
    /// The database for --embedded, which is filled with timers [default: a SQLite file that is thrown away]
    // Not DATABASE_URL: what is set there, or in .env, is mostly the database that is in use.
    #[arg(long, env = "BENCH_DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub database_url: Option<String>,
    /// A setting of the service that --embedded starts; give it again for each further one
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub settings: Vec<String>,
    /// Another build of this program, which runs each workload in turns with this one, --runs pairs; prints ratios. Needs --embedded
    #[arg(long, value_name = "PROGRAM")]
    pub against: Option<String>,
    /// A command for the shell that is run before each start of a service for --embedded: it empties the database
    #[arg(long, value_name = "COMMAND")]
    pub before: Option<String>,
    /// A running service, such as http://127.0.0.1:8080; its CONNECTIONS_PER_ADDRESS_MAX must allow for the load: 300 for all workloads
    #[arg(long, env = "TIMER_URL", value_name = "URL")]
    pub url: Option<String>,
    /// Its administrator's key
    #[arg(long, env = "API_KEY", hide_env_values = true, value_name = "KEY")]
    pub api_key: Option<String>,
    /// Its MIN_DELAY [default: 0s]
    #[arg(long, value_name = "DURATION")]
    pub min_delay: Option<String>,
    /// The address of this machine at which the service can call back [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub receiver: Option<String>,
    /// How often each workload is run; the run in the middle counts [default: 1]
    #[arg(long, value_name = "COUNT")]
    pub runs: Option<String>,
    /// How many timers, instead of the workload's own number; for mixed and lists, of each kind
    #[arg(long, value_name = "COUNT")]
    pub count: Option<String>,
    /// How many connections, instead of the workload's own number
    #[arg(long, value_name = "COUNT")]
    pub connections: Option<String>,
    /// How many creates, cancels and calls a second mixed and lists have of each [default: 1000]
    #[arg(long, value_name = "COUNT")]
    pub rate: Option<String>,
    /// How many timers are pending beside mixed and lists [default: 1000000]
    #[arg(long, value_name = "COUNT")]
    pub pending: Option<String>,
    /// How many timers are pending in w4, with commas between [default: 200000,1000000]
    #[arg(long, value_name = "LIST")]
    pub sizes: Option<String>,
    /// A tenth of everything: to see that it works, not how well
    #[arg(long)]
    pub quick: bool,
    /// Leave the pending timers of w4, mixed and lists where they are, because the database is thrown away anyway
    #[arg(long)]
    pub leave: bool,
    /// What else must be known to judge the metrics, such as the settings of the database
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    /// Where temporary files are put and the disk is probed [default: the directory for temporary files]
    #[arg(long, value_name = "DIRECTORY")]
    pub directory: Option<String>,
    /// Write the metrics as JSON to this file, or with - to standard output instead of the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<String>,
    /// Write a page with charts to this directory, named after the day
    #[arg(long, value_name = "DIRECTORY")]
    pub report: Option<String>,
}
