//! How many deliveries may be under way: in all, for each tenant, and for each receiver. This is the backpressure of the scheduler: a
//! timer that is due and gets no permit stays in the store, unclaimed, until one is given back.

use std::hash::Hash;

use domain::{Destination, FairShare, ReceiverId, TenantId};

use crate::hash::Shares;

/// Permits for deliveries. They are shared by dynamic thresholds, first among tenants, then among the receivers of a tenant: a
/// receiver may take its first as long as its tenant has any left, and further ones only out of what lies above a reserve. So a
/// tenant whose receivers hang, however many they are, leaves permits to other tenants; and one of its receivers leaves some to its
/// other receivers. A receiver is called by all tenants together at most as often at once as its own limit says.
#[derive(Debug)]
pub struct ConcurrencyLimit {
    max: usize,
    among_tenants: FairShare,
    per_receiver_max: usize,
    taken: usize,
    by_tenant: Shares<TenantId, usize>,
    by_receiver: Shares<ReceiverId, usize>,
    by_destination: Shares<Destination, usize>,
}

/// The number of permits left for tenants that have none yet; a quarter of all where that is less, a sixteenth where that is more.
const TENANT_RESERVE: usize = 512;
/// The number of a tenant's permits left for its receivers that have none yet; a quarter of what it may have where that is less.
const RECEIVER_RESERVE: usize = 384;
/// A quarter of what lies above that reserve is left for the second permits of other receivers.
const AMONG_RECEIVERS: FairShare = FairShare::AMONG_TENANTS;

impl ConcurrencyLimit {
    pub fn new(max: usize, per_receiver_max: usize) -> Self {
        Self {
            max: max.max(1),
            among_tenants: FairShare::leaving(max, TENANT_RESERVE),
            per_receiver_max: per_receiver_max.max(1),
            taken: 0,
            by_tenant: Shares::default(),
            by_receiver: Shares::default(),
            by_destination: Shares::default(),
        }
    }

    pub const fn max(&self) -> usize {
        self.max
    }

    pub const fn free(&self) -> usize {
        self.max.saturating_sub(self.taken)
    }

    pub const fn taken(&self) -> usize {
        self.taken
    }

    /// Takes a permit for `destination`, if it may have one.
    pub fn take(&mut self, destination: Destination) -> bool {
        if self.left(destination) == 0 {
            return false;
        }
        *self.by_tenant.entry(destination.tenant()).or_default() += 1;
        *self.by_receiver.entry(destination.receiver()).or_default() += 1;
        *self.by_destination.entry(destination).or_default() += 1;
        self.taken += 1;
        true
    }

    /// How many permits `tenant` may have besides those it has, as things stand.
    pub fn left_of(&self, tenant: TenantId) -> usize {
        self.among_tenants.left(self.free(), held(&self.by_tenant, &tenant))
    }

    /// How many permits `destination` may have besides those it has, as things stand: each that is taken leaves less to share.
    pub fn left(&self, destination: Destination) -> usize {
        let of_tenant = self.left_of(destination.tenant());
        let own = held(&self.by_destination, &destination);
        let pool = held(&self.by_tenant, &destination.tenant()) + of_tenant;
        let reserve = RECEIVER_RESERVE.min(pool / 4);
        let share = AMONG_RECEIVERS.left(of_tenant.saturating_sub(reserve), own).max(usize::from(own == 0));
        let receiver_free = self.per_receiver_max.saturating_sub(held(&self.by_receiver, &destination.receiver()));
        let of_receiver = FairShare::OF_A_RECEIVER.left(receiver_free, own);
        share.min(of_tenant).min(of_receiver)
    }

    pub fn give_back(&mut self, destination: Destination) {
        if release(&mut self.by_destination, destination) {
            release(&mut self.by_tenant, destination.tenant());
            release(&mut self.by_receiver, destination.receiver());
            self.taken -= 1;
        }
    }
}

fn held<K: Eq + Hash>(counts: &Shares<K, usize>, key: &K) -> usize {
    counts.get(key).copied().unwrap_or_default()
}

