//! Fair shares: how a limit is shared among tenants.
//!
//! Uses a dynamic threshold (Choudhury and Hahne, 1998): a tenant may hold at most a multiple of what is free. A single tenant
//! gets most of the resource and always leaves some. Each further tenant takes from what is left, and those that hold more than
//! the threshold get nothing until they have given back enough. In the long run all tenants that want more hold the same.

/// The multiple of what is free that one tenant may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FairShare(usize);

impl FairShare {
    /// For a resource among tenants: a single tenant gets three quarters.
    pub const AMONG_TENANTS: Self = Self(3);
    /// For the calls to one receiver among the tenants that call it: a single tenant gets all but a thirty-second part. Most
    /// receivers have one tenant.
    pub const OF_A_RECEIVER: Self = Self(31);

    /// The multiple is at most this: each further tenant that hangs leaves a sixteenth of what the one before it has left, so that the
    /// third still leaves some of a limit of any size.
    const MULTIPLE_MAX: usize = 15;

    /// For a limit of `max` units: a single tenant gets three quarters, and of a large limit all but `reserve` units or a sixteenth,
    /// whichever is more. What is left is for the first units of other tenants, which need less of it where the limit is large.
    pub fn leaving(max: usize, reserve: usize) -> Self {
        Self((max / reserve.max(1)).saturating_sub(1).clamp(Self::AMONG_TENANTS.0, Self::MULTIPLE_MAX))
    }

    /// How much a tenant may take besides what it holds, if nothing is given back meanwhile. A tenant that holds nothing gets
    /// something as long as anything is free.
    pub const fn left(self, free: usize, held: usize) -> usize {
        self.0.saturating_mul(free).saturating_sub(held).div_ceil(self.0 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A resource that tenants take one by one.
    struct Shared {
        free: usize,
        held: Vec<usize>,
    }

    impl Shared {
        fn new(max: usize, parties: usize) -> Self {
            Self { free: max, held: vec![0; parties] }
        }

        fn take(&mut self, party: usize) -> bool {
            let may = FairShare::AMONG_TENANTS.left(self.free, self.held[party]) > 0;
            if may {
                self.free -= 1;
                self.held[party] += 1;
            }
            may
        }

        fn give_back(&mut self, party: usize) {
            self.free += 1;
            self.held[party] -= 1;
        }
    }

    #[test]
    fn a_single_tenant_gets_the_share_that_was_predicted() {
        for (share, max, expected) in [
            (FairShare::AMONG_TENANTS, 2048, 1536),
            (FairShare::AMONG_TENANTS, 64, 48),
            (FairShare::AMONG_TENANTS, 4, 3),
            (FairShare::AMONG_TENANTS, 1, 1),
            (FairShare::leaving(2_048, 512), 2_048, 1_536),
            (FairShare::leaving(64, 512), 64, 48),
            (FairShare::leaving(4_096, 512), 4_096, 3_584),
            (FairShare::leaving(8_192, 512), 8_192, 7_680),
            (FairShare::leaving(10_240, 512), 10_240, 9_600),
            (FairShare::leaving(100_000, 512), 100_000, 93_750),
            (FairShare::OF_A_RECEIVER, 264, 256),
            (FairShare::OF_A_RECEIVER, 256, 248),
            (FairShare::OF_A_RECEIVER, 2, 2),
        ] {
            assert_eq!(share.left(max, 0), expected, "{share:?} of {max}");
            for taken in 0..=expected {
                assert_eq!(share.left(max - taken, taken), expected - taken, "{share:?} of {max}, {taken} taken");
            }
        }
    }

    #[test]
    fn every_tenant_gets_a_first_unit_while_one_is_free() {
        for max in 1..200 {
            let mut shared = Shared::new(max, 300);
            let mut served = 0;
            while shared.free > 0 {
                assert!(shared.take(served), "party {served} of {max}");
                served += 1;
            }
            assert_eq!(served, max);
        }
    }

    #[test]
    fn tenants_that_hang_leave_some_for_the_next() {
        let mut shared = Shared::new(2048, 5);
        for party in 0..4 {
            while shared.take(party) {}
        }
        assert_eq!(shared.held, [1536, 384, 96, 24, 0]);
        assert!(shared.take(4));
    }

    /// A tenant that held all it could gets nothing until the one that came later has as much.
    #[test]
    fn in_the_long_run_all_tenants_that_want_more_hold_the_same() {
        let mut shared = Shared::new(1000, 3);
        while shared.take(0) {}
        for round in 0..10_000 {
            let party = round % 3;
            if shared.held[party] > 0 {
                shared.give_back(party);
            }
            for other in [2, 1, 0] {
                while shared.take(other) {}
            }
        }
        let (least, most) = (shared.held.iter().min().unwrap(), shared.held.iter().max().unwrap());
        assert!(most - least <= 4 && shared.free >= 90, "{:?} of 1000", shared.held);
    }
}
