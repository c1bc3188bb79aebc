use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use domain::{Clock, SystemClock, Timestamp};

/// The machine's clocks, of which the wall clock can be moved forward. It goes on from there as fast as before.
#[derive(Debug, Default)]
pub struct MovableClock {
    machine: SystemClock,
    ahead_micros: AtomicI64,
}

impl MovableClock {
    /// Moves the wall clock to `at`, unless it is later already.
    pub fn move_to(&self, at: Timestamp) {
        let ahead = at.as_micros().saturating_sub(self.machine.now().as_micros());
        self.ahead_micros.fetch_max(ahead, Ordering::SeqCst);
    }
}

impl Clock for MovableClock {
    fn now(&self) -> Timestamp {
        let ahead = self.ahead_micros.load(Ordering::SeqCst);
        Timestamp::from_micros(self.machine.now().as_micros().saturating_add(ahead))
    }

    fn monotonic(&self) -> Duration {
        self.machine.monotonic()
    }
}

#[cfg(test)]
mod tests {
    use domain::Span;

    use super::*;

    #[test]
    fn the_wall_clock_is_moved_forward_and_never_back() {
        let clock = MovableClock::default();
        let (begun, monotonic) = (clock.now(), clock.monotonic());
        let month = begun.saturating_add(Span::from_secs(30 * 24 * 60 * 60));
        clock.move_to(month);
        let moved = clock.now();
        assert!(moved >= month && moved.since(month) < Span::from_secs(60), "{moved}");
        clock.move_to(begun);
        assert!(clock.now() >= moved);
        assert!(clock.monotonic() - monotonic < Duration::from_secs(60), "the monotonic clock is not moved");
    }
}
