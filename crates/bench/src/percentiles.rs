//! A distribution in seven numbers.

use serde::{Deserialize, Serialize};

/// Percentiles in milliseconds. Each is a measured value: the smallest that this share of all values does not exceed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    pub min: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
    pub mean: f64,
}

impl Percentiles {
    /// The percentiles of values in microseconds; `None` without values.
    pub fn of(mut micros: Vec<i64>) -> Option<Self> {
        micros.sort_unstable();
        let (first, last) = (micros.first()?, micros.last()?);
        let at = |per_mille: usize| milliseconds(micros[rank(per_mille, micros.len())]);
        let mean = micros.iter().map(|value| milliseconds(*value)).sum::<f64>() / micros.len() as f64;
        Some(Self {
            min: milliseconds(*first),
            p50: at(500),
            p90: at(900),
            p99: at(990),
            p999: at(999),
            max: milliseconds(*last),
            mean,
        })
    }
}

/// The nearest rank, counted from 0.
const fn rank(per_mille: usize, count: usize) -> usize {
    (count * per_mille).div_ceil(1_000).saturating_sub(1)
}

fn milliseconds(micros: i64) -> f64 {
    micros as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let thousand = Percentiles::of((1..=1_000).rev().map(|n| n * 1_000).collect()).unwrap();
        assert_eq!(
            thousand,
            Percentiles { min: 1.0, p50: 500.0, p90: 900.0, p99: 990.0, p999: 999.0, max: 1_000.0, mean: 500.5 }
        );
        let one = Percentiles::of(vec![2_500]).unwrap();
        assert_eq!((one.min, one.p50, one.p999, one.max), (2.5, 2.5, 2.5, 2.5));
        assert_eq!(Percentiles::of(Vec::new()), None);
    }
}
