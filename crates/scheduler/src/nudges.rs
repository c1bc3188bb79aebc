use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::{Clock, Span};
use store::{DueEntry, MembershipStore, StoreResult};
use tokio::sync::Notify;

use crate::{membership::Membership, nudge_buffer::NudgeBuffer, shared_window::SharedWindow};

/// The hints about timers that are due soon, within this node and between nodes. Best effort: the sweep finds what is lost.
pub struct Nudges {
    store: Arc<dyn MembershipStore>,
    clock: Arc<dyn Clock>,
    membership: Arc<Membership>,
    window: Arc<SharedWindow>,
    look_ahead: Span,
    buffer: Mutex<NudgeBuffer>,
    /// There is something to send to other nodes.
    outgoing: Notify,
}

impl Nudges {
    pub fn new(
        store: &Arc<dyn MembershipStore>,
        clock: &Arc<dyn Clock>,
        membership: &Arc<Membership>,
        window: &Arc<SharedWindow>,
        look_ahead: Span,
    ) -> Self {
        Self {
            store: Arc::clone(store),
            clock: Arc::clone(clock),
            membership: Arc::clone(membership),
            window: Arc::clone(window),
            look_ahead,
            buffer: Mutex::default(),
            outgoing: Notify::new(),
        }
    }

    /// Takes timers that were created, moved or rescheduled into the window, or forwards them to the nodes that hold their shards.
    pub fn nudge(&self, entries: &[DueEntry]) {
        self.window.admit(entries, self.clock.now());
        self.forward(entries);
    }

    /// Buffers what other nodes should hear of: timers of their shards that are due before they would read them.
    pub fn forward(&self, entries: &[DueEntry]) {
        if self.membership.members() < 2 {
            return;
        }
        let (shards, soon) = (self.store.shards(), self.clock.now().saturating_add(self.look_ahead));
        let due_soon = entries.iter().copied().filter(|entry| entry.at <= soon);
        let theirs = self.membership.of_other_nodes(due_soon, |entry| entry.id.shard(shards));
        if theirs.is_empty() {
            return;
        }
        let dropped = self.buffer().put(theirs.into_iter());
        metrics::counter!("timer_nudges_dropped_total").increment(dropped as u64);
        self.outgoing.notify_one();
    }

    /// Waits until something has gathered for other nodes, and sends it. What cannot be sent is dropped.
    pub async fn send(&self) -> StoreResult<usize> {
        loop {
            let outgoing = self.outgoing.notified();
            let entries = self.buffer().take();
            if entries.is_empty() {
                outgoing.await;
                continue;
            }
            let sent = self.store.nudge(&entries).await;
            let counter = if sent.is_ok() { "timer_nudges_sent_total" } else { "timer_nudges_dropped_total" };
            metrics::counter!(counter).increment(entries.len() as u64);
            return sent.map(|()| entries.len());
        }
    }

    /// Waits until another node nudges this one, and takes in what belongs here.
    pub async fn receive(&self) -> StoreResult<usize> {
        let entries = self.store.nudged().await?;
        metrics::counter!("timer_nudges_received_total").increment(entries.len() as u64);
        self.window.admit(&entries, self.clock.now());
        Ok(entries.len())
    }

    fn buffer(&self) -> MutexGuard<'_, NudgeBuffer> {
        // A panic while it was locked can only have lost nudges.
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
