//! How much of what is being called lies in memory.

use domain::limits;

/// What claimed timers may hold in memory while they are called.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// Counts the bytes of timers under way. How large one is, is known only once it is claimed; the next ones are taken to be as large as
/// the largest were lately.
#[derive(Debug)]
pub struct Load {
    bytes: usize,
    expected: usize,
}

impl Default for Load {
    /// Nothing is known yet, so that the first ones are taken to be as large as they can be.
    fn default() -> Self {
        Self { bytes: 0, expected: limits::PAYLOAD_BYTES_MAX }
    }
}

impl Load {
    /// How many more there is room for. One is always possible.
    pub fn room(&self) -> usize {
        let left = BYTES_MAX.saturating_sub(self.bytes) / self.expected.max(1);
        left.max(usize::from(self.bytes == 0))
    }

    pub const fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    pub const fn remove(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// The largest of a claim. Large ones are not forgotten at once: they tend to come together.
    pub fn expect(&mut self, heaviest: usize) {
        self.expected = heaviest.max(self.expected / 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_timers_leave_room_for_fewer() {
        let mut load = Load::default();
        assert_eq!(load.room(), 256);
        load.expect(64 * 1024);
        load.expect(64 * 1024);
        assert_eq!(load.room(), 1024);
        (0..1000).for_each(|_| load.add(64 * 1024));
        assert_eq!(load.room(), 24);
        (0..100).for_each(|_| load.add(64 * 1024));
        assert_eq!(load.room(), 0);
        (0..1100).for_each(|_| load.remove(64 * 1024));
        assert_eq!(load.room(), 1024);
    }

    #[test]
    fn one_is_always_possible() {
        let mut load = Load::default();
        load.expect(usize::MAX);
        assert_eq!(load.room(), 1);
        load.add(1);
        assert_eq!(load.room(), 0);
    }

    #[test]
    fn small_ones_are_soon_expected_again() {
        let mut load = Load::default();
        (0..10).for_each(|_| load.expect(600));
        assert!(load.room() > 10_000);
    }
}
