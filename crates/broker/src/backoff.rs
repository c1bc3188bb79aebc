//! How long to wait before the next try. Pure.

use std::time::Duration;

use domain::Backoff;

const AGAIN: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));

/// The pauses of the consumer while the store or the broker is away.
pub(crate) const PAUSES: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));

/// The pause before a command that could not be carried out is delivered again, after this number of deliveries.
pub(crate) fn again_after(deliveries: u32) -> Duration {
    AGAIN.after(deliveries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_comes_again_after_ever_longer_up_to_half_a_minute() {
        let seconds = [0, 1, 2, 3, 4, 5, 6, 7, 33, u32::MAX].map(|deliveries| again_after(deliveries).as_secs());
        assert_eq!(seconds, [1, 1, 2, 4, 8, 16, 30, 30, 30, 30]);
    }
}
