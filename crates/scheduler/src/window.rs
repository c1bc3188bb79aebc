//! The near term in memory.

use std::collections::{BTreeSet, HashMap, VecDeque};

use domain::{Destination, Shard, TimerId, Timestamp};
use store::{DueEntry, ShardCursor};

use crate::slots::Slots;

/// A place in the order of due timers.
type Position = (Timestamp, TimerId);

/// What is due soon in the shards of this node, in three stages: upcoming (ordered by time), ready (due, in line for
/// its destination) and busy (being claimed or delivered). A pure structure: time is an argument, and it does no I/O.
#[derive(Debug)]
pub struct Window {
    shards: u16,
    budget: usize,
    upcoming: BTreeSet<DueEntry>,
    ready: HashMap<Destination, VecDeque<DueEntry>>,
    ready_len: usize,
    /// Destinations with something ready, in the order of their turns.
    turns: VecDeque<Destination>,
    /// What is ready or busy: it must not enter a second time.
    known: HashMap<TimerId, Timestamp>,
    slots: Slots,
    reach: HashMap<Shard, Reach>,
}

/// How far a shard has been read.
#[derive(Debug, Clone, Copy, Default)]
struct Reach {
    /// Everything pending up to here is in memory. `None`: nothing has been read yet.
    loaded: Option<Position>,
    /// A load under way will get up to here. What is created meanwhile may be too late for that load, so it is let in.
    loading: Option<Position>,
}

impl Window {
    pub fn new(shards: u16, budget: usize, slots: Slots) -> Self {
        Self {
            shards,
            budget: budget.max(1),
            upcoming: BTreeSet::new(),
            ready: HashMap::new(),
            ready_len: 0,
            turns: VecDeque::new(),
            known: HashMap::new(),
            slots,
            reach: HashMap::new(),
        }
    }

    /// Begins to hold a shard, of which nothing has been read yet.
    pub fn open(&mut self, shard: Shard) {
        self.reach.insert(shard, Reach::default());
    }

    /// Lets go of everything in a shard that is not being delivered.
    pub fn close(&mut self, shard: Shard) {
        let shards = self.shards;
        let stays = |entry: &DueEntry| entry.id.shard(shards) != shard;
        self.reach.remove(&shard);
        self.upcoming.retain(stays);
        for queue in self.ready.values_mut() {
            for gone in queue.iter().filter(|entry| !stays(entry)) {
                self.known.remove(&gone.id);
            }
            queue.retain(stays);
        }
        self.ready.retain(|_, queue| !queue.is_empty());
        self.turns.retain(|destination| self.ready.contains_key(destination));
        self.ready_len = self.ready.values().map(VecDeque::len).sum();
    }

    /// How many entries wait in memory.
    pub fn len(&self) -> usize {
        self.upcoming.len() + self.ready_len
    }

    pub const fn in_flight(&self) -> usize {
        self.slots.taken()
    }

    pub fn room(&self) -> usize {
        self.budget.saturating_sub(self.len())
    }

