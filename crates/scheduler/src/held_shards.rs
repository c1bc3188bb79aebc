//! Which shards are ours, and until when we may act on them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use domain::Shard;
use store::{Epoch, ShardLease};

/// The shards this node holds. A pure structure: the monotonic time is an argument.
///
/// The database's clock decides whether the node's lease has run out. Here only a lower bound of that is known: the
/// monotonic time at which the last successful heartbeat was *begun*, plus the lease, less a margin.
#[derive(Debug, Default)]
pub struct HeldShards {
    epochs: BTreeMap<Shard, Epoch>,
    /// What was given to other nodes. What was claimed under these before stays ours for as long as we live without a break.
    handed_over: BTreeSet<ShardLease>,
    lease_end: Duration,
}

/// Kept back from every lease for clocks that do not run quite alike.
const MARGIN: Duration = Duration::from_millis(500);

impl HeldShards {
    /// The node holds exactly these, by a heartbeat begun at this time; `was_away` says that it may have been dead before. Says which
    /// are new and which are lost.
    pub fn confirm(&mut self, held: &[ShardLease], begun: Duration, was_away: bool, lease: Duration) -> Changes {
        let now: BTreeMap<Shard, Epoch> = held.iter().map(|shard_lease| (shard_lease.shard, shard_lease.epoch)).collect();
        let differs = |a: &BTreeMap<Shard, Epoch>, b: &BTreeMap<Shard, Epoch>| -> Vec<Shard> {
            a.iter().filter(|(shard, epoch)| b.get(shard) != Some(epoch)).map(|(shard, _)| *shard).collect()
        };
        let changes = Changes { gained: differs(&now, &self.epochs), lost: differs(&self.epochs, &now) };
        self.epochs = now;
        // Between two leases other nodes may have taken up what was claimed.
        if was_away {
            self.handed_over.clear();
        }
        self.handed_over.retain(|shard_lease| !held.contains(shard_lease));
        self.lease_end = begun + lease;
        changes
    }

    /// The node has just taken these as well.
    pub fn add(&mut self, taken: &[ShardLease]) -> Vec<Shard> {
        let new = taken
            .iter()
            .filter(|shard_lease| self.epochs.insert(shard_lease.shard, shard_lease.epoch) != Some(shard_lease.epoch));
        new.map(|shard_lease| shard_lease.shard).collect()
    }

    /// The node gives these to other nodes.
    pub fn hand_over(&mut self, given: &[ShardLease]) {
        for shard_lease in given {
            self.epochs.remove(&shard_lease.shard);
            self.handed_over.insert(*shard_lease);
        }
    }

    pub fn all(&self) -> Vec<ShardLease> {
        self.epochs.iter().map(|(shard, epoch)| ShardLease { shard: *shard, epoch: *epoch }).collect()
    }

    pub fn len(&self) -> usize {
        self.epochs.len()
    }

    pub fn holds_shard(&self, shard: Shard) -> bool {
        self.epochs.contains_key(&shard)
    }

    /// Whether timers may be claimed at this monotonic time.
    pub fn may_claim(&self, monotonic: Duration) -> bool {
        !self.epochs.is_empty() && self.is_safe(monotonic)
    }

    /// Whether the node surely lives at this monotonic time, by what it knows.
    pub fn is_safe(&self, monotonic: Duration) -> bool {
        monotonic < self.lease_end.saturating_sub(MARGIN)
    }

    /// Until when the node surely lives, by what it knows; `None` before its first heartbeat.
    pub fn lease_end(&self) -> Option<Duration> {
        (!self.lease_end.is_zero()).then_some(self.lease_end)
    }

