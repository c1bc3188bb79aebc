use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use store::ShardLease;

/// How many pages one search looks at where it finds nothing, as long as a shard has not been looked through under its lease: what a dead
/// node has left is found soon.
const PAGES_AT_FIRST: usize = 16;
/// The same from then on. Behind a destination that hangs, or in a burst, a million timers may be due: to look at all of them every few
/// seconds would cost a database a third of one processor.
const PAGES_IN_ROUTINE: usize = 2;

/// How far each shard has been searched for claims that are left behind, a page after the other. Where little is overdue, a page is
/// everything. A place is that of the last row that was looked at.
#[derive(Debug)]
pub struct ShardSearch<Place>(Mutex<Progress<Place>>);

#[derive(Debug)]
struct Progress<Place> {
    places: HashMap<i16, Place>,
    /// The shards that have been looked through since they are held.
    through: HashSet<ShardLease>,
}

impl<Place> Default for ShardSearch<Place> {
    fn default() -> Self {
        Self(Mutex::new(Progress { places: HashMap::new(), through: HashSet::new() }))
    }
}

impl<Place: Copy> ShardSearch<Place> {
    fn progress(&self) -> MutexGuard<'_, Progress<Place>> {
        // Nothing in here panics half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After which row a search of the shard goes on.
    pub fn place(&self, shard: i16) -> Option<Place> {
        self.progress().places.get(&shard).copied()
    }

    /// How many pages a search looks at where it finds nothing.
    pub fn pages_max(&self, shard_leases: &[ShardLease]) -> usize {
        let progress = self.progress();
        let is_routine = shard_leases.iter().all(|shard_lease| progress.through.contains(shard_lease));
        if is_routine { PAGES_IN_ROUTINE } else { PAGES_AT_FIRST }
    }

    /// After a page: the shards that were not looked at to their end go on after these rows, and all others begin anew. Of shards that are
    /// held no more nothing is remembered. Says whether something is left to look at.
    pub fn go_on(&self, shard_leases: &[ShardLease], last: impl Iterator<Item = (i16, Place)>) -> bool {
        let mut progress = self.progress();
        progress.places = last.filter(|(shard, _)| shard_leases.iter().any(|held| number(*held) == *shard)).collect();
        progress.through.retain(|shard_lease| shard_leases.contains(shard_lease));
        let Progress { places, through } = &mut *progress;
        through.extend(shard_leases.iter().filter(|shard_lease| !places.contains_key(&number(**shard_lease))));
        !places.is_empty()
    }

    /// After a page with more claims than are wanted: everything begins anew.
    pub fn begin_anew(&self) {
        self.progress().places.clear();
    }
}

/// A shard as it stands in a column.
const fn number(shard_lease: ShardLease) -> i16 {
    shard_lease.shard.0.cast_signed()
}

#[cfg(test)]
mod tests {
    use domain::Shard;
    use store::Epoch;

    use super::*;

    const fn lease(shard: u16, epoch: i64) -> ShardLease {
        ShardLease { shard: Shard(shard), epoch: Epoch(epoch) }
    }

    #[test]
    fn much_is_looked_at_until_every_shard_was_looked_through_under_its_lease() {
        let search = ShardSearch::<u8>::default();
        let mut held = vec![lease(1, 7), lease(2, 7)];
        assert_eq!(search.pages_max(&held), PAGES_AT_FIRST);
        assert!(search.go_on(&held, [(1, 10), (9, 10)].into_iter()), "there is more of the first");
        assert_eq!((search.place(1), search.place(2), search.place(9)), (Some(10), None, None), "the last is not held");
        assert_eq!(search.pages_max(&held), PAGES_AT_FIRST);
        assert!(!search.go_on(&held, std::iter::empty()));
        assert_eq!(search.pages_max(&held), PAGES_IN_ROUTINE);
        assert!(search.go_on(&held, [(1, 10), (2, 10)].into_iter()), "a backlog has grown");
        assert_eq!(search.pages_max(&held), PAGES_IN_ROUTINE);
        held[1] = lease(2, 8);
        assert_eq!(search.pages_max(&held), PAGES_AT_FIRST, "the second was taken over");
        search.begin_anew();
        assert_eq!((search.place(1), search.pages_max(&held)), (None, PAGES_AT_FIRST));
        assert!(!search.go_on(&held, std::iter::empty()));
        assert_eq!(search.pages_max(&held), PAGES_IN_ROUTINE);
    }
}
