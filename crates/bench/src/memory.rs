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
/// How many dependent accesses lie between two looks at the clock.
const ACCESSES_PER_LOOK: u32 = 10_000;

/// Copies memory and follows pointers through it, each for as long as `time`.
pub fn probe(time: Duration, is_quick: bool, clock: &dyn Clock) -> Memory {
    let entries = if is_quick { QUICK_ENTRIES } else { ENTRIES };
    let cycle = cycle(entries);
    Memory { copied_gigabytes_per_second: copy_rate(&cycle, time, clock), access_nanoseconds: access_time(&cycle, time, clock) }
}

/// Each entry leads to the next of one cycle through all of them, in an order that no prefetcher foresees.
fn cycle(entries: u32) -> Vec<u32> {
    (0..entries).map(|n| n.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & (entries - 1)).collect()
}

fn copy_rate(source: &[u32], time: Duration, clock: &dyn Clock) -> f64 {
    let mut copy = source.to_vec();
    let (began, mut copies) = (clock.monotonic(), 0_u32);
    loop {
        copy.copy_from_slice(black_box(source));
        black_box(&mut copy);
        copies += 1;
        let took = clock.monotonic().saturating_sub(began);
        if took >= time {
            return f64::from(copies) * size_of_val(source) as f64 / took.as_secs_f64() / 1e9;
        }
    }
}

fn access_time(cycle: &[u32], time: Duration, clock: &dyn Clock) -> f64 {
    let (began, mut looks, mut at) = (clock.monotonic(), 0_u32, 0);
    loop {
        for _ in 0..ACCESSES_PER_LOOK {
            at = cycle[at as usize];
        }
        black_box(at);
        looks += 1;
        let took = clock.monotonic().saturating_sub(began);
        if took >= time {
            return took.as_secs_f64() * 1e9 / (f64::from(looks) * f64::from(ACCESSES_PER_LOOK));
        }
    }
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
