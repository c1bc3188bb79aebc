//! Which errors of the system say that this machine is short of something, and nothing about the receiver.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
};

use rustix::io::Errno;

use crate::Shortage;

/// The shortage that made a lookup fail, or the start of the thread that it needs.
pub(super) fn of_lookup(error: &io::Error) -> Option<Shortage> {
    match Errno::from_io_error(error)? {
        Errno::AGAIN => Some(Shortage::Threads),
        errno => of_any(errno),
    }
}

/// The shortage that made an attempt to dial these addresses fail.
pub(super) fn of_dial(error: &io::Error, addrs: &[IpAddr]) -> Option<Shortage> {
    match Errno::from_io_error(error)? {
        Errno::AGAIN => Some(Shortage::Ports),
        // It also says that this machine has no address to dial from, as for IPv6 where there is none: that does not pass.
        Errno::ADDRNOTAVAIL if addrs.iter().all(|addr| has_source(*addr)) => Some(Shortage::Ports),
        errno => of_any(errno),
    }
}

fn of_any(errno: Errno) -> Option<Shortage> {
    match errno {
        Errno::MFILE | Errno::NFILE => Some(Shortage::Descriptors),
        Errno::NOMEM | Errno::NOBUFS => Some(Shortage::Memory),
        _ => None,
    }
}

/// Whether this machine has an address from which this one could be dialled. Nothing is sent.
fn has_source(addr: IpAddr) -> bool {
    let unspecified = match addr {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let chosen = UdpSocket::bind((unspecified, 0)).and_then(|socket| socket.connect(SocketAddr::new(addr, 9)));
    !chosen.is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_this_machine_lacks_is_a_shortage() {
        let (short, loopback) = (Some, [IpAddr::V4(Ipv4Addr::LOCALHOST)]);
        for (errno, lookup, dial) in [
            (Errno::MFILE, short(Shortage::Descriptors), short(Shortage::Descriptors)),
            (Errno::NFILE, short(Shortage::Descriptors), short(Shortage::Descriptors)),
            (Errno::NOMEM, short(Shortage::Memory), short(Shortage::Memory)),
            (Errno::NOBUFS, short(Shortage::Memory), short(Shortage::Memory)),
            (Errno::AGAIN, short(Shortage::Threads), short(Shortage::Ports)),
            (Errno::ADDRNOTAVAIL, None, short(Shortage::Ports)),
            (Errno::CONNREFUSED, None, None),
            (Errno::NETUNREACH, None, None),
            (Errno::TIMEDOUT, None, None),
            (Errno::ACCESS, None, None),
        ] {
            let error = io::Error::from(errno);
            assert_eq!((of_lookup(&error), of_dial(&error, &loopback)), (lookup, dial), "{errno}");
        }
        assert_eq!(of_lookup(&io::Error::other("the name does not exist")), None);
    }
}