/// Counts one less; whether there was one.
fn release<K: Eq + Hash>(counts: &mut Shares<K, usize>, key: K) -> bool {
    match counts.get_mut(&key) {
        Some(1) => counts.remove(&key).is_some(),
        Some(count) => {
            *count -= 1;
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A receiver as a tenant calls it.
    const fn called_by(tenant: u64, receiver: u64) -> Destination {
        Destination(tenant << 40 | receiver)
    }

    fn fill(permits: &mut ConcurrencyLimit, destination: Destination) -> usize {
        std::iter::from_fn(|| permits.take(destination).then_some(())).count()
    }

    #[test]
    fn a_receiver_gets_no_more_than_its_limit() {
        let mut permits = ConcurrencyLimit::new(1000, 3);
        assert_eq!((fill(&mut permits, called_by(1, 1)), permits.taken()), (3, 3));
        permits.give_back(called_by(1, 1));
        assert_eq!(fill(&mut permits, called_by(1, 1)), 1);
        assert!(!permits.take(called_by(2, 1)), "whatever the tenant");
        assert!(permits.take(called_by(2, 2)));
    }

    #[test]
    fn receivers_that_hang_leave_permits_for_others_of_the_same_tenant() {
        let mut permits = ConcurrencyLimit::new(1024, 64);
        for hanging in 0..200 {
            fill(&mut permits, called_by(1, hanging));
        }
        assert!(permits.take(called_by(1, 1_000)), "another receiver gets a permit");
    }

    #[test]
    fn a_tenant_whose_receivers_all_hang_leaves_a_quarter() {
        let mut permits = ConcurrencyLimit::new(2_048, 256);
        for hanging in 0..10_000 {
            fill(&mut permits, called_by(1, hanging));
        }
        assert_eq!(permits.taken(), 1_536);
        assert_eq!(fill(&mut permits, called_by(2, 77_777)), 216, "one receiver of another tenant gets more than a few");
        assert!(permits.take(called_by(3, 0)), "also one that hangs for the first tenant");
    }

    #[test]
    fn several_tenants_whose_receivers_all_hang_leave_permits_of_a_large_limit() {
        let mut permits = ConcurrencyLimit::new(100_000, 264);
        let left: Vec<usize> = (1..=3)
            .map(|tenant| {
                for hanging in 0..2_000 {
                    fill(&mut permits, called_by(tenant, tenant * 100_000 + hanging));
                }
                permits.free()
            })
            .collect();
        assert_eq!(left, [6_250, 390, 24]);
        assert!(permits.take(called_by(4, 1)));
    }

    #[test]
    fn the_only_receiver_of_a_service_gets_most_permits() {
        for (max, expected) in [(64, 27), (2_048, 864), (10_000, 6_744), (100_000, 70_025)] {
            let mut permits = ConcurrencyLimit::new(max, max);
            assert_eq!(fill(&mut permits, called_by(1, 1)), expected, "of {max}");
            let second = fill(&mut permits, called_by(1, 2));
            assert!(second > expected / 5, "the next receiver got {second} of {max}");
            assert!(permits.take(called_by(2, 3)), "another tenant, of {max}");
        }
    }

    #[test]
    fn a_receiver_that_hangs_for_one_tenant_can_be_called_by_another() {
        let mut permits = ConcurrencyLimit::new(2_048, 256);
        assert_eq!(fill(&mut permits, called_by(1, 1)), 248);
        assert!(permits.take(called_by(2, 1)));
    }

    #[test]
    fn a_tenant_that_holds_more_than_its_share_waits_while_others_get_theirs() {
        let mut permits = ConcurrencyLimit::new(64, 64);
        for receiver in 0..100 {
            fill(&mut permits, called_by(1, receiver));
        }
        for tenant in 2..5 {
            assert!(permits.take(called_by(tenant, 1_000)), "tenant {tenant}");
        }
        permits.give_back(called_by(1, 0));
        assert!(!permits.take(called_by(1, 0)), "it still holds too much");
        assert!(permits.take(called_by(5, 1_000)));
    }

    #[test]
    fn there_are_never_more_than_the_limit() {
        let mut permits = ConcurrencyLimit::new(10, 64);
        for tenant in 0..100 {
            permits.take(called_by(tenant, tenant));
        }
        assert_eq!((permits.taken(), permits.free()), (10, 0));
    }

    #[test]
    fn giving_back_what_was_not_taken_changes_nothing() {
        let mut permits = ConcurrencyLimit::new(10, 5);
        permits.give_back(called_by(1, 1));
        assert_eq!(permits.free(), 10);
    }

    /// Taking and giving back at random, as all the tenants do.
    #[test]
    fn counts_agree_and_a_tenant_without_a_permit_gets_one_while_any_is_free() {
        let mut chance = 1_u64;
        let mut random = |max: u64| {
            chance = crate::hash::mix(chance);
            chance % max
        };
        let mut permits = ConcurrencyLimit::new(50, 8);
        let mut under_way = Vec::new();
        for _ in 0..20_000 {
            if random(2) == 0 || under_way.is_empty() {
                let destination = called_by(random(12), random(30));
                let is_first = held(&permits.by_tenant, &destination.tenant()) == 0;
                let receiver_is_free = held(&permits.by_receiver, &destination.receiver()) < 8;
                let (free, left) = (permits.free(), permits.left(destination));
                let taken = permits.take(destination);
                assert_eq!(taken, left > 0);
                assert!(taken || !is_first || free == 0 || !receiver_is_free);
                under_way.extend(taken.then_some(destination));
            } else {
                let ended = random(under_way.len() as u64) as usize;
                permits.give_back(under_way.swap_remove(ended));
            }
            assert!(permits.taken() == under_way.len() && permits.taken() <= 50);
        }
        under_way.into_iter().for_each(|destination| permits.give_back(destination));
        assert!(
            permits.taken() == 0
                && permits.by_tenant.is_empty()
                && permits.by_receiver.is_empty()
                && permits.by_destination.is_empty()
        );
    }
}
