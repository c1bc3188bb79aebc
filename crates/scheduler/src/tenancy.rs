//! Which shards are ours, and until when we may act on them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use domain::Shard;
use store::{Epoch, Tenure};

/// The shards this node holds. A pure structure: the steady time is an argument.
///
/// The database's clock decides whether the node's lease has run out. Here only a lower bound of that is known: the steady
/// time at which the last successful heartbeat was *begun*, plus the lease, less a margin.
#[derive(Debug, Default)]
pub struct Tenancy {
    epochs: BTreeMap<Shard, Epoch>,
    /// What was given to others. What was claimed under these before stays ours for as long as we live without a break.
    handed_over: BTreeSet<Tenure>,
    lease_end: Duration,
}

/// Kept back from every lease for clocks that do not run quite alike.
const MARGIN: Duration = Duration::from_millis(500);

impl Tenancy {
    /// The node holds exactly these, by a heartbeat begun at this time; `was_away` says that it may have been dead before. Says which
    /// are new and which are lost.
    pub fn confirm(&mut self, held: &[Tenure], begun: Duration, was_away: bool, lease: Duration) -> Changes {
        let now: BTreeMap<Shard, Epoch> = held.iter().map(|tenure| (tenure.shard, tenure.epoch)).collect();
        let differs = |a: &BTreeMap<Shard, Epoch>, b: &BTreeMap<Shard, Epoch>| -> Vec<Shard> {
            a.iter().filter(|(shard, epoch)| b.get(shard) != Some(epoch)).map(|(shard, _)| *shard).collect()
        };
        let changes = Changes { gained: differs(&now, &self.epochs), lost: differs(&self.epochs, &now) };
        self.epochs = now;
        // Between two leases others may have taken up what was claimed.
        if was_away {
            self.handed_over.clear();
        }
        self.handed_over.retain(|tenure| !held.contains(tenure));
        self.lease_end = begun + lease;
        changes
    }

    /// The node has just taken these as well.
    pub fn add(&mut self, taken: &[Tenure]) -> Vec<Shard> {
        let new = taken.iter().filter(|tenure| self.epochs.insert(tenure.shard, tenure.epoch) != Some(tenure.epoch));
        new.map(|tenure| tenure.shard).collect()
    }

    /// The node gives these to others.
    pub fn hand_over(&mut self, given: &[Tenure]) {
        for tenure in given {
            self.epochs.remove(&tenure.shard);
            self.handed_over.insert(*tenure);
        }
    }

    pub fn all(&self) -> Vec<Tenure> {
        self.epochs.iter().map(|(shard, epoch)| Tenure { shard: *shard, epoch: *epoch }).collect()
    }

    pub fn len(&self) -> usize {
        self.epochs.len()
    }

    pub fn holds_shard(&self, shard: Shard) -> bool {
        self.epochs.contains_key(&shard)
    }

    /// Whether timers may be claimed at this steady time.
    pub fn may_claim(&self, steady: Duration) -> bool {
        !self.epochs.is_empty() && self.is_safe(steady)
    }

    /// Whether the node surely lives at this steady time, by what it knows.
    pub fn is_safe(&self, steady: Duration) -> bool {
        steady < self.lease_end.saturating_sub(MARGIN)
    }

    /// Until when the node surely lives, by what it knows; `None` before its first heartbeat.
    pub fn lease_end(&self) -> Option<Duration> {
        (!self.lease_end.is_zero()).then_some(self.lease_end)
    }

    /// Whether what was claimed under this tenure is still ours, as far as is known.
    pub fn owns_claims_of(&self, tenure: Tenure) -> bool {
        self.epochs.get(&tenure.shard) == Some(&tenure.epoch) || self.handed_over.contains(&tenure)
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub gained: Vec<Shard>,
    pub lost: Vec<Shard>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(4);

    fn tenure(shard: u16, epoch: i64) -> Tenure {
        Tenure { shard: Shard(shard), epoch: Epoch(epoch) }
    }

    /// A heartbeat that was begun at this millisecond, in time.
    fn confirm(tenancy: &mut Tenancy, held: &[Tenure], begun: u64) -> Changes {
        let begun = Duration::from_millis(begun);
        tenancy.confirm(held, begun, false, LEASE)
    }

    #[test]
    fn shards_are_gained_kept_and_lost() {
        let mut tenancy = Tenancy::default();
        let changes = confirm(&mut tenancy, &[tenure(1, 1)], 0);
        assert_eq!(changes, Changes { gained: vec![Shard(1)], lost: vec![] });
        let changes = confirm(&mut tenancy, &[tenure(1, 1), tenure(2, 7)], 0);
        assert_eq!(changes, Changes { gained: vec![Shard(2)], lost: vec![] });
        let changes = confirm(&mut tenancy, &[tenure(2, 7)], 0);
        assert_eq!(changes, Changes { gained: vec![], lost: vec![Shard(1)] });
    }

    #[test]
    fn a_shard_that_comes_back_with_another_epoch_was_lost_in_between() {
        let mut tenancy = Tenancy::default();
        confirm(&mut tenancy, &[tenure(1, 1)], 0);
        let changes = confirm(&mut tenancy, &[tenure(1, 3)], 0);
        assert_eq!(changes, Changes { gained: vec![Shard(1)], lost: vec![Shard(1)] });
        assert!(!tenancy.owns_claims_of(tenure(1, 1)));
        assert!(tenancy.owns_claims_of(tenure(1, 3)));
    }

    #[test]
    fn a_lease_is_trusted_from_the_beginning_of_its_renewal_and_less_a_margin() {
        let mut tenancy = Tenancy::default();
        assert!(!tenancy.may_claim(Duration::ZERO), "nothing is held yet");
        confirm(&mut tenancy, &[tenure(1, 1)], 10_000);
        assert!(tenancy.may_claim(Duration::from_millis(13_499)));
        assert!(!tenancy.may_claim(Duration::from_millis(13_500)));
    }

    #[test]
    fn what_was_claimed_before_a_hand_over_stays_ours_while_we_live_without_a_break() {
        let mut tenancy = Tenancy::default();
        confirm(&mut tenancy, &[tenure(1, 1), tenure(2, 1)], 0);
        tenancy.hand_over(&[tenure(1, 1)]);
        assert_eq!((tenancy.all(), tenancy.holds_shard(Shard(1))), (vec![tenure(2, 1)], false));
        assert!(tenancy.owns_claims_of(tenure(1, 1)) && !tenancy.owns_claims_of(tenure(1, 2)));
        let changes = confirm(&mut tenancy, &[tenure(2, 1)], 3_000);
        assert_eq!((changes, tenancy.owns_claims_of(tenure(1, 1))), (Changes::default(), true));
        assert_eq!(tenancy.lease_end(), Some(Duration::from_millis(7_000)));
        // The lease may have run out: somebody may have taken them up.
        tenancy.confirm(&[tenure(2, 1)], Duration::from_millis(6_999), true, LEASE);
        assert!(!tenancy.owns_claims_of(tenure(1, 1)) && tenancy.owns_claims_of(tenure(2, 1)));
    }

    #[test]
    fn a_hand_over_that_did_not_happen_is_a_gain() {
        let mut tenancy = Tenancy::default();
        confirm(&mut tenancy, &[tenure(1, 1)], 0);
        tenancy.hand_over(&[tenure(1, 1)]);
        let changes = confirm(&mut tenancy, &[tenure(1, 1)], 10);
        assert_eq!(changes, Changes { gained: vec![Shard(1)], lost: vec![] });
        assert_eq!(tenancy.add(&[tenure(1, 1), tenure(3, 2)]), [Shard(3)]);
    }
}
