//! How much of what is being called lies in memory.

use std::hash::Hash;

use domain::{Destination, FairShare, TenantId, limits};

use crate::hash::Shares;

/// What claimed timers may hold in memory while they are called.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// The number of bytes that a tenant may hold whatever other tenants hold, as long as no more than `TENANTS_WITH_MINIMUM` tenants
/// hold any: claims of large timers after small ones may hold the whole budget, and hang.
const TENANT_BYTES_MIN: usize = 512 * 1024;
const TENANTS_WITH_MINIMUM: usize = 64;
/// The number of destinations, of all tenants, that for the same reason get their first timer whatever their tenant holds.
const FIRSTS_MIN: usize = 32;
/// One destination gets at most this part of the bytes that its tenant has left above the reserve.
const SHARE_OF_LEFT: usize = 3;
/// This part of what a tenant may have is kept for destinations of it that have none yet.
const RESERVE_OF_ALL: usize = 4;
/// Small timers are not taken for granted: the next may be larger.
const EXPECTED_MIN: usize = 32 * 1024;

/// The memory budget: counts the bytes of timers under way, and shares them as permits are shared, first among tenants, then among
/// the destinations of each. Large timers for receivers that hang must not keep other receivers from being called. How large one
/// is, is known only once it is claimed; until then it counts as much as the largest did lately.
#[derive(Debug)]
pub struct MemoryBudget {
    bytes: usize,
    by_tenant: Shares<TenantId, usize>,
    by_destination: Shares<Destination, usize>,
    expected: usize,
}

impl Default for MemoryBudget {
    /// Nothing is known yet, so that the first ones are taken to be as large as they can be.
    fn default() -> Self {
        Self { bytes: 0, by_tenant: Shares::default(), by_destination: Shares::default(), expected: limits::PAYLOAD_BYTES_MAX }
    }
}

impl MemoryBudget {
    /// How many bytes a tenant that holds `held` may hold besides.
    fn left(&self, held: usize) -> usize {
        let minimum = if self.by_tenant.len() <= TENANTS_WITH_MINIMUM { TENANT_BYTES_MIN } else { 0 };
        FairShare::AMONG_TENANTS.left(self.free(), held).max(minimum.saturating_sub(held))
    }

    const fn free(&self) -> usize {
        BYTES_MAX.saturating_sub(self.bytes)
    }

    /// Whether one more may be called for this tenant, to a destination that has none yet.
    pub fn has_budget_for(&self, tenant: TenantId) -> bool {
        match self.by_tenant.get(&tenant) {
            None => self.left(0) > 0,
            Some(held) => self.expected <= self.left(*held) || self.by_destination.len() < FIRSTS_MIN,
        }
    }

    /// Whether one more may be called there.
    pub fn has_budget(&self, destination: Destination) -> bool {
        let Some(own) = self.by_destination.get(&destination) else { return self.has_budget_for(destination.tenant()) };
        let of_tenant = self.by_tenant.get(&destination.tenant()).copied().unwrap_or_default();
        let left = self.left(of_tenant);
        own + self.expected <= left.saturating_sub((of_tenant + left) / RESERVE_OF_ALL) / SHARE_OF_LEFT
    }

    /// Counts one that is not known yet; returns for how much it counts.
    pub fn reserve(&mut self, destination: Destination) -> usize {
        self.add(destination, self.expected);
        self.expected
    }

    pub fn add(&mut self, destination: Destination, bytes: usize) {
        self.bytes += bytes;
        *self.by_tenant.entry(destination.tenant()).or_default() += bytes;
        *self.by_destination.entry(destination).or_default() += bytes;
    }

    pub fn remove(&mut self, destination: Destination, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        subtract(&mut self.by_tenant, destination.tenant(), bytes);
        subtract(&mut self.by_destination, destination, bytes);
    }

    /// The largest of a claim. Large ones are not forgotten at once: they tend to come together.
    /// Says whether less is expected than before.
    pub fn estimate(&mut self, largest: usize) -> bool {
        let before = self.expected;
        self.expected = largest.max(before / 2).max(EXPECTED_MIN);
        self.expected < before
    }
}

