//! How much of what is being called lies in memory.

use std::collections::HashMap;

use domain::{Destination, limits};

/// What claimed timers may hold in memory while they are called.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// So many destinations get their first whatever the others hold: claims of large ones after small ones may hold all, and hang.
const FIRSTS_MIN: usize = 256;
/// One destination gets at most this part of the bytes that are free.
const SHARE_OF_FREE: usize = 4;
/// This part of all bytes is kept for destinations that have none yet.
const RESERVE_OF_ALL: usize = 4;
/// Small timers are not taken for granted: the next may be larger.
const EXPECTED_MIN: usize = 32 * 1024;

/// Counts the bytes of timers under way, in all and for each destination: large timers for receivers that hang must not keep others
/// from being called. How large one is, is known only once it is claimed; until then it counts as much as the largest did lately.
#[derive(Debug)]
pub struct Load {
    bytes: usize,
    by_destination: HashMap<Destination, usize>,
    expected: usize,
}

impl Default for Load {
    /// Nothing is known yet, so that the first ones are taken to be as large as they can be.
    fn default() -> Self {
        Self { bytes: 0, by_destination: HashMap::new(), expected: limits::PAYLOAD_BYTES_MAX }
    }
}

impl Load {
    /// Whether one more may be called there.
    pub fn has_room(&self, destination: Destination) -> bool {
        let free = BYTES_MAX.saturating_sub(self.bytes);
        match self.by_destination.get(&destination) {
            None => free > 0 || self.by_destination.len() < FIRSTS_MIN,
            Some(own) => own + self.expected <= free.saturating_sub(BYTES_MAX / RESERVE_OF_ALL) / SHARE_OF_FREE,
        }
    }

    /// Counts one that is not known yet; returns for how much it counts.
    pub fn reserve(&mut self, destination: Destination) -> usize {
        self.add(destination, self.expected);
        self.expected
    }

    pub fn add(&mut self, destination: Destination, bytes: usize) {
        self.bytes += bytes;
        *self.by_destination.entry(destination).or_default() += bytes;
    }

    pub fn remove(&mut self, destination: Destination, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        if let Some(own) = self.by_destination.get_mut(&destination) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                self.by_destination.remove(&destination);
            }
        }
    }

    /// The largest of a claim. Large ones are not forgotten at once: they tend to come together.
    pub fn expect(&mut self, heaviest: usize) {
        self.expected = heaviest.max(self.expected / 2).max(EXPECTED_MIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = limits::PAYLOAD_BYTES_MAX;

    /// How many of this size may be called there at once.
    fn fill(load: &mut Load, destination: u64, size: usize) -> usize {
        let destination = Destination(destination);
        let mut count = 0;
        while load.has_room(destination) && count < 10_000 {
            let reserved = load.reserve(destination);
            load.remove(destination, reserved);
            load.add(destination, size);
            count += 1;
        }
        count
    }

    #[test]
    fn one_destination_gets_enough_for_all_its_places() {
        let mut load = Load::default();
        (0..10).for_each(|_| load.expect(32 * 1024));
        assert!(fill(&mut load, 1, 32 * 1024) >= 256);
    }

    #[test]
    fn large_ones_that_hang_leave_room_for_others() {
        let mut load = Load::default();
        for hanging in 0..30 {
            fill(&mut load, hanging, LARGE);
        }
        assert!(load.bytes < BYTES_MAX, "{} bytes", load.bytes);
        assert!(load.has_room(Destination(1_000)), "a newcomer may still be called");
    }

    #[test]
    fn there_is_never_much_more_than_the_limit() {
        let mut load = Load::default();
        for destination in 0..10_000 {
            fill(&mut load, destination, LARGE);
        }
        assert!((BYTES_MAX..BYTES_MAX + FIRSTS_MIN * LARGE).contains(&load.bytes), "{} bytes", load.bytes);
    }

    #[test]
    fn large_ones_after_small_ones_leave_room_for_others() {
        let mut load = Load::default();
        (0..10).for_each(|_| load.expect(1024));
        let hanging = [Destination(1), Destination(2), Destination(3)];
        // All are claimed before it is known how large they are.
        let reserved = hanging.map(|hanging| {
            let mut reserved = Vec::new();
            while reserved.len() < 256 && load.has_room(hanging) {
                reserved.push(load.reserve(hanging));
            }
            reserved
        });
        for (hanging, reserved) in hanging.into_iter().zip(reserved) {
            reserved.iter().for_each(|bytes| load.remove(hanging, *bytes));
            reserved.iter().for_each(|_| load.add(hanging, LARGE + 1024));
        }
        load.expect(LARGE + 1024);
        assert!(load.bytes > 2 * BYTES_MAX, "{} bytes", load.bytes);
        assert!(load.has_room(Destination(4)) && !load.has_room(hanging[0]));
    }

    #[test]
    fn what_is_over_counts_no_more() {
        let mut load = Load::default();
        for round in 0..100 {
            let reserved = load.reserve(Destination(round % 3));
            load.remove(Destination(round % 3), reserved);
        }
        assert_eq!((load.bytes, load.by_destination.len()), (0, 0));
    }
}
