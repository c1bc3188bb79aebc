use std::time::Duration;

/// When a small batch waits for company: one commit of many entries costs little more than one commit of a single entry, so that,
/// while another commit is under way, a few entries wait for more of them. Never for long.
#[derive(Debug, Clone, Copy)]
pub struct Linger {
    /// So many entries are worth a commit beside another one.
    pub worthwhile: usize,
    /// Fewer wait for the other one to end, but no longer than this.
    pub longest: Duration,
}

impl Linger {
    /// For claims and settlements alike.
    pub const BESIDE_A_COMMIT: Self = Self { worthwhile: 64, longest: Duration::from_millis(5) };

    /// Whether a batch is worth its commit now: no other commit is under way, or `has` finds as many entries as it is asked for.
    pub fn is_over(self, under_way: usize, has: impl FnOnce(usize) -> bool) -> bool {
        under_way == 0 || has(self.worthwhile)
    }

    /// Waits until `over`, or as long as a batch may wait at most.
    pub async fn until(self, over: impl Future<Output = ()>) {
        // Whether it is over or not: nothing waits longer.
        let _ = tokio::time::timeout(self.longest, over).await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::Instant;

    use super::*;

    #[test]
    fn a_batch_is_worth_its_commit_when_it_is_alone_or_large() {
        let linger = Linger::BESIDE_A_COMMIT;
        for (under_way, entries, is_over) in
            [(0, 1, true), (0, 64, true), (1, 1, false), (1, 63, false), (1, 64, true), (2, 64, true)]
        {
            assert_eq!(linger.is_over(under_way, |count| entries >= count), is_over, "{under_way} {entries}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_lingers_for_long() {
        let begun = Instant::now();
        Linger::BESIDE_A_COMMIT.until(async {}).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        Linger::BESIDE_A_COMMIT.until(pending()).await;
        assert!((5..=6).contains(&begun.elapsed().as_millis()));
    }
}
