//! The commands of the command line that ask a running service, over the Rust SDK. They have no powers of their own: each is what
//! any client can ask for.
//!
//! ```text
//!   arguments ──▶ connection (flags, environment, profile) ──▶ client ──▶ service
//!       └──▶ one file per command ──▶ output (table, json, ndjson, csv, id)      failure ──▶ exit code
//! ```

mod change;
mod completion;
mod connection;
mod create;
mod export;
mod failure;
mod filter;
mod import;
mod listen;
mod login;
mod next;
mod open;
mod output;
mod overview;
mod profile;
mod question;
mod read;
mod request;
mod reschedule;
mod rows;
mod signing;
mod table;
mod top;
mod update;
mod watch;

use std::{process::ExitCode, sync::Arc};

use clap::Subcommand;
use domain::Clock;

pub use self::{
    connection::{ConnectionOptions, Surroundings},
    failure::Failure,
    table::table,
};

/// What a service can be asked for.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Register a timer, at a running service
    Create(Box<create::CreateOptions>),
    /// Show one timer
    Get(read::GetOptions),
    /// List timers, by a filter in words
    List(read::ListOptions),
    /// Show the last attempts of a timer
    Attempts(read::GetOptions),
    /// Open the page of a timer in the console
    Open(open::OpenOptions),
    /// Change a pending or paused timer
    Update(update::UpdateOptions),
    /// Cancel timers
    Cancel(change::ChangeOptions),
    /// Make pending timers due now
    Fire(change::ChangeOptions),
    /// Try failed or expired timers again
    Retry(change::ChangeOptions),
    /// Take pending timers out of what is due
    Pause(change::ChangeOptions),
    /// Put paused timers back
    Resume(change::ChangeOptions),
    /// Give timers other due times
    Reschedule(reschedule::RescheduleOptions),
    /// Follow what happens, or one timer to its end
    Watch(watch::WatchOptions),
    /// Forward copies of calls to a receiver on this machine
    Listen(listen::ListenOptions),
    /// Show what is due when
    Next(next::NextOptions),
    /// Show how the service does, on the full screen
    Top(top::TopOptions),
    /// Write timers to a file, with their payloads
    Export(export::ExportOptions),
    /// Register the timers of a file
    Import(import::ImportOptions),
    /// Sign a body from standard input
    Sign(signing::SignOptions),
    /// Verify the signature of a body from standard input
    Verify(signing::VerifyOptions),
    /// Keep the key of a service, and ask that service from now on
    Login(login::LoginOptions),
    /// Name services and their keys
    #[command(subcommand)]
    Profile(profile::ProfileCommand),
    /// Print the completions for a shell
    Completion(completion::CompletionOptions),
    /// Write the manual pages
    Man(completion::ManOptions),
    /// Open the reference of the API, which every service has
    Docs(open::PageOptions),
}

/// What a command runs in.
pub struct Context {
    pub clock: Arc<dyn Clock>,
    pub surroundings: Surroundings,
    /// The whole command line, for completions and manual pages.
    pub command_line: clap::Command,
}

/// Runs a command; its exit code is the code of the envelope, if the service refused it.
pub fn run(command: Command, context: &Context) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(dispatch(command, context)),
        Err(error) => Err(Failure::unexpected(format!("no request can be made: {error}"))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

async fn dispatch(command: Command, context: &Context) -> Result<(), Failure> {
    match command {
        Command::Create(options) => create::run(&options, context).await,
        Command::Get(options) => read::get(&options, context).await,
        Command::List(options) => read::list(&options, context).await,
        Command::Attempts(options) => read::attempts(&options, context).await,
        Command::Open(options) => open::timer(&options, context).await,
        Command::Update(options) => update::run(&options, context).await,
        Command::Cancel(options) => change::run("cancel", &options, context).await,
        Command::Fire(options) => change::run("fire", &options, context).await,
        Command::Retry(options) => change::run("retry", &options, context).await,
        Command::Pause(options) => change::run("pause", &options, context).await,
        Command::Resume(options) => change::run("resume", &options, context).await,
        Command::Reschedule(options) => reschedule::run(&options, context).await,
        Command::Watch(options) => watch::run(&options, context).await,
        Command::Listen(options) => listen::run(&options, context).await,
        Command::Next(options) => next::run(&options, context).await,
        Command::Top(options) => top::run(&options, context).await,
        Command::Export(options) => export::run(&options, context).await,
        Command::Import(options) => import::run(&options, context).await,
        Command::Sign(options) => signing::sign(&options, context),
        Command::Verify(options) => signing::verify(&options, context),
        Command::Login(options) => login::run(&options, context).await,
        Command::Profile(command) => profile::run(&command, context),
        Command::Completion(options) => completion::completion(&options, context),
        Command::Man(options) => completion::man(&options, context),
        Command::Docs(options) => open::docs(&options, context),
    }
}