    /// When something is to be done next: at once if something ready could start, else when the next one is due.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.upcoming.first().map(|entry| entry.at)
    }

    // ── Reading ahead ──────────────────────────────────────────────────────────────────────────────────────

    /// Announces a load of everything due up to `until`, and says where it has to begin: only the shards that have
    /// not been read as far as `enough`.
    pub fn begin_load(&mut self, enough: Timestamp, until: Timestamp) -> Vec<ShardCursor> {
        let mut from = Vec::new();
        for (shard, reach) in &mut self.reach {
            if reach.loaded.is_none_or(|(at, _)| at < enough) {
                reach.loading = Some((until, TimerId::LAST));
                from.push(ShardCursor { shard: *shard, after: reach.loaded });
            }
        }
        from.sort_by_key(|cursor| cursor.shard);
        from
    }

    /// Takes in what a load found. A shard whose page was full was read only as far as its last entry.
    /// Says how many entries are new, and whether there is more to read.
    pub fn end_load(&mut self, from: &[ShardCursor], entries: &[DueEntry], until: Timestamp, limit: usize) -> (usize, bool) {
        let mut pages: HashMap<Shard, (usize, Position)> = HashMap::new();
        for entry in entries {
            let page = pages.entry(entry.id.shard(self.shards)).or_insert((0, (entry.at, entry.id)));
            *page = (page.0 + 1, page.1.max((entry.at, entry.id)));
        }
        let mut more = false;
        for cursor in from {
            // A shard that was lost while it was read stays lost.
            let Some(reach) = self.reach.get_mut(&cursor.shard) else { continue };
            reach.loading = None;
            reach.loaded = match pages.get(&cursor.shard) {
                Some((count, last)) if *count >= limit => {
                    more = true;
                    Some(*last)
                }
                _ => Some((until, TimerId::LAST)),
            };
        }
        (entries.iter().filter(|entry| self.insert(**entry)).count(), more)
    }

    /// A load that failed changes nothing; it will be tried again.
    pub fn abandon_load(&mut self, from: &[ShardCursor]) {
        for cursor in from {
            if let Some(reach) = self.reach.get_mut(&cursor.shard) {
                reach.loading = None;
            }
        }
    }

    /// Takes in a timer that was just created, moved or rescheduled, if it lies in the part that is held in memory.
    pub fn admit(&mut self, entry: DueEntry) -> bool {
        let position = (entry.at, entry.id);
        let covers = |reach: &Reach| reach.loaded.max(reach.loading).is_some_and(|end| position <= end);
        self.reach.get(&entry.id.shard(self.shards)).is_some_and(covers) && self.insert(entry)
    }

    /// Takes in a timer that is overdue and pending in the store, wherever it was missed.
    pub fn repair(&mut self, entry: DueEntry) -> bool {
        self.reach.contains_key(&entry.id.shard(self.shards)) && self.insert(entry)
    }

    fn insert(&mut self, entry: DueEntry) -> bool {
        if self.known.get(&entry.id) == Some(&entry.at) || !self.upcoming.insert(entry) {
            return false;
        }
        while self.len() > self.budget {
            // The farthest one goes: it is in the store, and will be read again when its time comes near.
            let Some(farthest) = self.upcoming.pop_last() else { break };
            if let Some(reach) = self.reach.get_mut(&farthest.id.shard(self.shards)) {
                reach.loaded = reach.loaded.min(Some((farthest.at, farthest.id.predecessor())));
            }
        }
        true
    }

    // ── Firing ─────────────────────────────────────────────────────────────────────────────────────────────

    /// Puts what is due at `now` in line for its destination: at most `limit`, so that a long backlog does not hold
    /// up what can already start. Says whether more is due.
    pub fn promote(&mut self, now: Timestamp, limit: usize) -> bool {
        for _ in 0..limit {
            match self.upcoming.first() {
                Some(entry) if entry.at <= now => {}
                _ => return false,
            }
            let Some(entry) = self.upcoming.pop_first() else { return false };
            if self.known.insert(entry.id, entry.at).is_some() {
                // It was ready or busy with another time: one of the two is stale, and the claim will tell which.
                tracing::debug!(timer.id = %entry.id, "a timer became due while an older entry of it was in line");
            }
            let queue = self.ready.entry(entry.destination).or_default();
            if queue.is_empty() {
                self.turns.push_back(entry.destination);
            }
            queue.push_back(entry);
            self.ready_len += 1;
        }
        self.upcoming.first().is_some_and(|entry| entry.at <= now)
    }

    /// Takes what may start now, one of each destination in turn, at most `limit`. They are busy until `done`.
    pub fn take(&mut self, limit: usize) -> Vec<DueEntry> {
        let mut taken = Vec::new();
        let mut passed_over = 0;
        while taken.len() < limit && passed_over < self.turns.len() && self.slots.free() > 0 {
            let Some(destination) = self.turns.pop_front() else { break };
            let Some(queue) = self.ready.get_mut(&destination) else { continue };
            if self.slots.take(destination) {
                taken.extend(queue.pop_front());
                self.ready_len -= 1;
                passed_over = 0;
            } else {
                passed_over += 1;
            }
            if queue.is_empty() {
                self.ready.remove(&destination);
            } else {
                self.turns.push_back(destination);
            }
        }
        taken
    }

    /// A busy one is settled, or was not ours to take.
    pub fn done(&mut self, entry: &DueEntry) {
        if self.known.get(&entry.id) == Some(&entry.at) {
            self.known.remove(&entry.id);
        }
        self.slots.give_back(entry.destination);
    }

    /// Busy ones could not be claimed for now: they become due again.
    pub fn put_back(&mut self, entries: &[DueEntry]) {
        for entry in entries {
            self.done(entry);
            self.repair(*entry);
        }
    }

    /// Whether this very entry is in line or being delivered here.
    pub fn is_known(&self, entry: &DueEntry) -> bool {
        self.known.get(&entry.id) == Some(&entry.at)
    }
}

#[cfg(test)]
mod tests;
