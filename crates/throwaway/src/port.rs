//! Free ports that stay free.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const LOWEST: u16 = 10_000;
/// The default of Linux.
const EPHEMERAL_FROM: u16 = 32_768;

/// A port of 127.0.0.1 on which no process listens, and which this process has not handed out before.
///
/// The ephemeral ports, from which the kernel serves outgoing connections, are avoided. While a server is down, a client that
/// keeps dialling such a port can be given that very port as its own end: it then talks to itself, and the server cannot come
/// back.
pub fn free_port() -> u16 {
    static NEXT: OnceLock<AtomicU64> = OnceLock::new();
    // Test binaries run side by side: a random start keeps them from trying the same ports in the same order.
    let next = NEXT.get_or_init(|| AtomicU64::new(RandomState::new().hash_one(std::process::id()) >> 32));
    let range = listening_range();
    let width = u64::from(range.end - range.start);
    (0..width)
        .map(|_| {
            let offset = next.fetch_add(1, Ordering::Relaxed) % width;
            range.start + u16::try_from(offset).expect("an offset into a range of ports is a port")
        })
        .find(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        .expect("no free port is left on 127.0.0.1: stop what occupies them")
}

fn listening_range() -> Range<u16> {
    let kernel = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    LOWEST..range_end(&kernel)
}

/// The range ends at the first ephemeral port. A machine on which nearly all ports are ephemeral gets the usual range all the
/// same.
fn range_end(kernel: &str) -> u16 {
    let first: Option<u16> = kernel.split_whitespace().next().and_then(|word| word.parse().ok());
    first.filter(|&port| port >= LOWEST + 1_000).unwrap_or(EPHEMERAL_FROM)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ports_are_handed_out_once_and_can_be_listened_on() {
        let ports: HashSet<u16> = (0..100).map(|_| free_port()).collect();
        assert_eq!(ports.len(), 100);
        let first = *ports.iter().next().expect("there are a hundred");
        TcpListener::bind((Ipv4Addr::LOCALHOST, first)).expect("a free port can be bound");
    }

    #[test]
    fn ports_for_outgoing_connections_are_avoided() {
        assert_eq!(range_end("20000\t60999\n"), 20_000);
        assert_eq!(range_end("1024\t65535\n"), EPHEMERAL_FROM);
        assert_eq!(range_end(""), EPHEMERAL_FROM);
    }
}
