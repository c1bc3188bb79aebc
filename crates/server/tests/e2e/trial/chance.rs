use rand::{RngExt, SeedableRng, rngs::StdRng};

/// What a run leaves to chance. Prints its seed when the test fails.
pub struct Chance {
    name: &'static str,
    seed: u64,
    numbers: StdRng,
}

impl Chance {
    pub fn new(name: &'static str) -> Self {
        let given = std::env::var("FAULT_SEED").ok().map(|seed| seed.parse().expect("FAULT_SEED is a number"));
        let seed = given.unwrap_or_else(rand::random);
        Self { name, seed, numbers: StdRng::seed_from_u64(seed) }
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

    pub fn millis(&mut self, range: std::ops::Range<u64>) -> std::time::Duration {
        std::time::Duration::from_millis(self.numbers.random_range(range))
    }

    /// So many different ones below `end`.
    pub fn some(&mut self, count: usize, end: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..end).collect();
        (0..count).map(|_| all.swap_remove(self.below(all.len()))).collect()
    }
}

impl Drop for Chance {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: FAULT_SEED={} repeats the choices of this run", self.name, self.seed);
        }
    }
}

/// How many there are to be, for a number that fits a build.
pub fn scaled(count: usize) -> usize {
    let scale = std::env::var("FAULT_SCALE").ok().map(|scale| scale.parse::<usize>().expect("FAULT_SCALE is a number"));
    count * scale.unwrap_or(1)
}
