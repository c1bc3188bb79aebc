use ::nats::Options;
use domain::Invalid;

use super::{given, number, only_one, refuse_parts_without, wrong};
use crate::cli::NatsOptions;

/// Where the NATS server is and how to log in there; `None` when nobody named one.
pub fn parse_server(options: &NatsOptions) -> Result<Option<Options>, Invalid> {
    let named = [
        ("NATS_URL", given(&options.nats_url)),
        ("TIMER_BROKER_URL", given(&options.broker_url)),
        ("NATS_HOST", given(&options.nats_host)),
    ];
    match only_one(&named)? {
        None => {
            refuse_parts_without("NATS_HOST", &[("NATS_USER", &options.nats_user), ("NATS_PASSWORD", &options.nats_password)])?;
            Ok(None)
        }
        Some(("NATS_HOST", host)) => {
            let port = number("NATS_PORT", &options.nats_port, 1..=u16::MAX, 4222)?;
            let (user, password) = (given(&options.nats_user), given(&options.nats_password));
            Options::from_parts(host, port, user, password).map(Some)
        }
        Some((variable, url)) => {
            // They would be passed over, and the login made as nobody.
            refuse_parts_without("NATS_HOST", &[("NATS_USER", &options.nats_user), ("NATS_PASSWORD", &options.nats_password)])?;
            Options::from_url(variable, url).map(Some)
        }
    }
}

/// Whether commands are taken from a broker.
pub fn parse_broker(options: &NatsOptions, has_server: bool) -> Result<bool, Invalid> {
    match given(&options.broker) {
        None | Some("off") => Ok(false),
        Some("nats") if has_server => Ok(true),
        Some("nats") => wrong("TIMER_BROKER", "is nats, but no NATS server is named: set NATS_URL"),
        Some(_) => wrong("TIMER_BROKER", "must be nats or off"),
    }
}
