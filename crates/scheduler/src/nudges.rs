use std::sync::atomic::Ordering;

use domain::{Event, Next, Span};
use store::{DueEntry, Settlement, StoreResult};

use crate::Scheduler;

/// What is due within this time enters the window however far it has been read.
const SOON: Span = Span::from_secs(2);

impl Scheduler {
    /// Tells the scheduler of timers that were created, moved or rescheduled: those of the near term enter the window, or are passed
    /// on to the nodes that hold their shards. Best effort: what is lost here is found by the sweep.
    pub fn nudge(&self, entries: &[DueEntry]) {
        self.admit(entries);
        self.forward(entries);
    }

    /// The call of a claimed timer is over, and its permit is free for the next. What became of it is still to be recorded.
    pub fn called(&self, entry: &DueEntry) {
        self.window().called(entry);
        self.wake();
    }

    /// Claimed timers have been settled: those that are pending again enter the window. The same for claims of an owner that is
    /// gone, which have no permit here.
    pub fn settled(&self, settlements: &[Settlement]) {
        let mut again = Vec::new();
        {
            let mut window = self.window();
            for settlement in settlements {
                window.done(&settlement.entry);
                if let Next::Pending { at, .. } | Next::Again { at } = settlement.next {
                    let entry = DueEntry { at, ..settlement.entry };
                    window.admit(entry);
                    again.push(entry);
                }
            }
        }
        let is_final = |settlement: &&Settlement| settlement.next.event() != Event::Retry;
        self.finished.fetch_add(settlements.iter().filter(is_final).count(), Ordering::Relaxed);
        self.forward(&again);
        self.wake();
    }

    fn admit(&self, entries: &[DueEntry]) {
        let soon = self.now().saturating_add(SOON);
        let earlier = {
            let mut window = self.window();
            let next_before = window.next_due();
            // One that is due at once is not left to a load, which may have a long backlog to read first.
            let mut admit = |entry: DueEntry| window.admit(entry) || (entry.at <= soon && window.repair(entry));
            let admitted = entries.iter().filter(|entry| admit(**entry)).count();
            admitted > 0 && window.next_due() != next_before
        };
        if earlier {
            self.wake();
        }
    }

    /// Keeps what others should hear of: timers of their shards that are due before they would read them.
    fn forward(&self, entries: &[DueEntry]) {
        if self.members.load(Ordering::Relaxed) < 2 {
            return;
        }
        let (shards, soon) = (self.store.shards(), self.now().saturating_add(self.config.look_ahead));
        let theirs: Vec<DueEntry> = {
            let held_shards = self.held_shards();
            entries.iter().copied().filter(|entry| entry.at <= soon && !held_shards.holds_shard(entry.id.shard(shards))).collect()
        };
        if theirs.is_empty() {
            return;
        }
        let dropped = self.nudge_buffer().put(theirs.into_iter());
        metrics::counter!("timer_nudges_dropped_total").increment(dropped as u64);
        self.outgoing.notify_one();
    }

    /// Tells others what has gathered for them, once there is something. What cannot be told is dropped.
    pub async fn send_nudges(&self) -> StoreResult<usize> {
        loop {
            let outgoing = self.outgoing.notified();
            let entries = self.nudge_buffer().take();
            if entries.is_empty() {
                outgoing.await;
                continue;
            }
            let told = self.store.nudge(&entries).await;
            let figure = if told.is_ok() { "timer_nudges_sent_total" } else { "timer_nudges_dropped_total" };
            metrics::counter!(figure).increment(entries.len() as u64);
            return told.map(|()| entries.len());
        }
    }

    /// Waits until others tell of something, and takes in what belongs here.
    pub async fn receive_nudges(&self) -> StoreResult<usize> {
        let entries = self.store.nudged().await?;
        metrics::counter!("timer_nudges_received_total").increment(entries.len() as u64);
        self.admit(&entries);
        Ok(entries.len())
    }
}
