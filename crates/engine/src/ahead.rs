//! Timers that were claimed ahead of their time, so that their calls need not wait for the store.

use std::collections::BTreeMap;

use domain::{Span, TimerId, Timestamp};
use store::Claimed;

/// They wait here for their time.
#[derive(Default)]
pub struct Ahead(BTreeMap<(Timestamp, TimerId), Claimed>);

impl Ahead {
    /// A timer stands here once: until it is settled, its node does not claim it again.
    pub fn add(&mut self, claimed: Claimed) {
        self.0.insert((claimed.entry.at, claimed.entry.id), claimed);
    }

    /// When the next one is due.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.0.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next one, if it is due at `now`, or not for longer than `longest`: then the clock was set back, and it cannot wait here.
    pub fn take(&mut self, now: Timestamp, longest: Span) -> Option<Claimed> {
        let first = self.0.first_entry()?;
        let at = first.key().0;
        (at <= now || at.since(now) > longest).then(|| first.remove())
    }
}

#[cfg(test)]
mod tests {
    use domain::Destination;
    use store::{ClaimToken, DueEntry, Epoch, ShardLease, Unreadable};

    use super::*;

    fn ahead(times: impl IntoIterator<Item = i64>) -> Ahead {
        let mut ahead = Ahead::default();
        for at in times.into_iter().map(Timestamp::from_micros) {
            let id = TimerId::random(at);
            ahead.add(Claimed {
                entry: DueEntry { at, id, destination: Destination(1) },
                shard_lease: ShardLease { shard: id.shard(1), epoch: Epoch(1) },
                token: ClaimToken(1),
                attempt: 1,
                timer: Err(Unreadable("not asked for".to_owned())),
            });
        }
        ahead
    }

    fn taken(ahead: &mut Ahead, now: i64) -> Vec<i64> {
        let taken = std::iter::from_fn(|| ahead.take(Timestamp::from_micros(now), Span::from_micros(100)));
        taken.map(|claimed| claimed.entry.at.as_micros()).collect()
    }

    #[test]
    fn they_are_taken_in_the_order_of_their_times_and_never_early() {
        let mut ahead = ahead([30, 10, 20, 10]);
        assert!(taken(&mut ahead, 9).is_empty());
        assert_eq!(taken(&mut ahead, 10), [10, 10]);
        assert_eq!(taken(&mut ahead, 25), [20]);
        assert_eq!(ahead.next_due(), Some(Timestamp::from_micros(30)));
    }

    #[test]
    fn none_waits_longer_than_it_may_have_been_claimed_ahead() {
        let mut ahead = ahead([1_000, 1_050]);
        assert!(taken(&mut ahead, 960).is_empty());
        assert!(taken(&mut ahead, 900).is_empty());
        assert_eq!(taken(&mut ahead, 899), [1_000, 1_050]);
    }
}
