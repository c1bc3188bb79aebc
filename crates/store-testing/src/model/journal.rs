use domain::{Timer, TimerId, Timestamp};
use store::{EventPage, Happened, Read, Recorded, is_prompt, is_resumable};

use super::tables::Tables;

/// What happened and is in no row of its own, with the moment of the call that is under way.
#[derive(Default)]
pub(super) struct Journal {
    pub(super) now: Timestamp,
    entries: Vec<Recorded>,
}

impl Journal {
    fn add(&mut self, id: TimerId, what: Happened) {
        self.entries.push(Recorded { position: self.now, id, what });
    }

    pub(super) fn created(&mut self, timer: &Timer) {
        if !is_prompt(timer.created_at, self.now) {
            self.add(timer.id(), Happened::Created { at: timer.created_at });
        }
    }

    pub(super) fn changed(&mut self, timer: &Timer) {
        self.add(timer.id(), Happened::Changed { revision: timer.revision });
    }

    pub(super) fn attempted(&mut self, id: TimerId, seq: i64) {
        self.add(id, Happened::Attempted { seq });
    }

    pub(super) fn finished(&mut self, timer: &Timer) {
        if !is_prompt(timer.updated_at, self.now) {
            self.add(timer.id(), Happened::Finished { at: timer.updated_at, status: timer.status });
        }
    }

    /// The timer, as it ended, is about to get a new life.
    pub(super) fn ended(&mut self, timer: &Timer) {
        self.add(timer.id(), Happened::Ended { at: timer.updated_at, status: timer.status });
    }

    /// The timer is about to be created anew.
    pub(super) fn began(&mut self, timer: &Timer) {
        if is_resumable(timer.created_at, self.now) {
            self.add(timer.id(), Happened::Began { at: timer.created_at });
        }
    }

    pub(super) fn forget(&mut self, before: Timestamp, limit: usize) -> usize {
        let old = self.entries.iter().filter(|entry| entry.position < before).count().min(limit);
        self.entries.drain(..old);
        old
    }
}

impl Tables {
    pub(super) fn events(&self, after: Timestamp, until: Timestamp, limit: usize) -> EventPage {
        let timers = || self.timers.values().map(|row| &row.timer);
        let created = timers().map(|timer| {
            let at = timer.created_at;
            Recorded { position: at, id: timer.id(), what: Happened::Created { at } }
        });
        let finished = timers().filter(|timer| timer.status.is_finished()).map(|timer| {
            let (at, status) = (timer.updated_at, timer.status);
            Recorded { position: at, id: timer.id(), what: Happened::Finished { at, status } }
        });
        let sources: [Vec<Recorded>; 3] = [created.collect(), finished.collect(), self.journal.entries.clone()];
        let page = |limit: usize| {
            let first = |mut source: Vec<Recorded>| {
                source.retain(|event| after < event.position && event.position <= until);
                source.sort_by_key(|event| event.position);
                source.truncate(limit);
                source.into_iter().map(Read::Event).collect()
            };
            EventPage::merge(sources.clone().map(first), until, limit)
        };
        // With more than there are, the page always moves on.
        page(limit.max(1)).or_else(|| page(usize::MAX)).unwrap_or(EventPage { events: Vec::new(), until })
    }
}
