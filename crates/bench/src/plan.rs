//! When each timer of a workload is due.

use std::sync::Arc;

/// The due time of timer `n`, in microseconds since 1970, as a function of `n` alone.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    /// At equal gaps; all at one instant when the gap is 0.
    Every { first: i64, gap: i64 },
    /// Anywhere in a span, pseudo-random but the same in every run.
    Scattered { from: i64, span: i64 },
    /// At rates that change. The steps are consecutive in number and in time.
    Steps(Arc<[Step]>),
}

/// Timers at one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    pub first: u64,
    pub timers: u64,
    pub begin: i64,
    pub end: i64,
    pub per_second: f64,
}

impl Plan {
    pub fn due(&self, n: u64) -> i64 {
        match self {
            Self::Every { first, gap } => first.saturating_add(gap.saturating_mul(i64::try_from(n).unwrap_or(i64::MAX))),
            Self::Scattered { from, span } => {
                let offset = mix(n) % span.unsigned_abs().max(1);
                from.saturating_add(i64::try_from(offset).unwrap_or_default())
            }
            Self::Steps(steps) => {
                let index = steps.partition_point(|step| step.first <= n).saturating_sub(1);
                steps.get(index).map_or(0, |step| step.begin + micros((n - step.first) as f64 / step.per_second))
            }
        }
    }
}

/// From one hour to twenty-five hours from `now`: later than any run lasts.
pub const fn much_later(now: i64) -> Plan {
    const HOUR_MICROS: i64 = 3_600_000_000;
    Plan::Scattered { from: now + HOUR_MICROS, span: 24 * HOUR_MICROS }
}

/// Steps of `seconds` each, from `begin` on, at these rates.
pub fn steps(begin: i64, seconds: f64, rates: impl IntoIterator<Item = f64>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for per_second in rates {
        let (first, begin) = steps.last().map_or((0, begin), |last| (last.first + last.timers, last.end));
        let timers = (per_second * seconds).round().max(1.0) as u64;
        steps.push(Step { first, timers, begin, end: begin + micros(seconds), per_second });
    }
    steps
}

/// Rates from `first` on, each `factor` times the one before, up to `last`.
pub fn ladder(first: f64, factor: f64, last: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(first), move |rate| Some(rate * factor)).take_while(move |rate| *rate <= last)
}

fn micros(seconds: f64) -> i64 {
    (seconds * 1e6).round() as i64
}

/// SplitMix64, which maps neighbouring numbers far apart.
pub const fn mix(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_one_instant_and_a_row_has_equal_gaps() {
        let due = |gap| [0, 1, 9].map(|n| Plan::Every { first: 50, gap }.due(n));
        assert_eq!(due(0), [50, 50, 50]);
        assert_eq!(due(2_000), [50, 2_050, 18_050]);
    }

    #[test]
    fn scattered_timers_fill_their_span_evenly_and_the_same_way_each_time() {
        let plan = Plan::Scattered { from: 1_000, span: 10_000 };
        let mut tenths = [0; 10];
        for n in 0..10_000 {
            let due = plan.due(n);
            assert!((1_000..11_000).contains(&due), "{due}");
            assert_eq!(due, plan.due(n));
            tenths[usize::try_from(due - 1_000).unwrap() / 1_000] += 1;
        }
        assert!(tenths.iter().all(|count| (900..1_100).contains(count)), "{tenths:?}");
    }

    #[test]
    fn steps_follow_on_each_other_at_their_own_rates() {
        let steps = steps(1_000_000, 2.0, ladder(100.0, 2.0, 250.0));
        assert_eq!(
            steps,
            [
                Step { first: 0, timers: 200, begin: 1_000_000, end: 3_000_000, per_second: 100.0 },
                Step { first: 200, timers: 400, begin: 3_000_000, end: 5_000_000, per_second: 200.0 },
            ]
        );
        let plan = Plan::Steps(steps.into());
        assert_eq!(
            [0, 1, 199, 200, 201, 599].map(|n| plan.due(n)),
            [1_000_000, 1_010_000, 2_990_000, 3_000_000, 3_005_000, 4_995_000]
        );
        assert_eq!(Plan::Steps(Arc::new([])).due(5), 0);
    }
}