fn subtract<K: Eq + Hash>(counts: &mut Shares<K, usize>, key: K, bytes: usize) {
    if let Some(own) = counts.get_mut(&key) {
        *own = own.saturating_sub(bytes);
        if *own == 0 {
            counts.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = limits::PAYLOAD_BYTES_MAX;

    /// How many of this size may be called there at once.
    fn fill(budget: &mut MemoryBudget, destination: u64, size: usize) -> usize {
        let destination = Destination(destination);
        let mut count = 0;
        while budget.has_budget(destination) && count < 10_000 {
            let reserved = budget.reserve(destination);
            budget.remove(destination, reserved);
            budget.add(destination, size);
            count += 1;
        }
        count
    }

    #[test]
    fn one_destination_gets_enough_for_all_its_permits() {
        let mut budget = MemoryBudget::default();
        (0..10).for_each(|_| _ = budget.estimate(32 * 1024));
        assert!(fill(&mut budget, 1, 32 * 1024) >= 256);
    }

    #[test]
    fn large_ones_that_hang_leave_memory_for_other_receivers() {
        let mut budget = MemoryBudget::default();
        for hanging in 0..30 {
            fill(&mut budget, hanging, LARGE);
        }
        assert!(budget.bytes < BYTES_MAX, "{} bytes", budget.bytes);
        assert!(budget.has_budget(Destination(1_000)), "a new destination may still be called");
    }

    #[test]
    fn there_is_never_much_more_than_the_limit() {
        let mut budget = MemoryBudget::default();
        for tenant in 0..10_000 {
            fill(&mut budget, tenant << 40, LARGE);
        }
        assert!(
            (BYTES_MAX..BYTES_MAX + TENANTS_WITH_MINIMUM * (TENANT_BYTES_MIN + LARGE)).contains(&budget.bytes),
            "{} bytes",
            budget.bytes
        );
    }

    #[test]
    fn large_ones_after_small_ones_leave_memory_for_other_receivers() {
        let mut budget = MemoryBudget::default();
        (0..10).for_each(|_| _ = budget.estimate(1024));
        let hanging = [Destination(1), Destination(2), Destination(3)];
        // All are claimed before it is known how large they are.
        let reserved = hanging.map(|hanging| {
            let mut reserved = Vec::new();
            while reserved.len() < 256 && budget.has_budget(hanging) {
                reserved.push(budget.reserve(hanging));
            }
            reserved
        });
        for (hanging, reserved) in hanging.into_iter().zip(reserved) {
            reserved.iter().for_each(|bytes| budget.remove(hanging, *bytes));
            reserved.iter().for_each(|_| budget.add(hanging, LARGE + 1024));
        }
        budget.estimate(LARGE + 1024);
        assert!(budget.bytes > 2 * BYTES_MAX, "{} bytes", budget.bytes);
        assert!(budget.has_budget(Destination(4)) && !budget.has_budget(hanging[0]));
        assert_eq!(fill(&mut budget, 1 << 40, 1024), 1, "another tenant gets its first, as large as it may be");
        (0..10).for_each(|_| _ = budget.estimate(1024));
        assert!(fill(&mut budget, 2 << 40, 1024) > 50, "and small ones by the dozen");
    }

    #[test]
    fn a_tenant_whose_large_ones_hang_leaves_a_quarter() {
        let mut budget = MemoryBudget::default();
        for receiver in 0..10_000 {
            fill(&mut budget, receiver, LARGE);
        }
        assert!(budget.bytes <= BYTES_MAX / 4 * 3 + FIRSTS_MIN * LARGE, "{} bytes", budget.bytes);
        let other = 1 << 40;
        assert!(fill(&mut budget, other, LARGE) > 1, "another tenant gets more than its first");
        assert!(budget.has_budget(Destination(2 << 40)), "and a third gets its first");
    }

    #[test]
    fn what_is_over_counts_no_more() {
        let mut budget = MemoryBudget::default();
        for round in 0..100 {
            let reserved = budget.reserve(Destination(round % 3));
            budget.remove(Destination(round % 3), reserved);
        }
        assert_eq!((budget.bytes, budget.by_tenant.len(), budget.by_destination.len()), (0, 0, 0));
    }
}
