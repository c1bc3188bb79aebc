//! How many deliveries may be under way, in all and for each destination.

use std::collections::HashMap;

use domain::Destination;

/// Counts deliveries under way. A destination may take its first place as long as there is one at all, and further
/// ones only out of what lies above a reserve: up to its own limit, and up to a share of what is free. The fewer places
/// are left, the less one destination gets, so that many that hang cannot take everything from those that answer.
#[derive(Debug)]
pub struct Slots {
    max: usize,
    per_destination_max: usize,
    taken: usize,
    by_destination: HashMap<Destination, usize>,
}

/// One destination gets at most this part of the free places.
const SHARE_OF_FREE: usize = 4;
/// This part of all places is kept for destinations that have none yet.
const RESERVE_OF_ALL: usize = 4;

impl Slots {
    pub fn new(max: usize, per_destination_max: usize) -> Self {
        Self { max: max.max(1), per_destination_max: per_destination_max.max(1), taken: 0, by_destination: HashMap::new() }
    }

    pub const fn free(&self) -> usize {
        self.max.saturating_sub(self.taken)
    }

    pub const fn taken(&self) -> usize {
        self.taken
    }

    /// Takes a place for `destination`, if it may have one.
    pub fn take(&mut self, destination: Destination) -> bool {
        if self.left(destination) == 0 {
            return false;
        }
        *self.by_destination.entry(destination).or_default() += 1;
        self.taken += 1;
        true
    }

    /// How many places `destination` may have besides those it has, as things stand: each that is taken leaves less to share.
    pub fn left(&self, destination: Destination) -> usize {
        let free = self.free();
        let in_flight = self.by_destination.get(&destination).copied().unwrap_or_default();
        let above_reserve = free.saturating_sub(self.max / RESERVE_OF_ALL);
        let limit = self.per_destination_max.min((above_reserve / SHARE_OF_FREE).max(1));
        limit.saturating_sub(in_flight).min(free)
    }

    pub fn give_back(&mut self, destination: Destination) {
        if let Some(in_flight) = self.by_destination.get_mut(&destination) {
            *in_flight = in_flight.saturating_sub(1);
            self.taken = self.taken.saturating_sub(1);
            if *in_flight == 0 {
                self.by_destination.remove(&destination);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_gets_no_more_than_its_limit() {
        let mut slots = Slots::new(1000, 3);
        let taken = (0..10).filter(|_| slots.take(Destination(1))).count();
        assert_eq!((taken, slots.taken()), (3, 3));
        slots.give_back(Destination(1));
        assert!(slots.take(Destination(1)));
        assert!(!slots.take(Destination(1)));
    }

    #[test]
    fn destinations_that_hang_leave_room_for_others() {
        let mut slots = Slots::new(1024, 64);
        for hanging in 0..200 {
            while slots.take(Destination(hanging)) {}
        }
        assert!(slots.take(Destination(1_000)), "a newcomer still gets a place");
    }

    #[test]
    fn there_are_never_more_than_the_limit() {
        let mut slots = Slots::new(10, 64);
        for destination in 0..100 {
            slots.take(Destination(destination));
        }
        assert_eq!((slots.taken(), slots.free()), (10, 0));
    }

    #[test]
    fn giving_back_what_was_not_taken_changes_nothing() {
        let mut slots = Slots::new(10, 5);
        slots.give_back(Destination(1));
        assert_eq!(slots.free(), 10);
    }
}
