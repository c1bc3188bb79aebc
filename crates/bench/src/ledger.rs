//! Which timers have arrived, and when: one entry for each timer of a round.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

/// Written by the thread of the sink, read by all workloads.
#[derive(Debug)]
pub struct Ledger {
    round: u64,
    lines: Vec<Line>,
    arrived: AtomicU64,
    strangers: AtomicU64,
}

#[derive(Debug, Default)]
struct Line {
    /// In microseconds since 1970; 0 while the timer has not arrived.
    first_at: AtomicI64,
    calls: AtomicU32,
}

impl Ledger {
    pub fn new(round: u64, timers: u64) -> Self {
        let lines = (0..timers).map(|_| Line::default()).collect();
        Self { round, lines, arrived: AtomicU64::new(0), strangers: AtomicU64::new(0) }
    }

    /// Records a call of timer `number` at `at`.
    pub fn note(&self, round: u64, number: u64, at: i64) {
        let line = usize::try_from(number).ok().and_then(|number| self.lines.get(number));
        let Some(line) = line.filter(|_| round == self.round) else {
            self.strangers.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if line.calls.fetch_add(1, Ordering::Relaxed) == 0 {
            line.first_at.store(at, Ordering::Relaxed);
            // Release ordering: a thread that sees the count sees the entry too.
            self.arrived.fetch_add(1, Ordering::Release);
        }
    }

    pub const fn round(&self) -> u64 {
        self.round
    }

    /// How many timers were called at least once.
    pub fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Acquire)
    }

    /// When timer `number` was first called.
    pub fn first_at(&self, number: u64) -> Option<i64> {
        let line = self.lines.get(usize::try_from(number).ok()?)?;
        Some(line.first_at.load(Ordering::Relaxed)).filter(|at| *at != 0)
    }

    /// Calls beyond the first of each timer.
    pub fn duplicates(&self) -> u64 {
        self.lines.iter().map(|line| u64::from(line.calls.load(Ordering::Relaxed).saturating_sub(1))).sum()
    }

    /// Calls that belong to no timer of this round.
    pub fn strangers(&self) -> u64 {
        self.strangers.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_call_counts_and_later_ones_are_duplicates() {
        let ledger = Ledger::new(7, 3);
        for (number, at) in [(0, 100), (2, 110), (0, 120), (0, 130)] {
            ledger.note(7, number, at);
        }
        assert_eq!((ledger.arrived(), ledger.duplicates(), ledger.strangers()), (2, 2, 0));
        assert_eq!([0, 1, 2].map(|number| ledger.first_at(number)), [Some(100), None, Some(110)]);
    }

    #[test]
    fn calls_of_another_round_and_of_no_timer_are_strangers() {
        let ledger = Ledger::new(7, 3);
        ledger.note(6, 0, 100);
        ledger.note(7, 3, 100);
        assert_eq!((ledger.arrived(), ledger.strangers()), (0, 2));
    }
}
