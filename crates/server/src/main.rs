//! `timer`: registers calls for later and makes them on time.
//!
//! This crate is the only one that sees all the others: it reads the configuration, opens the store, and wires the APIs,
//! the scheduler and the delivery together.

mod api_wiring;
mod backup;
#[cfg(feature = "bench")]
mod bench;
mod cli;
mod console_wiring;
mod dev;
mod exit;
mod healthcheck;
mod keys;
mod migrate;
mod nats_wiring;
mod notify;
#[cfg(test)]
mod reference;
mod restore;
mod rlimit;
mod serve;
mod service_call;
mod settings;
mod signals;
mod statistics;
mod status;
mod storage;
mod stores;
mod telemetry;
mod values;

use std::sync::Arc;

use cli::Command;
use rustls::crypto::ring;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    // Some libraries ask for the default of the process, and the driver of Cassandra brings a second one into the build.
    ring::default_provider().install_default().ok();
    let command = match cli::read_dotenv().and_then(|()| cli::parse()) {
        Ok(Command::Terminal(command)) => return terminal::run(command, &terminal_context()),
        parsed => parsed,
    };
    let result = command.and_then(|command| match command {
        // Has exit codes of its own.
        Command::Terminal(_) => Ok(()),
        Command::Serve(options) => serve::main(&options),
        Command::Dev(options) => dev::main(&options),
        Command::Migrate(options) => migrate::main(&options),
        Command::Backup(options) => backup::main(&options),
        Command::Restore(options) => restore::main(&options),
        Command::Healthcheck(options) => healthcheck::main(&options),
        Command::Status(options) => status::main(&options),
        Command::Keys(command) => keys::main(&command),
        #[cfg(feature = "bench")]
        Command::Bench(options) => bench::main(&options),
    });
    exit::code(result)
}

fn terminal_context() -> terminal::Context {
    terminal::Context {
        clock: Arc::new(domain::SystemClock::default()),
        surroundings: terminal::Surroundings::of_process(),
        command_line: <cli::Cli as clap::CommandFactory>::command(),
    }
}
