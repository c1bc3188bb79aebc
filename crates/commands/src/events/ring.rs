use std::{collections::VecDeque, sync::Arc};

use domain::Timestamp;

use super::Event;

const EVENTS_MAX: usize = 20_000;
const BYTES_MAX: usize = 32 * 1024 * 1024;

/// The latest events, in the order in which they were read, numbered.
#[derive(Debug)]
pub(super) struct Ring {
    events: VecDeque<Arc<Event>>,
    /// The number of the first.
    first: u64,
    bytes: usize,
    /// Every event with a later position that was read is in the ring.
    whole_after: Timestamp,
}

impl Default for Ring {
    fn default() -> Self {
        Self::after(Timestamp::MAX)
    }
}

impl Ring {
    /// An empty one, for events with positions after this.
    pub(super) const fn after(position: Timestamp) -> Self {
        Self { events: VecDeque::new(), first: 0, bytes: 0, whole_after: position }
    }

    /// Begins anew, for events with positions after this. Streams that read the former events find the next one gone.
    pub(super) fn restart(&mut self, position: Timestamp) {
        *self = Self { first: self.end() + 1, ..Self::after(position) };
    }

    pub(super) fn push(&mut self, event: Event) {
        self.bytes += event.bytes();
        self.events.push_back(Arc::new(event));
        while self.events.len() > EVENTS_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.events.pop_front() else { break };
            self.first += 1;
            self.bytes -= oldest.bytes();
            self.whole_after = self.whole_after.max(oldest.position);
        }
    }

    /// The number that the next event gets.
    pub(super) fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// The number of the first event, if the ring has all of those after this position.
    pub(super) fn join(&self, position: Timestamp) -> Option<u64> {
        (position >= self.whole_after).then_some(self.first)
    }

    /// The events from this number on, at most `limit`; `None` if the first of them is gone.
    pub(super) fn since(&self, number: u64, limit: usize) -> Option<impl Iterator<Item = &Arc<Event>>> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        Some(self.events.iter().skip(index).take(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::event::tests::event_at, *};

    const fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    #[test]
    fn a_ring_holds_so_many_events_and_says_from_where_on_it_is_whole() {
        let mut ring = Ring::after(at(10));
        assert_eq!((ring.join(at(9)), ring.join(at(10)), ring.end()), (None, Some(0), 0));
        let count = i64::try_from(EVENTS_MAX).unwrap() + 3;
        let event = event_at(at(0));
        for n in 0..count {
            ring.push(Event { position: at(100 + n), ..event.clone() });
        }
        assert_eq!(ring.end(), count.unsigned_abs());
        assert_eq!((ring.join(at(101)), ring.join(at(102))), (None, Some(3)));
        assert!(ring.since(2, 10).is_none());
        let found: Vec<_> = ring.since(3, 2).unwrap().map(|event| event.position).collect();
        assert_eq!(found, [at(103), at(104)]);
        assert_eq!(ring.since(ring.end(), 2).unwrap().count(), 0);
    }

    #[test]
    fn a_reader_of_a_ring_that_began_anew_finds_its_next_event_gone() {
        let mut ring = Ring::after(at(10));
        ring.push(event_at(at(11)));
        let next = ring.end();
        ring.restart(at(5));
        assert!(ring.since(0, 1).is_none() && ring.since(next, 1).is_none());
        assert_eq!((ring.join(at(4)), ring.join(at(5))), (None, Some(ring.end())));
    }

    #[test]
    fn a_ring_holds_so_many_bytes() {
        let mut ring = Ring::after(at(0));
        let mut heavy = event_at(at(1));
        heavy.timer.last_error = Some("x".repeat(BYTES_MAX / 3));
        for _ in 0..5 {
            ring.push(heavy.clone());
        }
        assert_eq!(ring.since(ring.first, 10).unwrap().count(), 2);
        assert!(ring.bytes <= BYTES_MAX);
    }
}