    /// Whether another epoch may have begun, as far as is known: then what was claimed under this shard lease is not this node's any more.
    /// A lease that was handed over is not fenced off: this node finishes what it claimed under it.
    pub fn is_fenced_off(&self, shard_lease: ShardLease) -> bool {
        self.epochs.get(&shard_lease.shard) != Some(&shard_lease.epoch) && !self.handed_over.contains(&shard_lease)
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

    fn shard_lease(shard: u16, epoch: i64) -> ShardLease {
        ShardLease { shard: Shard(shard), epoch: Epoch(epoch) }
    }

    /// A heartbeat that was begun at this millisecond, in time.
    fn confirm(held_shards: &mut HeldShards, held: &[ShardLease], begun: u64) -> Changes {
        let begun = Duration::from_millis(begun);
        held_shards.confirm(held, begun, false, LEASE)
    }

    #[test]
    fn shards_are_gained_kept_and_lost() {
        let mut held_shards = HeldShards::default();
        let changes = confirm(&mut held_shards, &[shard_lease(1, 1)], 0);
        assert_eq!(changes, Changes { gained: vec![Shard(1)], lost: vec![] });
        let changes = confirm(&mut held_shards, &[shard_lease(1, 1), shard_lease(2, 7)], 0);
        assert_eq!(changes, Changes { gained: vec![Shard(2)], lost: vec![] });
        let changes = confirm(&mut held_shards, &[shard_lease(2, 7)], 0);
        assert_eq!(changes, Changes { gained: vec![], lost: vec![Shard(1)] });
    }

    #[test]
    fn a_shard_that_comes_back_with_another_epoch_was_lost_in_between() {
        let mut held_shards = HeldShards::default();
        confirm(&mut held_shards, &[shard_lease(1, 1)], 0);
        let changes = confirm(&mut held_shards, &[shard_lease(1, 3)], 0);
        assert_eq!(changes, Changes { gained: vec![Shard(1)], lost: vec![Shard(1)] });
        assert!(held_shards.is_fenced_off(shard_lease(1, 1)));
        assert!(!held_shards.is_fenced_off(shard_lease(1, 3)));
    }

    #[test]
    fn a_lease_is_trusted_from_the_beginning_of_its_renewal_and_less_a_margin() {
        let mut held_shards = HeldShards::default();
        assert!(!held_shards.may_claim(Duration::ZERO), "nothing is held yet");
        confirm(&mut held_shards, &[shard_lease(1, 1)], 10_000);
        assert!(held_shards.may_claim(Duration::from_millis(13_499)));
        assert!(!held_shards.may_claim(Duration::from_millis(13_500)));
    }

    #[test]
    fn what_was_claimed_before_a_hand_over_stays_ours_while_we_live_without_a_break() {
        let mut held_shards = HeldShards::default();
        confirm(&mut held_shards, &[shard_lease(1, 1), shard_lease(2, 1)], 0);
        held_shards.hand_over(&[shard_lease(1, 1)]);
        assert_eq!((held_shards.all(), held_shards.holds_shard(Shard(1))), (vec![shard_lease(2, 1)], false));
        assert!(!held_shards.is_fenced_off(shard_lease(1, 1)) && held_shards.is_fenced_off(shard_lease(1, 2)));
        let changes = confirm(&mut held_shards, &[shard_lease(2, 1)], 3_000);
        assert_eq!((changes, held_shards.is_fenced_off(shard_lease(1, 1))), (Changes::default(), false));
        assert_eq!(held_shards.lease_end(), Some(Duration::from_millis(7_000)));
        // The lease may have run out: another node may have taken them up.
        held_shards.confirm(&[shard_lease(2, 1)], Duration::from_millis(6_999), true, LEASE);
        assert!(held_shards.is_fenced_off(shard_lease(1, 1)) && !held_shards.is_fenced_off(shard_lease(2, 1)));
    }

    #[test]
    fn a_hand_over_that_did_not_happen_is_a_gain() {
        let mut held_shards = HeldShards::default();
        confirm(&mut held_shards, &[shard_lease(1, 1)], 0);
        held_shards.hand_over(&[shard_lease(1, 1)]);
        let changes = confirm(&mut held_shards, &[shard_lease(1, 1)], 10);
        assert_eq!(changes, Changes { gained: vec![Shard(1)], lost: vec![] });
        assert_eq!(held_shards.add(&[shard_lease(1, 1), shard_lease(3, 2)]), [Shard(3)]);
    }
}
