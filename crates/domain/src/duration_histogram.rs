/// How many lengths of time fell into each of a fixed row of buckets: four for each doubling, from a microsecond to about 19 hours.
/// Because the buckets are the same everywhere, histograms of several nodes and minutes are added up, and a percentile of the sum is
/// off by less than a quarter.
///
/// As JSON it is a list of pairs, the bucket and its count, for the buckets that are not empty.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(from = "Vec<(u8, u32)>", into = "Vec<(u8, u32)>")]
pub struct DurationHistogram([u32; BUCKETS]);

const BUCKETS: usize = 144;
/// Two bits of a length, behind the highest one, tell the four buckets of a doubling apart.
const BITS: u32 = 2;

impl Default for DurationHistogram {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

impl DurationHistogram {
    pub const fn record(&mut self, micros: u64) {
        let bucket = &mut self.0[bucket_of(micros)];
        *bucket = bucket.saturating_add(1);
    }

    pub fn add(&mut self, other: &Self) {
        for (bucket, more) in self.0.iter_mut().zip(other.0) {
            *bucket = bucket.saturating_add(more);
        }
    }

    /// The bounds of each doubling, in microseconds, and the number of lengths within them: from the first doubling that has any to
    /// the last, widened to `at_least` doublings except at the upper end. Empty where nothing was counted.
    pub fn doublings(&self, at_least: usize) -> Vec<(u64, u64, u64)> {
        let counted = |n: usize| {
            let buckets = n << BITS..(n + 1) << BITS;
            let count = self.0[buckets.clone()].iter().copied().map(u64::from).sum();
            (starts_at(buckets.start), starts_at(buckets.end), count)
        };
        let all: Vec<_> = (0..BUCKETS >> BITS).map(counted).collect();
        let has_any = |(_, _, count): &(u64, u64, u64)| *count > 0;
        let (first, last) = (all.iter().position(has_any), all.iter().rposition(has_any));
        let Some((first, last)) = first.zip(last) else { return Vec::new() };
        let missing = at_least.saturating_sub(last + 1 - first);
        let first = first.saturating_sub(missing.div_ceil(2));
        all[first..=(first + at_least - 1).max(last).min(all.len() - 1)].to_vec()
    }

    pub fn count(&self) -> u64 {
        self.0.iter().copied().map(u64::from).sum()
    }

    /// The length in microseconds below which the part `quantile` of all lies; `None` where there is none.
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        let count = self.count();
        // The rank of the wanted length among all, from 1.
        let rank = ((count as f64 * quantile).ceil() as u64).clamp(1, count.max(1));
        let mut before = 0;
        for (bucket, here) in self.0.iter().enumerate() {
            let here = u64::from(*here);
            if here > 0 && before + here >= rank {
                let (from, to) = (starts_at(bucket), starts_at(bucket + 1));
                return Some(from + (to - from) * (rank - before) / here);
            }
            before += here;
        }
        None
    }
}

const fn bucket_of(micros: u64) -> usize {
    if micros < 1 << BITS {
        return micros as usize;
    }
    let doublings = micros.ilog2();
    let within = (micros >> (doublings - BITS)) & ((1 << BITS) - 1);
    let bucket = ((doublings as usize - 1) << BITS) + within as usize;
    if bucket < BUCKETS { bucket } else { BUCKETS - 1 }
}

/// The shortest length of a bucket, in microseconds.
const fn starts_at(bucket: usize) -> u64 {
    let (doublings, within) = ((bucket >> BITS) as u32, bucket as u64 & ((1 << BITS) - 1));
    if doublings == 0 { within } else { (within + (1 << BITS)) << (doublings - 1) }
}

impl From<Vec<(u8, u32)>> for DurationHistogram {
    fn from(pairs: Vec<(u8, u32)>) -> Self {
        let mut histogram = Self::default();
        for (bucket, count) in pairs {
            if let Some(kept) = histogram.0.get_mut(usize::from(bucket)) {
                *kept = kept.saturating_add(count);
            }
        }
        histogram
    }
}

impl From<DurationHistogram> for Vec<(u8, u32)> {
    fn from(histogram: DurationHistogram) -> Self {
        (0..).zip(histogram.0).filter(|(_, count)| *count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_lies_in_its_bucket() {
        for micros in (0..5_000).chain([123_456, 1_000_000, 60_000_000, 3_600_000_000, (1 << 36) - 1]) {
            let bucket = bucket_of(micros);
            assert!(starts_at(bucket) <= micros && micros < starts_at(bucket + 1), "{micros} in {bucket}");
        }
        assert_eq!((bucket_of(u64::MAX), bucket_of(1 << 37)), (BUCKETS - 1, BUCKETS - 1));
    }

    #[test]
    fn a_quantile_is_off_by_less_than_a_quarter() {
        let mut histogram = DurationHistogram::default();
        (1..=1_000).for_each(|millis| histogram.record(millis * 1_000));
        for (quantile, millis) in [(0.001, 1), (0.5, 500), (0.9, 900), (0.99, 990), (1.0, 1_000)] {
            let met = histogram.quantile(quantile).unwrap() as f64 / 1_000.0;
            assert!((met / f64::from(millis) - 1.0).abs() < 0.25, "{quantile}: {met} ms");
        }
        assert_eq!(DurationHistogram::default().quantile(0.5), None);
    }

    #[test]
    fn doublings_hold_every_count_and_lie_side_by_side() {
        let mut histogram = DurationHistogram::default();
        assert!(histogram.doublings(8).is_empty());
        [1, 900, 900, 70_000, 1 << 40].into_iter().for_each(|micros| histogram.record(micros));
        for at_least in [1, 8, 100] {
            let doublings = histogram.doublings(at_least);
            assert_eq!(doublings.iter().map(|(_, _, count)| count).sum::<u64>(), 5);
            assert!(doublings.windows(2).all(|pair| pair[0].1 == pair[1].0));
        }
        let mut one = DurationHistogram::default();
        one.record(20_000);
        assert_eq!(one.doublings(10).len(), 10);
    }

    #[test]
    fn sums_and_texts_keep_every_count() {
        let (mut one, mut two) = (DurationHistogram::default(), DurationHistogram::default());
        one.record(3);
        two.record(3);
        two.record(1_500);
        one.add(&two);
        let text = serde_json::to_string(&one).unwrap();
        assert_eq!((one.count(), text.as_str()), (3, "[[3,2],[37,1]]"));
        assert_eq!(serde_json::from_str::<DurationHistogram>(&text).unwrap(), one);
        // A bucket of a later version is passed over.
        assert_eq!(serde_json::from_str::<DurationHistogram>("[[200,1]]").unwrap(), DurationHistogram::default());
    }
}
