//! Ratios of pairs of runs: what two builds differ by, and how sure that is.

use serde::{Deserialize, Serialize};

use crate::{chart::grouped, percentiles::Percentiles, record::Run, summary::percent};

pub const RATIO_HEAD: [&str; 8] = ["WORKLOAD", "PENDING", "PAIRS", "PER S", "CPU US", "P50 MS", "P99 MS", "STEAL"];

/// Two runs of one workload, one after the other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    pub ours: Run,
    pub other: Run,
}

/// The ratios of one workload, ours divided by the other's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ratios {
    pub workload: String,
    pub pending: u64,
    pub pairs: usize,
    /// Above 1, ours is faster.
    pub rate: Option<Ratio>,
    /// CPU time of service and database for each timer: below 1, ours takes less.
    pub cpu_micros_each: Option<Ratio>,
    /// Lateness where there are calls, otherwise answer times: below 1, ours is quicker.
    pub p50: Option<Ratio>,
    pub p99: Option<Ratio>,
    /// The median share of steal time of each side: where they differ, the ratios say more of the host than of the builds.
    pub stolen_share_ours: Option<f64>,
    pub stolen_share_other: Option<f64>,
}

/// The ratios of all pairs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Ratio {
    /// `None` without a single pair of numbers that can be divided.
    fn of(pairs: impl Iterator<Item = Option<(f64, f64)>>) -> Option<Self> {
        let mut ratios: Vec<f64> = pairs.flatten().filter(|(_, other)| *other > 0.0).map(|(ours, other)| ours / other).collect();
        ratios.sort_by(f64::total_cmp);
        Some(Self { median: median_of_sorted(&ratios)?, min: *ratios.first()?, max: *ratios.last()? })
    }
}

/// One entry for each workload and number of pending timers, in the order in which they were run.
pub fn ratios(pairs: &[Pair]) -> Vec<Ratios> {
    let mut all: Vec<Ratios> = Vec::new();
    for Pair { ours, .. } in pairs {
        let is_same = |pair: &&Pair| (&pair.ours.workload, pair.ours.pending) == (&ours.workload, ours.pending);
        if all.iter().any(|known| (&known.workload, known.pending) == (&ours.workload, ours.pending)) {
            continue;
        }
        let group: Vec<&Pair> = pairs.iter().filter(is_same).collect();
        let ratio = |of: fn(&Run) -> Option<f64>| Ratio::of(group.iter().map(|pair| of(&pair.ours).zip(of(&pair.other))));
        all.push(Ratios {
            workload: ours.workload.clone(),
            pending: ours.pending,
            pairs: group.len(),
            rate: ratio(|run| Some(run.rate)),
            cpu_micros_each: ratio(|run| run.cpu_micros_each),
            p50: ratio(|run| times(run).map(|times| times.p50)),
            p99: ratio(|run| times(run).map(|times| times.p99)),
            stolen_share_ours: median(group.iter().filter_map(|pair| pair.ours.usage.stolen_share)),
            stolen_share_other: median(group.iter().filter_map(|pair| pair.other.usage.stolen_share)),
        });
    }
    all
}

fn median(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    median_of_sorted(&numbers)
}

/// Between two in the middle lies their mean: taking one of them would favour a side.
fn median_of_sorted(numbers: &[f64]) -> Option<f64> {
    let (low, high) = (numbers.get(numbers.len().checked_sub(1)? / 2)?, numbers.get(numbers.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}

fn times(run: &Run) -> Option<Percentiles> {
    run.lateness.or(run.answers)
}

/// The ratios of a comparison, under [`RATIO_HEAD`].
pub fn ratio_rows(ratios: &[Ratios]) -> Vec<[String; 8]> {
    let text = |ratio: Option<Ratio>| {
        ratio.map_or("-".to_owned(), |Ratio { median, min, max }| format!("{median:.2} ({min:.2}-{max:.2})"))
    };
    let row = |ratios: &Ratios| {
        let Ratios { workload, pending, pairs, rate, cpu_micros_each, p50, p99, stolen_share_ours, stolen_share_other } =
            ratios.clone();
        let pending = grouped(pending as f64);
        let stolen = [stolen_share_ours, stolen_share_other].map(|share| share.map_or("-".to_owned(), percent));
        [workload, pending, pairs.to_string(), text(rate), text(cpu_micros_each), text(p50), text(p99), stolen.join(", ")]
    };
    ratios.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(workload: &str, ours: f64, other: f64) -> Pair {
        let run = |rate: f64| Run {
            workload: workload.to_owned(),
            rate,
            answers: Some(Percentiles { p50: rate / 2.0, ..Percentiles::default() }),
            ..Run::default()
        };
        Pair { ours: run(ours), other: run(other) }
    }

    #[test]
    fn the_median_of_the_pairs_counts_and_the_range_is_shown() {
        let mut pairs = [pair("w1", 3.0, 2.0), pair("w1", 2.0, 2.0), pair("w2", 1.0, 4.0), pair("w1", 2.2, 2.0)];
        pairs[0].ours.usage.stolen_share = Some(0.1);
        pairs[0].other.usage.stolen_share = Some(0.04);
        pairs[1].other.usage.stolen_share = Some(0.03);
        assert_eq!(
            ratio_rows(&ratios(&pairs)),
            [
                ["w1", "0", "3", "1.10 (1.00-1.50)", "-", "1.10 (1.00-1.50)", "-", "10 %, 3.5 %"].map(str::to_owned),
                ["w2", "0", "1", "0.25 (0.25-0.25)", "-", "0.25 (0.25-0.25)", "-", "-, -"].map(str::to_owned),
            ]
        );
    }

    #[test]
    fn of_an_even_number_the_mean_of_the_two_in_the_middle_counts() {
        let pairs = [(1.0, 1.0), (2.0, 1.0), (4.0, 1.0), (8.0, 1.0)].map(Some);
        assert_eq!(Ratio::of(pairs.into_iter()), Some(Ratio { median: 3.0, min: 1.0, max: 8.0 }));
        assert_eq!(Ratio::of([None, Some((1.0, 0.0))].into_iter()), None);
    }
}
