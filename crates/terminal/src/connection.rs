//! Which service is asked, and with which key.

use std::{io::IsTerminal, path::PathBuf, time::Duration};

use clap::Args;
use client::Client;
use domain::Span;

use crate::{Context, Failure, profile::Profiles};

const URL_OF_THIS_MACHINE: &str = "http://127.0.0.1:8080";

/// What the environment says, read once.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The file with the profiles.
    pub config_file: Option<PathBuf>,
    /// Standard output is a terminal.
    pub is_terminal: bool,
    /// Standard error, where progress and questions go, and standard input are terminals.
    pub is_interactive: bool,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_process() -> Self {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let config = variable("XDG_CONFIG_HOME").or_else(|| variable("HOME").map(|home| home.join(".config")));
        Self {
            config_file: config.map(|config| config.join("timer").join("config.toml")),
            is_terminal: std::io::stdout().is_terminal(),
            is_interactive: std::io::stderr().is_terminal() && std::io::stdin().is_terminal(),
        }
    }
}

/// Which service is asked. Flags win over variables, variables over the profile.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The service that is asked")]
pub struct ConnectionOptions {
    /// Where the service is; that of the profile unless given, or http://127.0.0.1:8080
    #[arg(long, env = "TIMER_URL", value_name = "URL")]
    pub url: Option<String>,
    /// An API key; API_KEY if this is not given, then that of the profile
    #[arg(long, env = "TIMER_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub api_key: Option<String>,
    #[arg(long = "api-key-of-the-service", env = "API_KEY", hide = true, hide_env_values = true)]
    pub service_key: Option<String>,
    /// A service that was named with `timer profile add`
    #[arg(long, env = "TIMER_PROFILE", value_name = "NAME")]
    pub profile: Option<String>,
    /// How long a request may take with its repetitions (10s unless given), and how long `--wait` waits
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub timeout: Option<Span>,
    /// How often a request is repeated that can be
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    pub request_retries: u32,
    /// Show every request on standard error, without the key
    #[arg(short, long)]
    pub verbose: bool,
}

pub fn span(text: &str) -> Result<Span, String> {
    Span::parse("a duration", text).map_err(|invalid| invalid.rule)
}

impl ConnectionOptions {
    /// Where the service is; no key is needed to know.
    pub fn url(&self, context: &Context) -> Result<String, Failure> {
        let profiles = Profiles::read(context.surroundings.config_file.as_deref())?;
        let profile = profiles.chosen(self.profile.as_deref())?;
        let url = self.url.clone().or_else(|| profile.map(|profile| profile.url.clone()));
        Ok(url.unwrap_or_else(|| URL_OF_THIS_MACHINE.to_owned()).trim_end_matches('/').to_owned())
    }

    pub fn client(&self, context: &Context) -> Result<Client, Failure> {
        let profiles = Profiles::read(context.surroundings.config_file.as_deref())?;
        let profile = profiles.chosen(self.profile.as_deref())?;
        let url = self.url.clone().or_else(|| profile.map(|profile| profile.url.clone()));
        let api_key = match self.api_key.clone().or_else(|| self.service_key.clone()) {
            Some(key) => key,
            None => match profile {
                Some(profile) => profile.api_key()?,
                None => return Err(Failure::usage("TIMER_API_KEY is required: an API key of the service")),
            },
        };
        let mut builder = Client::builder(url.unwrap_or_else(|| URL_OF_THIS_MACHINE.to_owned()), api_key);
        builder = builder.retries(self.request_retries);
        if let Some(timeout) = self.timeout {
            builder = builder.timeout(timeout.as_duration());
        }
        if self.verbose {
            builder = builder.observe(show);
        }
        Ok(builder.build()?)
    }

    /// How long something is waited for; for ever unless given.
    pub fn wait_timeout(&self) -> Duration {
        const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
        self.timeout.map_or(FOR_EVER, Span::as_duration)
    }
}

fn show(method: &str, url: &str, outcome: Result<u16, &str>) {
    match outcome {
        Ok(status) => crate::output::say(format_args!("{method} {url}: {status}")),
        Err(cause) => crate::output::say(format_args!("{method} {url}: {cause}")),
    }
}
