//! How many timers an operation changes at a time, and how long claims and other writers have the store to themselves in between.

use std::time::Duration;

/// How many timers are changed in the first commit.
pub const FIRST_PAGE_TIMERS: u32 = 8;
const PAGE_TIMERS_MAX: u32 = 256;

/// How many timers are changed in one commit: as many as take about the commit time, and not fewer than the minimum. Beside many calls it is
/// the minimum.
#[derive(Debug, Clone, Copy)]
pub struct PageLimits {
    timers_min: u32,
    commit_time: Duration,
}

/// What is due waits for each commit. One of fewer timers is hardly shorter, and many short ones are in the way of claims for longer than a
/// few.
const WITH_ONE_WRITER: PageLimits = PageLimits { timers_min: 8, commit_time: Duration::from_millis(1) };
/// A page is a transaction of some round trips, however few its timers are.
const WITH_MANY_WRITERS: PageLimits = PageLimits { timers_min: 32, commit_time: Duration::from_millis(10) };

const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// The pause beside many calls, in times of what the step took.
const PAUSES_BESIDE_CALLS: u32 = 3;
/// How many timers are changed per second beside many calls, about. Each is changed in some pages of files that lie apart and are written
/// twice; what that does to the lateness of calls is measured in `bench/README.md`.
const TIMERS_PER_SECOND_BESIDE_CALLS: u32 = 100;

/// How many timers are searched at a time: a search costs much more than a look at one timer further.
const READ_AHEAD: u32 = 256;
/// How long a search counts. A timer that a client has changed since, or that has another status, is skipped; one that was called since and
/// waits for a retry is not, so that this must be short.
pub const KEPT_TIME: Duration = Duration::from_millis(200);

/// What a step of an operation took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    pub searching: Duration,
    pub writing: Duration,
    /// How many timers were written.
    pub timers: u32,
}

pub const fn page_limits(has_one_writer: bool) -> PageLimits {
    if has_one_writer { WITH_ONE_WRITER } else { WITH_MANY_WRITERS }
}

/// How many timers the next page has after one of `timers` that was committed within `took`.
pub fn next_page(timers: u32, took: Duration, limits: PageLimits) -> u32 {
    let PageLimits { timers_min, commit_time } = limits;
    let next = if took > commit_time {
        timers / 2
    } else if took < commit_time / 2 {
        timers * 2
    } else {
        timers
    };
    next.clamp(timers_min, PAGE_TIMERS_MAX)
}

impl PageLimits {
    /// How many timers are changed in a commit now, where it would be `page` without calls.
    pub fn page(self, page: u32, is_beside_calls: bool) -> u32 {
        if is_beside_calls { page.min(self.timers_min) } else { page }
    }

    /// How many timers the next search is to find: beside calls no more than can be changed while it counts, in whole pages.
    pub fn read_ahead(self, is_beside_calls: bool) -> u32 {
        let changed = f64::from(TIMERS_PER_SECOND_BESIDE_CALLS) * KEPT_TIME.as_secs_f64();
        if is_beside_calls { (changed as u32).next_multiple_of(self.timers_min) } else { READ_AHEAD }
    }
}

/// For how long nothing follows such a step: the store is free half of the time, or most of it where many calls are made.
pub fn pause(spent: Spent, is_beside_calls: bool) -> Duration {
    let Spent { searching, writing, timers } = spent;
    let pause = if is_beside_calls {
        let allotted = Duration::from_secs(1) * timers / TIMERS_PER_SECOND_BESIDE_CALLS;
        ((searching + writing) * PAUSES_BESIDE_CALLS).max(allotted.saturating_sub(searching + writing))
    } else {
        searching + writing
    };
    pause.clamp(PAUSE_MIN, PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_as_large_as_a_short_commit_allows() {
        let (micros, one, many) = (Duration::from_micros, page_limits(true), page_limits(false));
        for (timers, took, limits, expected) in [
            (32, micros(2_000), one, 16),
            (32, micros(700), one, 32),
            (32, micros(400), one, 64),
            (64, micros(2_000), many, 128),
            (64, micros(11_000), many, 32),
            (256, micros(100), one, PAGE_TIMERS_MAX),
            (12, micros(90_000), one, 8),
            (1, micros(90_000), one, 8),
            (8, micros(90_000), many, 32),
        ] {
            assert_eq!(next_page(timers, took, limits), expected, "{timers} within {took:?} of {limits:?}");
        }
    }

    #[test]
    fn no_more_is_searched_than_is_changed_before_the_search_is_stale() {
        for (has_one_writer, read_ahead) in [(true, 24), (false, 32)] {
            let limits = page_limits(has_one_writer);
            assert_eq!((limits.read_ahead(true), limits.read_ahead(false)), (read_ahead, READ_AHEAD));
        }
    }

    #[test]
    fn pages_are_small_beside_calls() {
        let limits = page_limits(true);
        let pages = [(256, true, 8), (256, false, 256), (4, true, 4)];
        for (page, is_beside_calls, expected) in pages {
            assert_eq!(limits.page(page, is_beside_calls), expected, "{page}, beside calls: {is_beside_calls}");
        }
    }

    #[test]
    fn an_operation_leaves_the_store_to_calls() {
        let ms = Duration::from_millis;
        let spent = |searching, writing, timers| Spent { searching: ms(searching), writing: ms(writing), timers };
        let table = [
            (spent(0, 4, 8), false, ms(4)),
            (spent(7, 4, 8), false, ms(11)),
            (spent(0, 4, 1), true, ms(12)),
            (spent(7, 4, 1), true, ms(33)),
            // 100 timers a second, whatever they take.
            (spent(0, 1, 32), true, ms(319)),
            (spent(40, 1, 32), true, ms(279)),
            (spent(40, 1, 0), true, ms(123)),
            (Spent::default(), true, PAUSE_MIN),
            (spent(0, 900, 8), false, PAUSE_MAX),
            (spent(0, 900, 8), true, PAUSE_MAX),
        ];
        for (spent, is_beside_calls, expected) in table {
            assert_eq!(pause(spent, is_beside_calls), expected, "{spent:?}, beside calls: {is_beside_calls}");
        }
    }
}
