use std::collections::BTreeMap;

use domain::{
    AccessKey, Event, Group, Missed, Namespace, NewTimer, Resolution, Shard, Timer, TimerId, Times, Timestamp, resolve,
};
use store::{
    Changed, Claim, Claimed, Created, Cursor, DueEntry, Filter, ListQuery, Order, Page, Settlement, ShardCursor, ShardLease,
    Sort, Summary,
};

use super::{
    bulk::Operations,
    journal::Journal,
    ownership::Ownership,
    row::{Held, Row},
    stats::Written,
};

/// How many timers a search looks at that may take no time.
const LOOKED_AT_WITHOUT_BUDGET: u64 = 500;

/// Everything that is stored, and what each call does to it.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) timers: BTreeMap<TimerId, Row>,
    pub(super) ownership: Ownership,
    pub(super) keys: Vec<AccessKey>,
    pub(super) journal: Journal,
    pub(super) written: Written,
    pub(super) operations: Operations,
}

impl Tables {
    pub(super) fn create(&mut self, new: NewTimer) -> Created {
        let NewTimer { definition, execute_at, on_conflict, created_at } = new;
        let id = definition.id;
        let Some(row) = self.timers.get_mut(&id) else {
            let row = Row::new(definition, execute_at, created_at);
            let timer = row.timer.clone();
            self.journal.created(&timer);
            self.timers.insert(id, row);
            return Created::Created(timer);
        };
        let existing = &row.timer.definition;
        match resolve(on_conflict, row.timer.status, existing.content(), definition.content(), Times::of(&row.timer, execute_at))
        {
            Resolution::Existing => return Created::Existing(row.timer.clone()),
            Resolution::Conflict => return Created::Conflict(row.timer.clone()),
            Resolution::PastExpiry => return Created::PastExpiry(row.timer.clone()),
            Resolution::Overwrite => row.change(definition, execute_at, created_at),
            Resolution::Move(execute_at) => {
                let moved = domain::Definition { asked: definition.asked, ..existing.clone() };
                row.change(moved, execute_at, created_at);
            }
            Resolution::Revive => {
                self.journal.ended(&row.timer);
                self.journal.began(&row.timer);
                row.revive(definition, execute_at, created_at);
                self.journal.created(&row.timer);
            }
        }
        self.journal.changed(&row.timer);
        Created::Replaced(row.timer.clone())
    }

    pub(super) fn update(&mut self, changed: &Timer, now: Timestamp) -> Changed {
        let Some(row) = self.timers.get_mut(&changed.id()) else {
            return Changed::NotFound;
        };
        if row.timer.status.after(Event::Update).is_none() {
            return Changed::WrongStatus(row.timer.clone());
        }
        if row.timer.revision != changed.revision {
            return Changed::StaleRevision(row.timer.clone());
        }
        row.update(changed.definition.clone(), changed.execute_at, now);
        self.journal.changed(&row.timer);
        Changed::Done(row.timer.clone())
    }

    pub(super) fn cancel(&mut self, id: TimerId, expected: Option<u32>, now: Timestamp) -> Changed {
        let Some(row) = self.timers.get_mut(&id) else {
            return Changed::NotFound;
        };
        let Some(canceled) = row.timer.status.after(Event::Cancel) else {
            return Changed::WrongStatus(row.timer.clone());
        };
        if expected.is_some_and(|expected| row.timer.revision != expected) {
            return Changed::StaleRevision(row.timer.clone());
        }
        row.timer.status = canceled;
        row.timer.pause = None;
        row.timer.updated_at = now;
        self.journal.finished(&row.timer);
        Changed::Done(row.timer.clone())
    }

    pub(super) fn reopen(&mut self, id: TimerId, expected: Option<u32>, now: Timestamp) -> Changed {
        let Some(row) = self.timers.get_mut(&id) else {
            return Changed::NotFound;
        };
        let Some(pending) = row.timer.status.after(Event::Reopen) else {
            return Changed::WrongStatus(row.timer.clone());
        };
        if expected.is_some_and(|expected| row.timer.revision != expected) {
            return Changed::StaleRevision(row.timer.clone());
        }
        self.journal.ended(&row.timer);
        row.timer.status = pending;
        row.reopen(now, now);
        self.journal.changed(&row.timer);
        Changed::Done(row.timer.clone())
    }

