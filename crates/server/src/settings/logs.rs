use clap::Args;
use domain::Invalid;
use tracing_subscriber::EnvFilter;

use crate::values::{Setting, choice};

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Logs")]
pub struct LogOptions {
    /// What is logged: error, warn, info, debug or trace, also by crate (info,delivery=debug)
    #[arg(long, env = "RUST_LOG", value_name = "FILTER", value_parser = log_filter(), default_value = "info")]
    pub log: LogFilter,
    /// text for people, json for machines
    #[arg(long, env = "LOG_FORMAT", value_name = "FORMAT", value_parser = log_format(), default_value = "text")]
    pub log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

/// What libraries may log where the filter says nothing of them. The NATS library reports every event of a connection, and every attempt at
/// one, beside our own reports of it; the Cassandra library tells of each connection.
const LIBRARIES: [(&str, &str); 2] = [("async_nats", "off"), ("scylla", "warn")];

/// A filter that was checked.
#[derive(Debug, Clone)]
pub struct LogFilter(String);

impl LogFilter {
    fn parse(setting: &str, text: &str) -> Result<Self, Invalid> {
        let levels = ["off", "error", "warn", "info", "debug", "trace"];
        // The library takes a bare word that is no level for the name of a crate, and then logs nothing else.
        let is_level = |word: &str| levels.contains(&word.to_ascii_lowercase().as_str());
        let is_sound = text.split(',').all(|word| word.contains(['=', '[']) || is_level(word));
        let unnamed = LIBRARIES.iter().filter(|(library, _)| !text.contains(library));
        let text = unnamed.fold(text.to_owned(), |text, (library, level)| format!("{library}={level},{text}"));
        match EnvFilter::try_new(&text) {
            Ok(_) if is_sound => Ok(Self(text)),
            _ => Err(Invalid::new(setting, "must be a level or a filter such as info,delivery=debug")),
        }
    }

    pub fn to_filter(&self) -> EnvFilter {
        EnvFilter::new(&self.0)
    }
}

fn log_filter() -> Setting<LogFilter> {
    Setting::new(LogFilter::parse)
}

fn log_format() -> Setting<LogFormat> {
    choice(&["text", "json"], |text| match text {
        "text" => Some(LogFormat::Text),
        "json" => Some(LogFormat::Json),
        _ => None,
    })
}
