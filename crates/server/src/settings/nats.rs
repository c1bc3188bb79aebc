use ::nats::Options;
use clap::Args;
use domain::Invalid;

use crate::values::{Deferred, Secret, Setting, choice, number, secret};

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "NATS")]
pub struct NatsOptions {
    /// nats://USER:PASSWORD@HOST:PORT, or tls:// for an encrypted connection; several servers of one cluster with commas between. Unset means HTTP callbacks only
    #[arg(long, env = "NATS_URL", hide_env_values = true, value_name = "URL", value_parser = servers())]
    pub nats_url: Option<Options>,
    /// The same, under the name that broker-driven modules know
    #[arg(long, env = "TIMER_BROKER_URL", hide_env_values = true, value_name = "URL", value_parser = servers())]
    pub broker_url: Option<Options>,
    /// Host of a NATS server, instead of a URL
    #[arg(long, env = "NATS_HOST", value_name = "HOST")]
    pub nats_host: Option<String>,
    /// Port of the NATS server, 1 to 65535
    #[arg(long, env = "NATS_PORT", value_name = "PORT", value_parser = number(1..=u16::MAX).deferred(), default_value = "4222")]
    pub nats_port: Deferred<u16>,
    /// The name to log in to NATS with; unset means that none is needed
    #[arg(long, env = "NATS_USER", value_name = "USER")]
    pub nats_user: Option<String>,
    /// The password to log in to NATS with; any character may be in it
    #[arg(long, env = "NATS_PASSWORD", hide_env_values = true, value_name = "PASSWORD", value_parser = secret())]
    pub nats_password: Option<Secret>,
    /// nats: take ScheduleTimer commands from JetStream, and publish DueTimeReached there
    #[arg(long, env = "TIMER_BROKER", value_name = "BROKER", value_parser = broker(), default_value = "off")]
    pub broker: Broker,
}

/// Where commands are taken from, besides HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broker {
    Nats,
    Off,
}

impl NatsOptions {
    /// Where the NATS server is and how to log in there, where a setting names one.
    pub fn server(&self) -> Result<Option<Options>, Invalid> {
        let Some(host) = &self.nats_host else { return Ok(self.nats_url.as_ref().or(self.broker_url.as_ref()).cloned()) };
        let password = self.nats_password.as_ref().map(Secret::expose);
        Options::from_parts(host, self.nats_port.get()?, self.nats_user.as_deref(), password).map(Some)
    }
}

fn servers() -> Setting<Options> {
    Setting::new(Options::from_url)
}

fn broker() -> Setting<Broker> {
    choice(&["nats", "off"], |text| match text {
        "nats" => Some(Broker::Nats),
        "off" => Some(Broker::Off),
        _ => None,
    })
}
