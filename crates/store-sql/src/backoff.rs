//! How long to wait before the next try. Pure.

use std::time::Duration;

/// Pauses that double, from the first up to the longest.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { next: first, longest }
    }

    /// The pause before the next try.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.longest);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut backoff = Backoff::new(Duration::from_millis(20), Duration::from_millis(100));
        assert_eq!([0; 5].map(|_| backoff.pause().as_millis()), [20, 40, 80, 100, 100]);
    }
}
