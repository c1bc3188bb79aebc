//! What settings may not say together. The rules of single settings stand with their declarations.

use domain::Invalid;

use super::{Options, nats::Broker};
use crate::values::{refuse_parts_without, refuse_two};

/// Refuses settings that contradict each other. What names a database is checked in [`crate::stores`], which commands without
/// the other settings use as well.
pub fn refuse(options: &Options) -> Result<(), Invalid> {
    let Options { api, timers, nats, .. } = options;
    if api.rate_limit_burst.is_some() && api.rate_limit.is_none() {
        return Err(Invalid::new("RATE_LIMIT_BURST", "is set, but RATE_LIMIT is not"));
    }
    if timers.max_horizon.is_some_and(|max| max <= timers.min_delay) {
        return Err(Invalid::new("MAX_HORIZON", "must be longer than MIN_DELAY"));
    }
    let servers = [
        ("NATS_URL", nats.nats_url.is_some()),
        ("TIMER_BROKER_URL", nats.broker_url.is_some()),
        ("NATS_HOST", nats.nats_host.is_some()),
    ];
    let server = refuse_two(servers)?;
    if nats.nats_host.is_none() {
        // Without this check the login would be made without them.
        let parts = [("NATS_USER", nats.nats_user.is_some()), ("NATS_PASSWORD", nats.nats_password.is_some())];
        refuse_parts_without("NATS_HOST", parts)?;
    }
    if nats.broker == Broker::Nats && server.is_none() {
        return Err(Invalid::new("TIMER_BROKER", "is nats, but no NATS server is named: set NATS_URL"));
    }
    Ok(())
}
