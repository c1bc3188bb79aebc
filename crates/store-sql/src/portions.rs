use std::ops::Range;

/// How many whole timers are read by one statement. With the largest payloads that is 40 MiB, which a slow wire still
/// carries before the deadline; small ones cost a round trip more for each portion.
const PORTION: usize = 128;

/// The portions in which `count` timers are read.
pub fn portions(count: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(PORTION).map(move |start| start..count.min(start + PORTION))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_timer_is_in_one_portion_and_none_is_larger_than_it_may_be() {
        let ends = |count| portions(count).map(|portion| (portion.start, portion.end)).collect::<Vec<_>>();
        assert_eq!(ends(0), []);
        assert_eq!(ends(128), [(0, 128)]);
        assert_eq!(ends(300), [(0, 128), (128, 256), (256, 300)]);
    }
}
