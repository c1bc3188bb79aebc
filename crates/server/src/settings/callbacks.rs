use std::{path::PathBuf, sync::Arc};

use clap::Args;
use delivery::{Egress, NamespaceRules, SigningSecrets};
use domain::{AttemptLog, Invalid, Span};

use crate::values::{Secret, Setting, choice, duration, number};

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Callbacks")]
pub struct CallbackOptions {
    /// Addresses that callbacks may reach: private (all but link-local and cloud metadata) or public (public ones only)
    #[arg(long, env = "EGRESS", value_name = "POLICY", value_parser = egress_policy(), default_value = PRIVATE)]
    pub egress: &'static str,
    /// Addresses that EGRESS would refuse and that are let through: networks, or hosts with or without a port, separated by commas, such as 10.2.0.0/16,hooks.internal:8443
    #[arg(long, env = "EGRESS_ALLOW", value_name = "LIST", value_parser = egress_allow())]
    pub egress_allow: Option<String>,
    /// Signs callbacks: a secret of the form whsec_…. While you change it, give new and old with a comma between
    #[arg(long, env = "SIGNING_SECRET", hide_env_values = true, value_name = "SECRET", value_parser = signing_secrets())]
    pub signing_secret: Option<Secret>,
    /// A JSON file with retry policies (for timers that have none), signing secrets and NATS subjects of single namespaces: {"NAME": {"retry_policy": {…}, "signing_secret": "whsec_…", "subjects": ["NAME.>"]}}
    #[arg(long, env = "NAMESPACES_FILE", value_name = "FILE")]
    pub namespaces_file: Option<PathBuf>,
    /// Which attempts are kept to be looked up, the last few of each timer
    #[arg(long, env = "ATTEMPTS", value_name = "WHICH", value_parser = attempt_log(), default_value = "failures")]
    pub attempts: AttemptLog,
    /// How much of a receiver's answer is kept with an attempt, beside some of its headers; unset means off, and 1k for `timer dev`
    #[arg(long, env = "ATTEMPTS_BODY", value_name = "SIZE", value_parser = answer_bytes_max())]
    pub attempts_body: Option<usize>,
    /// No attempt of a timer starts sooner than this after the one before has ended, whatever its retry policy says; 0s for no such limit
    #[arg(
        long,
        env = "RETRY_INTERVAL_MIN",
        value_name = "DURATION",
        value_parser = duration(),
        default_value_t = Span::from_secs(1)
    )]
    pub retry_interval_min: Span,
    /// The most calls under way at once
    #[arg(
        long,
        env = "IN_FLIGHT_MAX",
        value_name = "COUNT",
        value_parser = number(1..=1_000_000_usize),
        default_value_t = scheduler::Config::default().in_flight_max
    )]
    pub in_flight_max: usize,
    /// The most calls under way at once to one host and port, to the NATS server, or to one of its streams
    #[arg(
        long,
        env = "IN_FLIGHT_PER_DESTINATION_MAX",
        value_name = "COUNT",
        value_parser = number(1..=1_000_000_usize),
        default_value_t = scheduler::Config::default().in_flight_per_destination_max
    )]
    pub in_flight_per_destination_max: usize,
}

impl CallbackOptions {
    /// How calls are made; with these secrets, and with how much of an answer that is kept, unless they are set.
    pub fn delivery(&self, signing_secret: Option<&Secret>, answer_bytes_max: usize) -> Result<delivery::Config, Invalid> {
        let signing_secret = self.signing_secret.as_ref().or(signing_secret);
        Ok(delivery::Config {
            egress: Egress::parse(self.egress, self.egress_allow.as_deref().unwrap_or_default())?,
            signing: signing_secret.map(|secret| SigningSecrets::parse(secret.expose())).transpose()?,
            namespaces: Arc::new(self.read_namespaces()?),
            attempt_log: self.attempts,
            answer_bytes_max: self.attempts_body.unwrap_or(answer_bytes_max),
            idle_connections_max: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            node: None,
        })
    }

    fn read_namespaces(&self) -> Result<NamespaceRules, Invalid> {
        let Some(path) = &self.namespaces_file else { return Ok(NamespaceRules::default()) };
        let text =
            std::fs::read_to_string(path).map_err(|error| Invalid::new("NAMESPACES_FILE", format!("cannot be read: {error}")))?;
        NamespaceRules::parse(&text)
    }
}

const PRIVATE: &str = "private";
const POLICIES: &[&str] = &[PRIVATE, "public"];

fn egress_policy() -> Setting<&'static str> {
    choice(POLICIES, |text| POLICIES.iter().copied().find(|policy| *policy == text))
}

fn egress_allow() -> Setting<String> {
    Setting::new(|_, text| Egress::parse(PRIVATE, text).map(|_| text.to_owned()))
}

fn signing_secrets() -> Setting<Secret> {
    Setting::new(|_, text| SigningSecrets::parse(text).map(|_| Secret::new(text.to_owned())))
}

/// What `timer dev` keeps of an answer.
pub const ANSWER_BYTES_IN_DEV: usize = 1_024;

fn answer_bytes_max() -> Setting<usize> {
    let sizes = [("off", 0), ("1k", ANSWER_BYTES_IN_DEV), ("64k", 65_536)];
    choice(&["off", "1k", "64k"], move |text| sizes.iter().find(|(name, _)| *name == text).map(|(_, bytes)| *bytes))
}

fn attempt_log() -> Setting<AttemptLog> {
    choice(&["off", "failures", "all"], AttemptLog::parse)
}