    pub(super) fn revive(&mut self, changed: &Timer, now: Timestamp) -> Changed {
        let Some(row) = self.timers.get_mut(&changed.id()) else {
            return Changed::NotFound;
        };
        if row.timer.status.after(Event::Revive).is_none() {
            return Changed::WrongStatus(row.timer.clone());
        }
        if row.timer.revision != changed.revision {
            return Changed::StaleRevision(row.timer.clone());
        }
        self.journal.ended(&row.timer);
        self.journal.began(&row.timer);
        row.revive(changed.definition.clone(), changed.execute_at, now);
        self.journal.created(&row.timer);
        self.journal.changed(&row.timer);
        Changed::Done(row.timer.clone())
    }

    pub(super) fn pause(&mut self, id: TimerId, expected: Option<u32>, note: Option<&str>, now: Timestamp) -> Changed {
        self.changed_by(Event::Pause, id, expected, |row| row.pause(note, now))
    }

    pub(super) fn resume(&mut self, id: TimerId, expected: Option<u32>, missed: Missed, now: Timestamp) -> Changed {
        self.changed_by(Event::Resume, id, expected, |row| row.resume(missed, now))
    }

    /// Changes a timer whose status allows `event`, if it has the expected revision.
    fn changed_by(&mut self, event: Event, id: TimerId, expected: Option<u32>, change: impl FnOnce(&mut Row)) -> Changed {
        let Some(row) = self.timers.get_mut(&id) else {
            return Changed::NotFound;
        };
        if row.timer.status.after(event).is_none() {
            return Changed::WrongStatus(row.timer.clone());
        }
        if expected.is_some_and(|expected| expected != row.timer.revision) {
            return Changed::StaleRevision(row.timer.clone());
        }
        change(row);
        if row.timer.status.is_finished() {
            self.journal.finished(&row.timer);
        } else {
            self.journal.changed(&row.timer);
        }
        Changed::Done(row.timer.clone())
    }

    pub(super) fn matching(&self, filter: &Filter) -> impl Iterator<Item = &Timer> {
        self.timers.values().map(|row| &row.timer).filter(|timer| filter.fits(timer))
    }

