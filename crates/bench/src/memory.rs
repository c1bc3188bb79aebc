//! How fast memory is: the first thing that foreign load on the same host takes away, and the last that a look at the CPU shows.

use std::{hint::black_box, time::Duration};

use domain::Clock;

use crate::record::Memory;

/// 4 MiB, for a short run.
const QUICK_ENTRIES: u32 = 1 << 20;
/// 128 MiB, more than the caches of most processors hold.
const ENTRIES: u32 = 1 << 25;
/// A full cycle through a power of two needs a multiplier that is 1 modulo 4, and an odd increment.
const MULTIPLIER: u32 = 1_664_525;
const INCREMENT: u32 = 1_013_904_223;
/// How many dependent accesses, and how many entries of a copy, lie between two looks at the clock: less than a time slice.
const ACCESSES_PER_LOOK: usize = 5_000;
const COPIED_PER_LOOK: usize = 1 << 18;

/// Copies memory and follows pointers through it, each for as long as `time`. The median of many short measurements counts, so
/// that a process that takes the CPU meanwhile does not pass for slow memory.
pub fn probe(time: Duration, is_quick: bool, clock: &dyn Clock) -> Memory {
    let cycle = cycle(if is_quick { QUICK_ENTRIES } else { ENTRIES });
    let (mut copy, mut chunk, mut at) = (cycle.clone(), 0, 0);
    let copied = median_seconds(time, clock, || {
        let range = chunk * COPIED_PER_LOOK..(chunk + 1) * COPIED_PER_LOOK;
        copy[range.clone()].copy_from_slice(black_box(&cycle[range]));
        black_box(&mut copy);
        chunk = (chunk + 1) % (cycle.len() / COPIED_PER_LOOK);
    });
    let accessed = median_seconds(time, clock, || {
        for _ in 0..ACCESSES_PER_LOOK {
            at = cycle[at as usize];
        }
        black_box(at);
    });
    Memory {
        copied_gigabytes_per_second: (COPIED_PER_LOOK * size_of::<u32>()) as f64 / copied / 1e9,
        access_nanoseconds: accessed * 1e9 / ACCESSES_PER_LOOK as f64,
    }
}

/// Each entry leads to the next of one cycle through all of them, in an order that no prefetcher foresees.
fn cycle(entries: u32) -> Vec<u32> {
    (0..entries).map(|n| n.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & (entries - 1)).collect()
}

/// How long `work` takes, repeated for as long as `time`.
fn median_seconds(time: Duration, clock: &dyn Clock, mut work: impl FnMut()) -> f64 {
    let began = clock.monotonic();
    let (mut took, mut last) = (Vec::new(), began);
    while took.is_empty() || last.saturating_sub(began) < time {
        work();
        let now = clock.monotonic();
        took.push(now.saturating_sub(last).as_secs_f64());
        last = now;
    }
    took.sort_by(f64::total_cmp);
    took[took.len() / 2].max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use domain::SystemClock;

    use super::*;

    #[test]
    fn the_pointers_lead_through_every_entry_before_they_come_back() {
        let cycle = cycle(1 << 10);
        let (mut at, mut steps) = (cycle[0], 1);
        while at != 0 {
            (at, steps) = (cycle[at as usize], steps + 1);
        }
        assert_eq!(steps, 1 << 10);
    }

    #[test]
    fn both_speeds_are_measured() {
        let memory = probe(Duration::from_millis(1), true, &SystemClock::default());
        assert!(memory.copied_gigabytes_per_second > 0.0 && memory.access_nanoseconds > 0.0, "{memory:?}");
    }
}
