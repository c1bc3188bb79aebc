//! Which connections are served, and which must leave for them.
//!
//! ```text
//!   the address has too many: its oldest waiting ▶ closed for it  ┌─▶ the reserve: /healthz and /ping, 503 for all else
//!            one ───────────────────────── none? ─────────────────┤     full: its oldest waiting one is closed for it
//!   a permit is free ────────────────────────────▶ served         │
//!   none is: a waiting one of the greediest ─────▶ closed for it  │
//!            address, if that has more ─── none? ─────────────────┘
//! ```

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::strict_reader::RequestInFlight;
use crate::{client_network, limits::RESERVED_CONNECTIONS_MAX};

/// The connections of a listener, by address.
pub(super) struct Admission {
    connections_max: usize,
    per_address_max: usize,
    pools: Mutex<Pools>,
}

#[derive(Default)]
struct Pools {
    admitted: u64,
    served: Pool,
    reserve: Pool,
}

/// Connections in the order of their admission.
#[derive(Default)]
struct Pool {
    connections: BTreeMap<u64, (IpAddr, Arc<RequestInFlight>)>,
    by_address: HashMap<IpAddr, usize>,
}

/// What an admitted connection may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Everything,
    /// One request, for `/healthz` or `/ping`.
    Probes,
}

/// The permit of one connection, for as long as it is open.
pub(super) struct Admitted {
    admission: Arc<Admission>,
    number: u64,
    pub scope: Scope,
    pub in_flight: Arc<RequestInFlight>,
}

impl Admission {
    pub(super) fn new(connections_max: usize, per_address_max: usize) -> Arc<Self> {
        Arc::new(Self { connections_max, per_address_max, pools: Mutex::default() })
    }

    /// The permit of a new connection; `None` when not even the reserve has one.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Admitted> {
        let address = client_network(address);
        let mut pools = self.pools();
        let scope = pools.make_way(address, self.connections_max, self.per_address_max)?;
        pools.admitted += 1;
        let (number, in_flight) = (pools.admitted, Arc::new(RequestInFlight::default()));
        pools.of(scope).insert(number, address, in_flight.clone());
        Some(Admitted { admission: self.clone(), number, scope, in_flight })
    }

    fn pools(&self) -> MutexGuard<'_, Pools> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.admission.pools().of(self.scope).remove(self.number);
    }
}

impl Pools {
    const fn of(&mut self, scope: Scope) -> &mut Pool {
        match scope {
            Scope::Everything => &mut self.served,
            Scope::Probes => &mut self.reserve,
        }
    }

    /// What a connection of this address may ask for, after another was closed for it if need be.
    fn make_way(&mut self, address: IpAddr, connections_max: usize, per_address_max: usize) -> Option<Scope> {
        let own = self.served.count(address);
        let is_served = if own >= per_address_max {
            self.served.close_one(|of| of == address)
        } else {
            self.served.connections.len() < connections_max || self.served.close_one_of_greediest(own)
        };
        if is_served {
            return Some(Scope::Everything);
        }
        let has_reserve = self.reserve.connections.len() < RESERVED_CONNECTIONS_MAX || self.reserve.close_one(|_| true);
        has_reserve.then_some(Scope::Probes)
    }
}

impl Pool {
    fn count(&self, address: IpAddr) -> usize {
        self.by_address.get(&address).copied().unwrap_or_default()
    }

    fn insert(&mut self, number: u64, address: IpAddr, in_flight: Arc<RequestInFlight>) {
        self.connections.insert(number, (address, in_flight));
        *self.by_address.entry(address).or_default() += 1;
    }

    fn remove(&mut self, number: u64) {
        let Some((address, _)) = self.connections.remove(&number) else { return };
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
    }

    /// Closes a waiting connection of the address that has most, if that has more than `own`. Addresses whose connections are all
    /// busy are passed over.
    fn close_one_of_greediest(&mut self, own: usize) -> bool {
        let mut greedy: Vec<(usize, IpAddr)> = self.by_address.iter().map(|(address, count)| (*count, *address)).collect();
        greedy.retain(|(count, _)| *count > own);
        greedy.sort_unstable_by(|left, right| right.cmp(left));
        greedy.into_iter().any(|(_, address)| self.close_one(|of| of == address))
    }

