//! Which shards are ours, and until when we may act on them.

use std::{collections::HashMap, time::Duration};

use domain::Shard;
use store::{Epoch, Tenure};

/// The shards this node holds. A pure structure: the steady time is an argument.
///
/// The database's clock decides whether a lease has run out. Here only a lower bound of that is known: the steady
/// time at which the last successful renewal was *begun*, plus the lease, less a margin.
#[derive(Debug, Default)]
pub struct Tenancy {
    epochs: HashMap<Shard, Epoch>,
    safe_until: Duration,
}

/// Kept back from every lease for clocks that do not run quite alike.
const MARGIN: Duration = Duration::from_millis(500);

impl Tenancy {
    /// The node holds exactly these, by a renewal or acquisition begun at `begun`. Says which are new and which are lost.
    pub fn confirm(&mut self, held: &[Tenure], begun: Duration, lease: Duration) -> Changes {
        let now: HashMap<Shard, Epoch> = held.iter().map(|tenure| (tenure.shard, tenure.epoch)).collect();
        let differs = |a: &HashMap<Shard, Epoch>, b: &HashMap<Shard, Epoch>| -> Vec<Shard> {
            a.iter().filter(|(shard, epoch)| b.get(shard) != Some(epoch)).map(|(shard, _)| *shard).collect()
        };
        let changes = Changes { gained: differs(&now, &self.epochs), lost: differs(&self.epochs, &now) };
        self.epochs = now;
        self.safe_until = begun + lease.saturating_sub(MARGIN);
        changes
    }

    /// The node has given back everything but these.
    pub fn keep(&mut self, kept: &[Tenure]) {
        self.epochs.retain(|shard, epoch| kept.contains(&Tenure { shard: *shard, epoch: *epoch }));
    }

    pub fn all(&self) -> Vec<Tenure> {
        self.epochs.iter().map(|(shard, epoch)| Tenure { shard: *shard, epoch: *epoch }).collect()
    }

    pub fn len(&self) -> usize {
        self.epochs.len()
    }

    /// Whether calls may be made and timers claimed at this steady time.
    pub fn is_safe(&self, steady: Duration) -> bool {
        !self.epochs.is_empty() && steady < self.safe_until
    }

    pub fn holds(&self, tenure: Tenure) -> bool {
        self.epochs.get(&tenure.shard) == Some(&tenure.epoch)
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

    #[test]
    fn shards_are_gained_kept_and_lost() {
        let mut tenancy = Tenancy::default();
        let changes = tenancy.confirm(&[tenure(1, 1)], Duration::ZERO, LEASE);
        assert_eq!(changes, Changes { gained: vec![Shard(1)], lost: vec![] });
        let changes = tenancy.confirm(&[tenure(1, 1), tenure(2, 7)], Duration::ZERO, LEASE);
        assert_eq!(changes, Changes { gained: vec![Shard(2)], lost: vec![] });
        let changes = tenancy.confirm(&[tenure(2, 7)], Duration::ZERO, LEASE);
        assert_eq!(changes, Changes { gained: vec![], lost: vec![Shard(1)] });
    }

    #[test]
    fn a_shard_that_comes_back_with_another_epoch_was_lost_in_between() {
        let mut tenancy = Tenancy::default();
        tenancy.confirm(&[tenure(1, 1)], Duration::ZERO, LEASE);
        let changes = tenancy.confirm(&[tenure(1, 3)], Duration::ZERO, LEASE);
        assert_eq!(changes, Changes { gained: vec![Shard(1)], lost: vec![Shard(1)] });
        assert!(!tenancy.holds(tenure(1, 1)));
        assert!(tenancy.holds(tenure(1, 3)));
    }

    #[test]
    fn a_lease_is_trusted_from_the_beginning_of_its_renewal_and_less_a_margin() {
        let mut tenancy = Tenancy::default();
        assert!(!tenancy.is_safe(Duration::ZERO), "nothing is held yet");
        tenancy.confirm(&[tenure(1, 1)], Duration::from_secs(10), LEASE);
        assert!(tenancy.is_safe(Duration::from_millis(13_499)));
        assert!(!tenancy.is_safe(Duration::from_millis(13_500)));
    }
}
