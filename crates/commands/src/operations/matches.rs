//! The timers that match, some dozens or hundreds read at a time: a search costs much more than a look at one timer further, and a commit
//! is to be short.

use store::{Cursor, Page, Sort, Summary};
use tokio::time::Instant;

use super::pace::KEPT_TIME;

/// Timers that match and are not changed yet, in the order of their creation.
#[derive(Debug)]
pub struct Matches {
    timers: Vec<Summary>,
    /// The places of those between them that cannot be read.
    unreadable: Vec<Cursor>,
    /// Where the search goes on behind them; `None` at its end.
    next: Option<Cursor>,
    read: Instant,
}

/// The first of them, which are changed in one commit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Portion<'m> {
    pub timers: &'m [Summary],
    /// How many before and between them cannot be read, and after them where all are.
    pub unreadable: usize,
    /// Where the operation stands once they are changed; `None` if there are none and nothing follows.
    pub cursor: Option<Cursor>,
    pub is_last: bool,
}

impl Matches {
    pub fn read(page: Page, read: Instant) -> Self {
        Self { timers: page.timers, unreadable: page.unreadable, next: page.next, read }
    }

    /// How many there are, those that cannot be read included.
    pub const fn count(&self) -> u64 {
        (self.timers.len() + self.unreadable.len()) as u64
    }

    pub fn is_fresh(&self) -> bool {
        self.read.elapsed() < KEPT_TIME
    }

    pub fn portion(&self, timers_max: u32) -> Portion<'_> {
        let count = self.timers.len().min(usize::try_from(timers_max).unwrap_or(usize::MAX));
        let timers = &self.timers[..count];
        let is_all = count == self.timers.len();
        let last = timers.last().map(|last| last.cursor(Sort::CreatedAt));
        let passed = |place: &Cursor| is_all || last.is_some_and(|last| *place < last);
        let unreadable = self.unreadable.partition_point(passed);
        let last = last.max(self.unreadable[..unreadable].last().copied());
        let cursor = self.next.filter(|_| is_all).or(last);
        Portion { timers, unreadable, cursor, is_last: is_all && self.next.is_none() }
    }

    /// What is left without such a portion; `None` where that is nothing.
    pub fn without(mut self, timers: usize, unreadable: usize) -> Option<Self> {
        self.timers.drain(..timers);
        self.unreadable.drain(..unreadable);
        (self.count() > 0).then_some(self)
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
                let (timers, unreadable) = (portion.timers.len(), portion.unreadable);
                rest = matches.without(timers, unreadable);
            }
            assert_eq!(met, all);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_read_is_passed_once_wherever_it_stands() {
        let rig = Rig::new();
        create_many(&rig, 9).await;
        let all = rig.store.list(&ListQuery { limit: 10, ..in_order(store::Filter::default()) }).await.unwrap().timers;
        for unreadable in [[0, 1, 2], [2, 3, 8], [6, 7, 8]] {
            let lost = unreadable.map(|place| all[place].cursor(Sort::CreatedAt)).to_vec();
            let is_readable = |timer: &&Summary| !lost.contains(&timer.cursor(Sort::CreatedAt));
            let timers = all.iter().filter(is_readable).cloned().collect();
            let page = Page { timers, unreadable: lost.clone(), ..Page::default() };
            let (mut rest, mut cursors, mut passed) = (Some(Matches::read(page, Instant::now())), Vec::new(), 0);
            while let Some(matches) = rest {
                let portion = matches.portion(2);
                cursors.extend(portion.cursor);
                passed += portion.unreadable;
                let before_cursor = lost.iter().filter(|place| Some(**place) <= portion.cursor).count();
                assert_eq!(passed, before_cursor, "{unreadable:?}: what the cursor is behind is counted, and nothing else");
                let (timers, unreadable) = (portion.timers.len(), portion.unreadable);
                rest = matches.without(timers, unreadable);
            }
            assert_eq!((passed, cursors.len()), (3, 3), "{unreadable:?}");
            assert!(cursors.is_sorted(), "{cursors:?}");
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
