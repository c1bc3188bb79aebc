use std::{fmt, net::IpAddr};

use domain::Invalid;
use ipnet::IpNet;
use url::Host;

use super::ranges::unmapped;

/// One entry of `EGRESS_ALLOW`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Opening {
    target: Target,
    /// `None` opens every port.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Net(IpNet),
    Host(String),
}

pub(super) fn parse_list(text: &str) -> Result<Vec<Opening>, Invalid> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(Opening::parse).collect()
}

impl Opening {
    fn parse(entry: &str) -> Result<Self, Invalid> {
        let refused = || {
            let rule = format!("must list networks (10.2.0.0/16) and hosts (hooks.internal:8443), not {entry:?}");
            Invalid::new("EGRESS_ALLOW", rule)
        };
        if entry.contains('/') {
            let net: IpNet = entry.parse().map_err(|_| refused())?;
            // Addresses are compared as IPv4 once they are unwrapped, so such a network would never match.
            if matches!(net, IpNet::V6(v6) if v6.prefix_len() >= 96 && v6.addr().to_ipv4_mapped().is_some()) {
                return Err(Invalid::new("EGRESS_ALLOW", format!("must name IPv4 networks as IPv4, not {entry:?}")));
            }
            return Ok(Self { target: Target::Net(net), port: None });
        }
        if let Ok(addr) = entry.parse::<IpAddr>() {
            return Ok(Self { target: Target::Net(unmapped(addr).into()), port: None });
        }
        let (host, port) = match entry.rsplit_once(':') {
            Some((host, port)) if !entry.ends_with(']') => {
                (host, Some(port.parse().ok().filter(|port| *port != 0).ok_or_else(refused)?))
            }
            _ => (entry, None),
        };
        let target = match Host::parse(host).map_err(|_| refused())? {
            Host::Ipv4(addr) => Target::Net(IpAddr::from(addr).into()),
            Host::Ipv6(addr) => Target::Net(unmapped(addr.into()).into()),
            Host::Domain(name) if name.contains('*') => return Err(refused()),
            Host::Domain(name) => Target::Host(without_root(&name).to_owned()),
        };
        Ok(Self { target, port })
    }

    /// Whether this entry lets `addr` be dialled. A sealed address must be the only one that the entry names.
    pub(super) fn covers(&self, addr: IpAddr, host: &str, port: u16, is_sealed: bool) -> bool {
        let covers_target = match &self.target {
            Target::Net(net) => net.contains(&addr) && (!is_sealed || net.prefix_len() == net.max_prefix_len()),
            Target::Host(name) => !is_sealed && without_root(host).eq_ignore_ascii_case(name),
        };
        covers_target && self.port.is_none_or(|only| only == port)
    }
}

/// `example.com.` and `example.com` are one host.
fn without_root(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

impl fmt::Display for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            Target::Net(net) => write!(f, "{net}")?,
            Target::Host(name) => f.write_str(name)?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}