    pub(super) fn of_group<'a>(&'a self, namespace: &'a Namespace, group: &'a Group) -> impl Iterator<Item = &'a Timer> {
        let belongs = |timer: &&Timer| timer.definition.namespace == *namespace && timer.definition.group.as_ref() == Some(group);
        self.timers.values().map(|row| &row.timer).filter(belongs)
    }

    pub(super) fn list(&self, query: &ListQuery) -> Page {
        let place = |row: &&Row| {
            let at = match query.sort {
                Sort::CreatedAt => row.timer.created_at,
                Sort::ExecuteAt => row.timer.execute_at,
            };
            Cursor { at, id: row.timer.id() }
        };
        let mut all: Vec<&Row> = self.timers.values().collect();
        all.sort_by_key(place);
        if query.order == Order::Descending {
            all.reverse();
        }
        let is_after = |row: &&Row| {
            query.after.is_none_or(|after| match query.order {
                Order::Ascending => place(row) > after,
                Order::Descending => place(row) < after,
            })
        };
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let mut page = Page::default();
        let (mut passed, mut last) = (0, None);
        for row in all.into_iter().filter(is_after) {
            if query.budget.is_zero() && page.scanned >= LOOKED_AT_WITHOUT_BUDGET {
                return Page { next: last, complete: false, ..page };
            }
            let fits = query.filter.fits(&row.timer);
            if fits && passed >= query.offset && page.count() == limit {
                return Page { next: last, ..page };
            }
            page.scanned += 1;
            if fits && passed < query.offset {
                passed += 1;
            } else if fits && row.is_summary_spoiled {
                page.unreadable.push(place(&row));
            } else if fits {
                page.timers.push(summary(&row.timer));
            }
            last = Some(place(&row));
        }
        page
    }

    pub(super) fn due(&self, from: ShardCursor, until: Timestamp, limit: usize, shards: u16) -> Vec<DueEntry> {
        let mut entries: Vec<DueEntry> = self
            .timers
            .values()
            .filter(|row| row.timer.status == domain::Status::Pending && row.timer.id().shard(shards) == from.shard)
            .map(Row::entry)
            .filter(|entry| entry.at <= until && from.after.is_none_or(|after| (entry.at, entry.id) > after))
            .collect();
        entries.sort_unstable();
        entries.truncate(limit);
        entries
    }

    pub(super) fn claim(&mut self, claim: &Claim, entry: DueEntry, shard: Shard, now: Timestamp) -> Option<Claimed> {
        let shard_lease = *claim.shard_leases.iter().find(|shard_lease| shard_lease.shard == shard)?;
        let is_current = self.ownership.is_current(shard_lease);
        let row = self.timers.get_mut(&entry.id).filter(|row| row.at == entry.at)?;
        ((is_current || row.held.is_some()) && row.claim(claim, shard_lease, now)).then(|| row.claimed(shard_lease)).flatten()
    }

    pub(super) fn settle(&mut self, settlement: &Settlement) -> bool {
        let is_current = self.ownership.is_current(settlement.shard_lease);
        let Some(row) = self.timers.get_mut(&settlement.entry.id) else { return false };
        let revision = row.timer.revision;
        if !((is_current || row.is_claimed_under(settlement.shard_lease)) && row.settle(settlement)) {
            return false;
        }
        if settlement.attempt.is_some() {
            self.journal.attempted(settlement.entry.id, row.attempts_recorded);
        }
        if row.timer.status.is_finished() {
            self.journal.finished(&row.timer);
        }
        if row.timer.revision != revision {
            self.journal.changed(&row.timer);
        }
        true
    }

    pub(super) fn expired_claims(&self, shard_leases: &[ShardLease], limit: usize, shards: u16, now: Timestamp) -> Vec<Claimed> {
        let expired = |row: &Row| {
            let shard = row.timer.id().shard(shards);
            let shard_lease = *shard_leases
                .iter()
                .find(|shard_lease| shard_lease.shard == shard && self.ownership.is_current(**shard_lease))?;
            let is_abandoned = |held: Held| {
                let claimed_under = ShardLease { shard, epoch: held.epoch };
                let is_its_own = held.epoch == shard_lease.epoch || self.ownership.is_alive_who_held(claimed_under, now);
                held.lease_until <= now || !is_its_own
            };
            row.held.is_some_and(is_abandoned).then(|| row.claimed(shard_lease)).flatten()
        };
        self.timers.values().filter_map(expired).take(limit).collect()
    }

    pub(super) fn purge(&mut self, before: Timestamp, limit: usize) -> usize {
        let mut finished: Vec<_> = self
            .timers
            .values()
            .filter(|row| row.timer.status.is_finished() && row.timer.updated_at < before)
            .map(|row| (row.timer.updated_at, row.timer.id()))
            .collect();
        finished.sort_unstable();
        finished.truncate(limit);
        for (_, id) in &finished {
            self.timers.remove(id);
        }
        finished.len()
    }
}

fn summary(timer: &Timer) -> Summary {
    Summary {
        id: timer.id(),
        namespace: timer.definition.namespace.clone(),
        key: timer.definition.key.clone(),
        group: timer.definition.group.clone(),
        callback_kind: timer.definition.callback.kind().to_owned(),
        correlation_id: timer.definition.correlation_id.clone(),
        execute_at: timer.execute_at,
        status: timer.status,
        attempt: timer.attempt,
        last_error: timer.last_error.clone(),
        executed_at: timer.executed_at,
        created_at: timer.created_at,
        updated_at: timer.updated_at,
        revision: timer.revision,
    }
}
