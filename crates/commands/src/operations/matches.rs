//! The timers that match, some hundred read at a time: a search costs much more than a look at one timer further, and a commit is to be
//! short.

use std::time::Duration;

use store::{Cursor, Page, Sort, Summary};
use tokio::time::Instant;

/// How many timers are read at a time.
pub const READ_AHEAD: u32 = 256;
/// How long a search counts. A timer that a client has changed since is skipped by its revision; one that has been called since is not, so
/// that this must be short.
const KEPT_TIME: Duration = Duration::from_millis(200);

/// Timers that match and are not changed yet, in the order of their creation.
#[derive(Debug)]
pub struct Matches {
    timers: Vec<Summary>,
    /// Where the search goes on behind them; `None` at its end.
    next: Option<Cursor>,
    read: Instant,
}

/// The first of them, which are changed in one commit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Portion<'m> {
    pub timers: &'m [Summary],
    /// Where the operation stands once they are changed; `None` if there are none and nothing follows.
    pub cursor: Option<Cursor>,
    pub is_last: bool,
}

impl Matches {
    pub fn read(page: Page, read: Instant) -> Self {
        Self { timers: page.timers, next: page.next, read }
    }

    pub fn count(&self) -> u64 {
        self.timers.len() as u64
    }

    pub fn is_fresh(&self) -> bool {
        self.read.elapsed() < KEPT_TIME
    }

    pub fn portion(&self, timers_max: u32) -> Portion<'_> {
        let count = self.timers.len().min(usize::try_from(timers_max).unwrap_or(usize::MAX));
        let timers = &self.timers[..count];
        let is_all = count == self.timers.len();
        let last = timers.last().map(|last| last.cursor(Sort::CreatedAt));
        let cursor = self.next.filter(|_| is_all).or(last);
        Portion { timers, cursor, is_last: is_all && self.next.is_none() }
    }

    /// What is left without the first so many; `None` where that is nothing.
    pub fn without(mut self, count: usize) -> Option<Self> {
        self.timers.drain(..count);
        (!self.timers.is_empty()).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use store::{ListQuery, TimerStore};

    use super::*;
    use crate::{
        bulk::{in_order, tests::create_many},
        rig::Rig,
    };

    #[tokio::test(start_paused = true)]
    async fn portions_follow_each_other_to_where_the_search_goes_on() {
        let rig = Rig::new();
        create_many(&rig, 7).await;
        for (limit, is_end) in [(5, false), (7, true)] {
            let query = ListQuery { limit, ..in_order(store::Filter::default()) };
            let page = rig.store.list(&query).await.unwrap();
            let all: Vec<_> = page.timers.iter().map(|timer| timer.cursor(Sort::CreatedAt)).collect();
            let next = page.next;
            assert_eq!(next.is_none(), is_end);
            let (mut rest, mut met) = (Some(Matches::read(page, Instant::now())), Vec::new());
            while let Some(matches) = rest {
                let portion = matches.portion(3);
                met.extend(portion.timers.iter().map(|timer| timer.cursor(Sort::CreatedAt)));
                let is_all = met.len() == all.len();
                let expected = if is_all && !is_end { next } else { met.last().copied() };
                assert_eq!((portion.cursor, portion.is_last), (expected, is_all && is_end), "{limit}");
                let count = portion.timers.len();
                rest = matches.without(count);
            }
            assert_eq!(met, all);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_read_long_ago_is_read_again() {
        let matches = Matches::read(Page::default(), Instant::now());
        assert!(matches.is_fresh());
        tokio::time::advance(KEPT_TIME).await;
        assert!(!matches.is_fresh());
        let nothing = matches.portion(3);
        assert_eq!((nothing.timers.len(), nothing.cursor, nothing.is_last), (0, None, true));
    }
}
