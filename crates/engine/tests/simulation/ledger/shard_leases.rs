use domain::Span;
use store::{NodeId, ShardLease};

use super::{Check, Lease, Ledger, short};

impl Ledger {
    /// A heartbeat.
    pub fn lives(&self, node: NodeId, lease: Span) {
        let (clock, now) = (self.clock, self.now());
        let mut books = self.books();
        let until = now.saturating_add(lease);
        let Some(known) = books.leases.get_mut(&node) else {
            books.leases.insert(node, Lease { until, gap_until: None });
            return books.write(clock, None, format_args!("{} lives", short(node)));
        };
        let was_dead = known.until <= now;
        known.until = until;
        if was_dead {
            known.gap_until = Some(now);
            books.metrics.gaps += 1;
            books.write(clock, None, format_args!("{} lives again", short(node)));
            if !self.is_store_faulty && !books.troubled.contains(&node) {
                books.violated(clock, Check::Lease, None, format_args!("{} lost its lease, and nothing was wrong", short(node)));
            }
        }
    }

    pub fn acquired(&self, node: NodeId, shard_lease: ShardLease) {
        let (clock, now) = (self.clock, self.now());
        let mut books = self.books();
        let before = books.owners.insert(shard_lease.shard, (shard_lease.epoch, Some(node)));
        let Some((epoch, owner)) = before else {
            books.holders.insert(shard_lease, node);
            return;
        };
        let is_its_own = owner == Some(node) && shard_lease.epoch == epoch;
        if is_its_own {
            return;
        }
        books.holders.insert(shard_lease, node);
        let (by, shard, new) = (short(node), shard_lease.shard.0, shard_lease.epoch.0);
        books.write(clock, None, format_args!("{by} takes shard {shard}, epoch {new}"));
        if shard_lease.epoch <= epoch {
            books.violated(clock, Check::Claim, None, format_args!("shard {shard} went from epoch {} to {new}", epoch.0));
        }
        if let Some(owner) = owner.filter(|owner| books.is_alive(*owner, now)) {
            let what = format_args!("{by} took shard {shard} from {}, which lives", short(owner));
            books.violated(clock, Check::Lease, None, what);
        }
    }

    pub fn released(&self, node: NodeId, shard_lease: ShardLease) {
        let clock = self.clock;
        let mut books = self.books();
        if books.owners.get(&shard_lease.shard) == Some(&(shard_lease.epoch, Some(node))) {
            books.owners.insert(shard_lease.shard, (shard_lease.epoch, None));
            books.write(clock, None, format_args!("{} gives shard {} back", short(node), shard_lease.shard.0));
        }
    }

    pub fn left(&self, node: NodeId) {
        let (clock, now) = (self.clock, self.now());
        let mut books = self.books();
        books.leases.insert(node, Lease { until: now, gap_until: None });
        books.owners.values_mut().filter(|(_, owner)| *owner == Some(node)).for_each(|(_, owner)| *owner = None);
        books.write(clock, None, format_args!("{} left", short(node)));
    }
}
