//! The near term in memory.

use std::collections::{BTreeMap, HashMap, hash_map::Entry};

use domain::{Destination, Shard, TimerId, Timestamp};
use store::{DueEntry, ShardCursor};

use crate::{
    concurrency_limit::ConcurrencyLimit,
    hash::Seed,
    memory_budget::MemoryBudget,
    position::Position,
    ready::{Ready, Start},
};

/// What is due soon in the shards of this node, in four stages: upcoming (ordered by time), ready (to be claimed now, in line
/// for its destination), in flight (being claimed or called) and called (to be recorded). A pure structure: time is an argument, and it
/// does no I/O.
#[derive(Debug)]
pub struct Window {
    shards: u16,
    budget: usize,
    upcoming: BTreeMap<Position, Destination>,
    ready: Ready,
    /// What has left `upcoming`: it must not enter a second time.
    known: HashMap<Position, Stage, Seed>,
    permits: ConcurrencyLimit,
    memory: MemoryBudget,
    unrecorded: usize,
    /// Something is due for which its tenant got no permit when it was last asked for.
    is_exhausted: bool,
    /// Something due found no room in its line, and is in the store only.
    has_turned_away: bool,
    reach: HashMap<Shard, Reach, Seed>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Ready,
    /// Being claimed or called, with a permit of this destination, and counted as this number of bytes in memory.
    InFlight {
        destination: Destination,
        bytes: usize,
    },
    /// The call is over. Its permit is free, and what became of it is being recorded.
    Called,
}

/// How many calls may be waiting for their record: no more than these are made again after a crash, besides those under way.
const UNRECORDED_MAX: usize = 1024;

/// How far a shard has been read.
#[derive(Debug, Clone, Copy, Default)]
struct Reach {
    /// Everything pending up to here is in memory. `None`: nothing has been read yet.
    loaded: Option<Position>,
    /// A load under way will get up to here. What is created meanwhile may be too late for that load, so it is let in.
    loading: Option<Position>,
}

impl Window {
    pub fn new(shards: u16, budget: usize, permits: ConcurrencyLimit) -> Self {
        Self {
            shards,
            budget: budget.max(1),
            upcoming: BTreeMap::new(),
            ready: Ready::default(),
            known: HashMap::default(),
            permits,
            memory: MemoryBudget::default(),
            unrecorded: 0,
            is_exhausted: false,
            has_turned_away: false,
            reach: HashMap::default(),
        }
    }

    /// Begins to hold a shard, of which nothing has been read yet.
    pub fn open(&mut self, shard: Shard) {
        self.reach.insert(shard, Reach::default());
    }

    /// Lets go of everything in a shard that is not being delivered.
    pub fn close(&mut self, shard: Shard) {
        let shards = self.shards;
        let stays = |position: &Position| position.1.shard(shards) != shard;
        self.reach.remove(&shard);
        self.upcoming.retain(|position, _| stays(position));
        self.ready.retain(stays);
        self.known.retain(|position, stage| *stage != Stage::Ready || stays(position));
    }

    /// How many entries wait in memory.
    pub fn len(&self) -> usize {
        self.upcoming.len() + self.ready.len()
    }

    pub const fn in_flight(&self) -> usize {
        self.permits.taken()
    }

    pub const fn in_flight_max(&self) -> usize {
        self.permits.max()
    }

    /// Whether less than half of the permits are taken, so that a timer may hold one before its time.
    pub const fn has_spare_permits(&self) -> bool {
        self.permits.taken() < self.permits.max().div_ceil(2)
    }

    /// Whether something due waits because its tenant has all the permits, or all the memory, that it may have now.
    pub const fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    pub fn capacity_left(&self) -> usize {
        self.budget.saturating_sub(self.len())
    }

