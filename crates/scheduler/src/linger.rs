use std::time::Duration;

/// How long a group commit lingers. A commit of many entries costs little more than a commit of one, so that a small batch waits
/// for more entries while another commit is under way.
#[derive(Debug, Clone, Copy)]
pub struct Linger {
    /// The size from which a batch is committed while another commit is under way.
    pub worthwhile: usize,
    /// A smaller batch waits for the other commit to end, but no longer than this.
    pub longest: Duration,
}

impl Linger {
    /// How long claims and settlements linger beside a commit that is under way.
    pub const BESIDE_A_COMMIT: Self = Self { worthwhile: 64, longest: Duration::from_millis(5) };

    /// Whether a batch is committed now: no other commit is under way, or `has` finds as many entries as it is asked for.
    pub fn is_over(self, under_way: usize, has: impl FnOnce(usize) -> bool) -> bool {
        under_way == 0 || has(self.worthwhile)
    }

    /// Waits until `over` completes, but no longer than a batch may linger.
    pub async fn until(self, over: impl Future<Output = ()>) {
        // A batch that is still small by then is committed as it is.
        let _ = tokio::time::timeout(self.longest, over).await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::Instant;

    use super::*;

    #[test]
    fn a_batch_is_committed_when_it_is_alone_or_large() {
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
