//! Which addresses a callback may reach: the defence against server-side request forgery (SSRF), since the client of the API chooses whom
//! the service calls. The decision is made for the address that is about to be dialled, never for a name, so that a name that resolves
//! to another address the next time (DNS rebinding) gains nothing.

mod allow;
mod ranges;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
};

use domain::{CallbackUrl, Invalid};

use self::{
    allow::Opening,
    ranges::{ALWAYS_CLOSED, CLOSED_TO_PUBLIC, NOT_GLOBAL, Range, embedded_v4, is_global_unicast_v6, unmapped},
};

/// The settings `EGRESS` and `EGRESS_ALLOW`, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Egress {
    policy: Policy,
    openings: Vec<Opening>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    /// Everything but addresses that no receiver has: link-local, cloud metadata, unspecified, multicast, broadcast.
    Private,
    /// Only addresses of the public Internet.
    Public,
}

/// An address that must not be dialled, and what would have to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Denied {
    addr: IpAddr,
    range: Range,
    policy: Policy,
}

impl Default for Egress {
    fn default() -> Self {
        Self { policy: Policy::Private, openings: Vec::new() }
    }
}

impl Egress {
    /// Reads the policy, and the comma-separated networks (`10.2.0.0/16`), addresses and hosts (`hooks.internal:8443`)
    /// that it opens.
    pub fn parse(policy: &str, allow_list: &str) -> Result<Self, Invalid> {
        let policy = match policy.trim() {
            "private" => Policy::Private,
            "public" => Policy::Public,
            _ => return Err(Invalid::new("EGRESS", "must be private or public")),
        };
        Ok(Self { policy, openings: allow::parse_list(allow_list)? })
    }

    /// Whether `addr`, found under the name `host`, may be dialled at `port`.
    pub fn check(&self, addr: IpAddr, host: &str, port: u16) -> Result<(), Denied> {
        let addr = unmapped(addr);
        match self.closing(addr) {
            Some(range) if !self.opens(addr, host, port, range) => Err(Denied { addr, range: *range, policy: self.policy }),
            _ => Ok(()),
        }
    }

    /// Refuses a URL whose host is itself a denied address, so that its client need not wait for the attempt to learn it.
    /// Names pass: what they mean is known only when they are dialled.
    pub fn check_literal(&self, url: &CallbackUrl) -> Result<(), Denied> {
        let (host, port) = (url.host(), url.port());
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        match address.parse::<IpAddr>() {
            Ok(addr) => self.check(addr, host, port),
            // These names are the loopback addresses by definition (RFC 6761), whatever a name server says.
            Err(_) if is_localhost(host) => self.check(Ipv4Addr::LOCALHOST.into(), host, port),
            Err(_) => Ok(()),
        }
    }

    /// The range that closes this address under this policy, if one does.
    fn closing(&self, addr: IpAddr) -> Option<&'static Range> {
        let within = |ranges: &'static [Range], addr: IpAddr| ranges.iter().find(|range| range.net.contains(&addr));
        if let Some(range) = within(ALWAYS_CLOSED, addr) {
            return Some(range);
        }
        let IpAddr::V6(v6) = addr else {
            return if self.policy == Policy::Public { within(CLOSED_TO_PUBLIC, addr) } else { None };
        };
        // A translator or tunnel would carry it to such an address of IPv4.
        if let Some(range) = embedded_v4(v6).into_iter().find_map(|v4| within(ALWAYS_CLOSED, v4.into())) {
            return Some(range);
        }
        match self.policy {
            Policy::Private => None,
            Policy::Public => within(CLOSED_TO_PUBLIC, addr).or((!is_global_unicast_v6(v6)).then_some(&NOT_GLOBAL)),
        }
    }

    fn opens(&self, addr: IpAddr, host: &str, port: u16, range: &Range) -> bool {
        self.openings.iter().any(|opening| opening.covers(addr, host, port, range.sealed))
    }
}

fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}

impl Policy {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Public => "public",
        }
    }
}

/// Shows the policy in force with what it opens, for the log at start.
impl fmt::Display for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.policy.as_str())?;
        for (n, opening) in self.openings.iter().enumerate() {
            write!(f, "{}{opening}", if n == 0 { ", opened for " } else { ", " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { addr, range, policy } = self;
        write!(f, "the address {addr} is closed to callbacks: {} {}, EGRESS={}", range.name, range.net, policy.as_str())?;
        if range.sealed {
            write!(f, "; only its exact address in EGRESS_ALLOW opens it")
        } else {
            write!(f, "; EGRESS_ALLOW can open it")
        }
    }
}
