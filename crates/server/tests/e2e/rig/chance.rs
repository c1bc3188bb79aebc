use std::{ops::Range, time::Duration};

use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::by_tier;

/// What a test leaves to chance. It comes from one seed, which stands in the output of a test that fails: `FAULT_SEED` repeats its
/// choices, though not the times of the machine.
pub struct Chance {
    seed: u64,
    numbers: StdRng,
}

impl Chance {
    pub fn new(name: &str) -> Self {
        let given = std::env::var("FAULT_SEED").ok().map(|seed| seed.parse().expect("FAULT_SEED is a number"));
        let seed = given.unwrap_or_else(rand::random);
        println!("{name}: FAULT_SEED={seed} repeats the choices of this run");
        Self { seed, numbers: StdRng::seed_from_u64(seed) }
    }

    pub const fn seed(&self) -> u64 {
        self.seed
    }

    pub fn numbers(&mut self) -> &mut StdRng {
        &mut self.numbers
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.numbers.random_range(0..end)
    }

    pub fn millis(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.numbers.random_range(range))
    }

    pub fn micros(&mut self, range: Range<i64>) -> i64 {
        self.numbers.random_range(range)
    }

    /// For a task of its own, so that its choices do not depend on what other tasks do first.
    pub fn fork(&mut self) -> StdRng {
        StdRng::from_rng(&mut self.numbers)
    }

    /// So many different ones below `end`.
    pub fn some(&mut self, count: usize, end: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..end).collect();
        (0..count).map(|_| all.swap_remove(self.below(all.len()))).collect()
    }
}

/// How many there are to be, for a number that fits a build.
pub fn scaled(count: usize) -> usize {
    count * fault_scale().unwrap_or(1)
}

/// What is meant for faults at scale, which are a part of `make soak`, or what is meant for a build.
pub fn at_scale<T>(soak: T, build: T) -> T {
    if fault_scale().is_some() { soak } else { by_tier(soak, build) }
}

fn fault_scale() -> Option<usize> {
    std::env::var("FAULT_SCALE").ok().map(|scale| scale.parse().expect("FAULT_SCALE is a number"))
}