    /// When the next one becomes due.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.upcoming.first_key_value().map(|((at, _), _)| *at)
    }

    /// When the one was due that has been waiting for longest.
    pub fn oldest(&self) -> Option<Timestamp> {
        self.ready.oldest().into_iter().chain(self.next_due()).min()
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
            // A shard that was lost while it was read stays lost; one that has come back since is read anew.
            let Some(reach) = self.reach.get_mut(&cursor.shard) else { continue };
            let Some(announced) = reach.loading.take() else { continue };
            let read = match pages.get(&cursor.shard) {
                Some((count, last)) if *count >= limit => {
                    more = true;
                    *last
                }
                _ => (until, TimerId::LAST),
            };
            reach.loaded = Some(read.min(announced));
        }
        (entries.iter().filter(|entry| self.repair(**entry)).count(), more)
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

    /// Takes in a timer that is overdue and pending in the store, wherever it was missed, if there is room for it in its line.
    pub fn find(&mut self, entry: DueEntry) -> bool {
        if self.is_known(&entry) {
            return false;
        }
        let has_capacity = self.ready.has_capacity(entry.destination, self.budget);
        self.has_turned_away |= !has_capacity;
        has_capacity && self.repair(entry)
    }

    /// Whether everything that is due at `now` is in memory, as far as this node was told of it. Asked once for each sweep: what is
    /// turned away afterwards is for the next one.
    pub fn begin_sweep(&mut self, now: Timestamp) -> bool {
        let is_read = self.reach.values().all(|reach| reach.loaded.is_some_and(|(at, _)| at >= now));
        is_read && !std::mem::take(&mut self.has_turned_away)
    }

    /// Takes in a timer that is pending in the store, however far it has been read.
    pub fn repair(&mut self, entry: DueEntry) -> bool {
        self.reach.contains_key(&entry.id.shard(self.shards)) && self.insert(entry)
    }

    fn insert(&mut self, entry: DueEntry) -> bool {
        let position = (entry.at, entry.id);
        // One that is upcoming already takes the destination of the newer notice.
        if self.known.contains_key(&position) || self.upcoming.insert(position, entry.destination).is_some() {
            return false;
        }
        while self.len() > self.budget {
            // The farthest one goes: it is in the store, and will be read again when its time comes near.
            let Some(((at, id), _)) = self.upcoming.pop_last() else { break };
            if let Some(reach) = self.reach.get_mut(&id.shard(self.shards)) {
                let kept = (at, id.predecessor());
                reach.loaded = reach.loaded.map(|loaded| loaded.min(kept));
                reach.loading = reach.loading.map(|loading| loading.min(kept));
            }
        }
        true
    }

    // ── Firing ─────────────────────────────────────────────────────────────────────────────────────────────

    /// Puts what is due at `now` in line for its destination: at most `limit`, so that a long backlog does not hold
    /// up what can already start. Says whether more is due.
    pub fn promote(&mut self, now: Timestamp, limit: usize) -> bool {
        for _ in 0..limit {
            if self.next_due().is_none_or(|at| at > now) {
                return false;
            }
            let Some((position, destination)) = self.upcoming.pop_first() else { return false };
            // What does not fit stays in the store, where the sweep finds it again.
            if self.ready.has_capacity(destination, self.budget) {
                self.ready.push(destination, position);
                self.known.insert(position, Stage::Ready);
            } else {
                self.has_turned_away = true;
            }
        }
        self.next_due().is_some_and(|at| at <= now)
    }

    /// Whether about `count` may start now.
    pub fn has_work_for(&self, count: usize) -> bool {
        if self.permits.free().min(UNRECORDED_MAX.saturating_sub(self.unrecorded)) < count {
            return false;
        }
        self.ready.is_worth(
            count,
            |tenant| if self.memory.has_budget_for(tenant) { self.permits.left_of(tenant) } else { 0 },
            |destination| if self.memory.has_budget(destination) { self.permits.left(destination) } else { 0 },
        )
    }

    /// Takes what may start now, at most `limit`: round-robin over the tenants, and over the destinations of a tenant.
    /// They are in flight until `called` or `done`.
    pub fn take(&mut self, limit: usize) -> Vec<DueEntry> {
        let Self { ready, permits, memory, known, .. } = self;
        let limit = limit.min(UNRECORDED_MAX.saturating_sub(self.unrecorded)).min(permits.free());
        let mut taken = Vec::new();
        let is_any_waiting = ready.take(limit, |destination, position @ (at, id)| {
            // A destination never has more left than its tenant, so that the tenant is looked at only for the reason.
            if !memory.has_budget(destination) || !permits.take(destination) {
                let is_tenant = permits.left_of(destination.tenant()) == 0 || !memory.has_budget_for(destination.tenant());
                return if is_tenant { Start::NotForTenant } else { Start::NotForDestination };
            }
            known.insert(position, Stage::InFlight { destination, bytes: memory.reserve(destination) });
            taken.push(DueEntry { at, id, destination });
            Start::Now
        });
        self.is_exhausted = is_any_waiting || (self.permits.free() == 0 && self.ready.len() > 0);
        // They all start together. Neighbours in time and id are neighbours in the store, which takes them quicker one after another.
        taken.sort_unstable_by_key(|entry| (entry.at, entry.id));
        taken
    }

    /// Looks again at destinations that had all the permits they may have. Each is looked at as soon as one of its own calls is
    /// over; this finds those that may have more because calls to other destinations are. Says whether there are any.
    pub fn look_again(&mut self) -> bool {
        self.ready.unpark_all()
    }

    /// Entries in flight have been claimed, and this is how many bytes of each are in memory now.
    pub fn record_sizes(&mut self, claimed: impl Iterator<Item = (Position, usize)>) {
        let mut largest = 0;
        for (position, size) in claimed {
            if let Some(Stage::InFlight { destination, bytes }) = self.known.get_mut(&position) {
                self.memory.remove(*destination, *bytes);
                self.memory.add(*destination, size);
                self.ready.unpark(destination.receiver());
                *bytes = size;
                largest = largest.max(size);
            }
        }
        if self.memory.estimate(largest) {
            self.ready.unpark_all();
        }
    }

    /// The call of an entry in flight is over: its permit is free. It stays known until it is recorded. Saying so twice is harmless.
    pub fn called(&mut self, entry: &DueEntry) {
        if let Some(stage) = self.known.get_mut(&(entry.at, entry.id))
            && let Stage::InFlight { destination, bytes } = *stage
        {
            *stage = Stage::Called;
            self.unrecorded += 1;
            self.release(destination, bytes);
        }
    }

    /// An entry in flight or called is settled, or was not ours to take. Saying so twice is harmless.
    pub fn done(&mut self, entry: &DueEntry) {
        let Entry::Occupied(known) = self.known.entry((entry.at, entry.id)) else { return };
        match *known.get() {
            Stage::Ready => {}
            Stage::InFlight { destination, bytes } => {
                known.remove();
                self.release(destination, bytes);
            }
            Stage::Called => {
                known.remove();
                self.unrecorded -= 1;
            }
        }
    }

    /// The permit is that of the destination it was taken for; the timer may have got another one since.
    fn release(&mut self, destination: Destination, bytes: usize) {
        self.memory.remove(destination, bytes);
        self.permits.give_back(destination);
        self.ready.unpark(destination.receiver());
    }

    /// Entries in flight could not be claimed for now: they become due again.
    pub fn put_back(&mut self, entries: &[DueEntry]) {
        for entry in entries {
            self.done(entry);
            self.repair(*entry);
        }
    }

    /// Whether nothing is in line, being delivered or being recorded here.
    pub fn is_idle(&self) -> bool {
        self.known.is_empty()
    }

    /// Whether this very entry is in line or being delivered here.
    pub fn is_known(&self, entry: &DueEntry) -> bool {
        self.known.contains_key(&(entry.at, entry.id))
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