    /// Closes the oldest waiting connection of these addresses. It no longer counts, though it may be a moment before it has left.
    fn close_one(&mut self, is_meant: impl Fn(IpAddr) -> bool) -> bool {
        let waiting = self.connections.iter().find(|(_, (address, in_flight))| is_meant(*address) && in_flight.is_waiting());
        let Some((number, in_flight)) = waiting.map(|(number, (_, in_flight))| (*number, in_flight.clone())) else {
            return false;
        };
        in_flight.ask_to_leave();
        self.remove(number);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, n])
    }

    fn admit(admission: &Arc<Admission>, of: u8, count: usize) -> Vec<Admitted> {
        (0..count).filter_map(|_| admission.admit(address(of))).collect()
    }

    fn served(admitted: &[Admitted]) -> usize {
        admitted.iter().filter(|connection| connection.scope == Scope::Everything && !connection.in_flight.must_leave()).count()
    }

    #[test]
    fn one_address_gets_only_so_many_and_the_rest_of_its_connections_the_reserve() {
        let admission = Admission::new(10, 4);
        let mut greedy = admit(&admission, 1, 4);
        greedy.iter().for_each(|connection| connection.in_flight.begin());
        greedy.extend(admit(&admission, 1, 1));
        let modest = admit(&admission, 2, 2);
        assert_eq!((served(&greedy), greedy[4].scope, served(&modest)), (4, Scope::Probes, 2));
        drop(greedy);
        assert_eq!(served(&admit(&admission, 1, 9)), 4);
    }

    #[test]
    fn an_address_that_has_all_it_may_have_gives_up_its_own_oldest_idle_one() {
        let admission = Admission::new(10, 4);
        let (own, other) = (admit(&admission, 1, 4), admit(&admission, 2, 4));
        own[0].in_flight.begin();
        let new = admit(&admission, 1, 1);
        assert_eq!((new[0].scope, served(&own), served(&other)), (Scope::Everything, 3, 4));
        assert!(own[1].in_flight.must_leave(), "the oldest that waits");
    }

    #[test]
    fn when_full_the_greediest_gives_way_and_equals_do_not() {
        let admission = Admission::new(6, 6);
        let (greedy, modest) = (admit(&admission, 1, 5), admit(&admission, 2, 1));
        let new = admit(&admission, 3, 4);
        assert_eq!((served(&greedy), served(&modest), served(&new)), (2, 1, 3));
        assert!(greedy[..3].iter().all(|connection| connection.in_flight.must_leave()), "the oldest first");
    }

    #[test]
    fn a_busy_connection_is_never_closed() {
        let admission = Admission::new(4, 4);
        let (busy, idle) = (admit(&admission, 1, 2), admit(&admission, 2, 2));
        busy.iter().for_each(|connection| connection.in_flight.begin());
        let new = admit(&admission, 3, 1);
        assert_eq!((served(&busy), served(&idle), served(&new)), (2, 1, 1));
        idle.iter().chain(&new).for_each(|connection| connection.in_flight.begin());
        assert_eq!(admit(&admission, 4, 1)[0].scope, Scope::Probes);
    }

    #[test]
    fn a_full_reserve_takes_a_new_one_for_the_oldest_that_waits() {
        let admission = Admission::new(1, 64);
        let all = admit(&admission, 1, 1 + RESERVED_CONNECTIONS_MAX);
        all[..2].iter().for_each(|connection| connection.in_flight.begin());
        let probe = admit(&admission, 2, 1);
        assert_eq!(probe[0].scope, Scope::Probes);
        let leaving: Vec<_> = all.iter().map(|connection| connection.in_flight.must_leave()).collect();
        assert_eq!(leaving.iter().position(|leaves| *leaves), Some(2));
        assert_eq!(leaving.iter().filter(|leaves| **leaves).count(), 1);
        all.iter().for_each(|connection| connection.in_flight.begin());
        probe[0].in_flight.begin();
        assert!(admission.admit(address(3)).is_none());
    }

    #[test]
    fn all_of_an_ipv6_network_are_one_client() {
        for (left, right, is_same) in [
            ("2001:db8::1", "2001:db8::ffff:1", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
            ("10.0.0.1", "::ffff:10.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false),
        ] {
            assert_eq!(
                client_network(left.parse().unwrap()) == client_network(right.parse().unwrap()),
                is_same,
                "{left} {right}"
            );
        }
    }
}
