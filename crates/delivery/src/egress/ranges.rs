//! The address ranges that are not for callbacks, after the special-purpose registries of IANA.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub net: IpNet,
    pub name: &'static str,
    /// Opened only by naming the one address: a network or a host name that happens to cover it is not enough.
    pub sealed: bool,
}

const fn v4(octets: [u8; 4], prefix: u8, name: &'static str) -> Range {
    let [a, b, c, d] = octets;
    Range { net: IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)), name, sealed: false }
}

const fn v6(bits: u128, prefix: u8, name: &'static str) -> Range {
    Range { net: IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::from_bits(bits), prefix)), name, sealed: false }
}

const fn sealed(range: Range) -> Range {
    Range { sealed: true, ..range }
}

/// Closed under every policy.
pub(super) const ALWAYS_CLOSED: &[Range] = &[
    sealed(v4([169, 254, 169, 254], 32, "cloud metadata")),
    sealed(v4([168, 63, 129, 16], 32, "cloud metadata")),
    sealed(v4([100, 100, 100, 200], 32, "cloud metadata")),
    sealed(v4([192, 0, 0, 192], 32, "cloud metadata")),
    // Metadata, credentials of pods, names and time of one cloud: it hands out more of them as it needs them.
    sealed(v6(0xfd00_0ec2 << 96, 32, "cloud metadata")),
    sealed(v6(0xfd20_00ce_0000_0000_0000_0000_0000_0254, 128, "cloud metadata")),
    sealed(v4([169, 254, 0, 0], 16, "link-local")),
    sealed(v6(0xfe80 << 112, 10, "link-local")),
    v4([0, 0, 0, 0], 32, "unspecified"),
    v6(0, 128, "unspecified"),
    v4([224, 0, 0, 0], 4, "multicast"),
    v6(0xff00 << 112, 8, "multicast"),
    v4([255, 255, 255, 255], 32, "broadcast"),
    v4([192, 0, 0, 0], 24, "protocol assignments"),
];

/// Closed, in addition, where only the public Internet may be reached.
pub(super) const CLOSED_TO_PUBLIC: &[Range] = &[
    v4([0, 0, 0, 0], 8, "this network"),
    v4([10, 0, 0, 0], 8, "private network"),
    v4([100, 64, 0, 0], 10, "shared address space"),
    v4([127, 0, 0, 0], 8, "loopback"),
    v4([172, 16, 0, 0], 12, "private network"),
    v4([192, 0, 2, 0], 24, "documentation"),
    v4([192, 88, 99, 0], 24, "6to4 relay"),
    v4([192, 168, 0, 0], 16, "private network"),
    v4([198, 18, 0, 0], 15, "benchmarking"),
    v4([198, 51, 100, 0], 24, "documentation"),
    v4([203, 0, 113, 0], 24, "documentation"),
    v4([240, 0, 0, 0], 4, "reserved"),
    v6(1, 128, "loopback"),
    v6(0, 96, "IPv4-compatible"),
    v6(0x0064_ff9b << 96, 96, "IPv4 translation"),
    v6(0x0064_ff9b_0001 << 80, 48, "IPv4 translation"),
    v6(0x0100 << 112, 64, "discard-only"),
    v6(0x2001 << 112, 23, "protocol assignments"),
    v6(0x2001_0db8 << 96, 32, "documentation"),
    v6(0x2002 << 112, 16, "6to4"),
    v6(0x3fff << 112, 20, "documentation"),
    v6(0x5f00 << 112, 16, "segment routing"),
    v6(0xfc00 << 112, 7, "private network"),
    v6(0xfec0 << 112, 10, "site-local"),
];

/// The rest of IPv6 outside `2000::/3`: no address there is assigned.
pub(super) const NOT_GLOBAL: Range = v6(0, 0, "not global unicast");

pub(super) const fn is_global_unicast_v6(addr: Ipv6Addr) -> bool {
    addr.to_bits() >> 125 == 0b001
}

/// An IPv4 address in the clothes of IPv6 is dialled as what it is.
pub(super) const fn unmapped(addr: IpAddr) -> IpAddr {
    addr.to_canonical()
}

/// The IPv4 addresses that a translator (NAT64), a tunnel (6to4, Teredo, ISATAP) or an old stack (IPv4-compatible, IPv4-translated) may
/// make of it. Several where the address alone does not tell which: each must be one that may be reached.
pub(super) fn embedded_v4(addr: Ipv6Addr) -> Vec<Ipv4Addr> {
    let bits = addr.to_bits();
    // The cast picks the 32 bits that follow.
    let after = |start: u32| (bits >> (96 - start)) as u32;
    let found: Vec<u32> = if bits >> 80 == 0x0064_ff9b_0001 {
        // For local use: how long the prefix is, and so where the address stands, is for its operator to say (RFC 6052, 2.2).
        let halves = (after(48) & 0xffff_0000) | after(72) >> 16;
        let quarters = (after(56) & 0xff00_0000) | after(72) >> 8;
        vec![halves, quarters, after(72), after(96)]
    } else if [0x0064_ff9b << 64, 0, 0xffff_0000].contains(&(bits >> 32)) {
        vec![after(96)]
    } else if bits >> 112 == 0x2002 {
        vec![after(16)]
    } else if bits >> 96 == 0x2001_0000 {
        // The server, and the client behind it in disguise.
        vec![after(32), !after(96)]
    } else if [0x0000_5efe, 0x0200_5efe].contains(&after(64)) {
        vec![after(96)]
    } else {
        Vec::new()
    };
    // Nothing where an address could stand is none, unless nothing stands anywhere.
    let is_empty = found.iter().all(|v4| *v4 == 0);
    found.into_iter().filter(|v4| is_empty || *v4 != 0).map(Ipv4Addr::from_bits).collect()
}
