//! The window as the parts of the scheduler share it.

use std::sync::{Mutex, PoisonError};

use domain::{Next, Span, Timestamp};
use store::{DueEntry, Settlement};
use tokio::sync::{Notify, futures::Notified};

use crate::{held_shards::Changes, window::Window};

/// What is due within this time enters the window however far it has been read.
const SOON: Span = Span::from_secs(2);

/// The window behind its lock, with the wake-ups that follow from its changes.
pub struct SharedWindow {
    window: Mutex<Window>,
    /// Something may be ready earlier than the claim loop expects, or more may start.
    changed: Notify,
    /// Shards came in of which nothing has been read.
    opened: Notify,
}

impl SharedWindow {
    pub fn new(window: Window) -> Self {
        Self { window: Mutex::new(window), changed: Notify::new(), opened: Notify::new() }
    }

    /// Reads or changes the window under its lock. A closure cannot wait, so that the lock is never held across a wait.
    pub fn with<T>(&self, work: impl FnOnce(&mut Window) -> T) -> T {
        // A panic while it was locked can only have left out or repeated an entry, which the store sorts out.
        work(&mut self.window.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets the claim loop look at the window again.
    pub fn wake(&self) {
        self.changed.notify_one();
    }

    /// Completes at the next [`wake`](Self::wake), counted from now on.
    pub fn woken(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Completes when shards came in of which nothing has been read.
    pub fn opened(&self) -> Notified<'_> {
        self.opened.notified()
    }

    /// Follows the shards that this node has lost and gained.
    pub fn apply(&self, changes: &Changes) {
        self.with(|window| {
            changes.lost.iter().for_each(|shard| window.close(*shard));
            changes.gained.iter().for_each(|shard| window.open(*shard));
        });
        if !changes.gained.is_empty() {
            self.opened.notify_one();
        }
    }

    /// Takes in timers that were created, moved or rescheduled, as far as they belong here and to the near term.
    pub fn admit(&self, entries: &[DueEntry], now: Timestamp) {
        let soon = now.saturating_add(SOON);
        let is_earlier = self.with(|window| {
            let next_before = window.next_due();
            // One that is due at once is not left to a load, which may have a long backlog to read first.
            let mut admit = |entry: DueEntry| window.admit(entry) || (entry.at <= soon && window.repair(entry));
            let admitted = entries.iter().filter(|entry| admit(**entry)).count();
            admitted > 0 && window.next_due() != next_before
        });
        if is_earlier {
            self.wake();
        }
    }

    /// The call of a claimed timer is over, and its permit is free for the next.
    pub fn called(&self, entry: &DueEntry) {
        self.with(|window| window.called(entry));
        self.wake();
    }

    /// Claimed timers have been settled. Those that are pending again enter the window, and are returned as they are due now.
    pub fn settled(&self, settlements: &[Settlement]) -> Vec<DueEntry> {
        self.with(|window| {
            let mut again = Vec::new();
            for settlement in settlements {
                window.done(&settlement.entry);
                if let Next::Pending { at, .. } | Next::Again { at } = settlement.next {
                    let entry = DueEntry { at, ..settlement.entry };
                    window.admit(entry);
                    again.push(entry);
                }
            }
            again
        })
    }
}
