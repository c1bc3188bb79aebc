use std::time::Duration;

use tokio::time::Instant;

/// What is removed at once while timers fire: little, so that a purge never holds them up, but twice what has finished meanwhile, so
/// that it keeps up and gains ground.
const BUSY_PAGE_MIN: usize = 100;
const BUSY_PAGE_MAX: usize = 2_000;
const OF_WHAT_FINISHED: usize = 2;
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// The time without a finished timer after which the store counts as idle. If it were shorter, the gaps of a steady load would look
/// like no load.
const IDLE_AFTER: Duration = Duration::from_secs(1);
/// What is removed at once while nothing fires: at first the fewest, and up to the most as many as take about `PAGE_TIME`. Fewer would
/// take hardly less time: on a busy machine a page mostly waits.
const IDLE_PAGE_MIN: usize = 250;
const IDLE_PAGE_MAX: usize = 4_000;
/// The time that a page should take at most: where a store has one writer, a create or a timer that becomes due waits for it.
const PAGE_TIME: Duration = Duration::from_millis(5);
/// The pause after a page that took no longer than that, as a part of what it took: the store has hardly anything else to do.
const IDLE_PAUSE_PART: u32 = 4;
/// One that took very long says nothing of the next.
const IDLE_PAUSE_MAX: Duration = Duration::from_secs(1);

/// How fast old timers are removed: as fast as the store can while it is idle, and little at a time while timers fire.
#[derive(Debug)]
pub struct PurgePace {
    idle_page: usize,
    /// When timers were last seen to finish.
    finished_at: Option<Instant>,
}

/// One page of a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PurgePage {
    pub limit: usize,
    is_idle: bool,
}

impl Default for PurgePace {
    fn default() -> Self {
        Self { idle_page: IDLE_PAGE_MIN, finished_at: None }
    }
}

impl PurgePace {
    /// The next page, where `finished` timers have finished since the last one.
    pub fn page(&mut self, finished: usize, now: Instant) -> PurgePage {
        if finished > 0 {
            self.finished_at = Some(now);
        }
        let is_idle = self.finished_at.is_none_or(|finished_at| now.duration_since(finished_at) >= IDLE_AFTER);
        let busy_page = finished.saturating_mul(OF_WHAT_FINISHED).clamp(BUSY_PAGE_MIN, BUSY_PAGE_MAX);
        PurgePage { limit: if is_idle { self.idle_page } else { busy_page }, is_idle }
    }

    /// How long to wait after a full page, from the time that it took. Where the store has other work, the page waited for that as
    /// well: then the next one is smaller, and the store is free for half of the time.
    pub fn pause(&mut self, page: PurgePage, took: Duration) -> Duration {
        if !page.is_idle {
            return BUSY_PAUSE;
        }
        self.idle_page = next_page(page.limit, took);
        if took > PAGE_TIME { took.min(IDLE_PAUSE_MAX) } else { took / IDLE_PAUSE_PART }
    }

    /// A page that failed may have been too much at once.
    pub const fn failed(&mut self) {
        self.idle_page = IDLE_PAGE_MIN;
    }
}

/// How many timers a page has after one of `timers`, from the time that it took.
fn next_page(timers: usize, took: Duration) -> usize {
    let next = if took > PAGE_TIME {
        timers / 2
    } else if took < PAGE_TIME / 2 {
        timers * 2
    } else {
        timers
    };
    next.clamp(IDLE_PAGE_MIN, IDLE_PAGE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn an_idle_page_is_as_large_as_a_short_commit_allows() {
        for (timers, took, expected) in [
            (250, micros(2_400), 500),
            (600, micros(2_500), 600),
            (600, micros(5_000), 600),
            (600, micros(5_001), 300),
            (250, micros(900_000), 250),
            (3_000, micros(100), 4_000),
            (4_000, micros(100), 4_000),
        ] {
            assert_eq!(next_page(timers, took), expected, "{timers} within {took:?}");
        }
    }

    #[test]
    fn the_pause_is_short_while_pages_are_quick_and_as_long_as_a_page_while_they_are_slow() {
        for (took, expected) in [
            (micros(400), micros(100)),
            (micros(5_000), micros(1_250)),
            (micros(5_001), micros(5_001)),
            (micros(80_000), micros(80_000)),
            (micros(9_000_000), IDLE_PAUSE_MAX),
        ] {
            let mut pace = PurgePace::default();
            let page = pace.page(0, Instant::now());
            assert_eq!(pace.pause(page, took), expected, "{took:?}");
        }
    }

    #[test]
    fn a_page_that_failed_is_followed_by_a_small_one() {
        let mut pace = PurgePace::default();
        let page = pace.page(0, Instant::now());
        pace.pause(page, micros(100));
        assert_eq!(pace.page(0, Instant::now()).limit, 500);
        pace.failed();
        assert_eq!(pace.page(0, Instant::now()).limit, 250);
    }

    #[test]
    fn a_page_is_small_until_nothing_has_finished_for_a_second() {
        let begun = Instant::now();
        let mut pace = PurgePace::default();
        for (after, finished, limit, is_idle) in [
            (micros(0), 0, 250, true),
            (micros(1_000), 1, 100, false),
            (micros(51_000), 300, 600, false),
            (micros(101_000), 30_000, 2_000, false),
            (micros(1_100_999), 0, 100, false),
            (micros(1_101_000), 0, 250, true),
            (micros(1_102_000), 5, 100, false),
        ] {
            let page = pace.page(finished, begun + after);
            assert_eq!(page, PurgePage { limit, is_idle }, "{finished} after {after:?}");
            assert_eq!(pace.pause(page, PAGE_TIME), if is_idle { PAGE_TIME / 4 } else { BUSY_PAUSE }, "{after:?}");
        }
    }
}
