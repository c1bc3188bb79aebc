//! What the writer does next.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use super::Queued;

/// A batch is full with this many rows: a larger one makes those that are waiting wait longer than it saves.
const BATCH_ROWS_MAX: usize = 1024;
/// The same for large payloads. One request may be larger than that, and then is a batch by itself.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The maximum number of batches that go before a background request; then it joins the next one.
const BATCHES_BEFORE_BACKGROUND_MAX: u32 = 32;

/// The queue, a batch at a time.
pub struct Batches {
    queue: mpsc::Receiver<Box<dyn Queued>>,
    /// What waits until nothing else does.
    background: VecDeque<Box<dyn Queued>>,
    /// How many batches went before the first of them.
    passed: u32,
}

impl Batches {
    pub const fn of(queue: mpsc::Receiver<Box<dyn Queued>>) -> Self {
        Self { queue, background: VecDeque::new(), passed: 0 }
    }

    /// Waits for requests and fills `batch`. Says how many rows they write; `None` once the queue is closed and empty.
    pub fn next(&mut self, batch: &mut Vec<Box<dyn Queued>>) -> Option<usize> {
        let (mut rows, mut bytes) = (0_usize, 0_usize);
        while rows < BATCH_ROWS_MAX && bytes < BATCH_BYTES_MAX {
            let is_idle = batch.is_empty() && self.background.is_empty();
            let next = if is_idle { self.queue.blocking_recv() } else { self.queue.try_recv().ok() };
            let Some(next) = next else { break };
            if next.is_background() {
                self.background.push_back(next);
                continue;
            }
            rows = rows.saturating_add(next.rows());
            bytes = bytes.saturating_add(next.bytes());
            batch.push(next);
        }
        if (batch.is_empty() || self.passed >= BATCHES_BEFORE_BACKGROUND_MAX)
            && let Some(waiting) = self.background.pop_front()
        {
            self.passed = 0;
            rows = rows.saturating_add(waiting.rows());
            batch.push(waiting);
        } else if !self.background.is_empty() {
            self.passed += 1;
        }
        (!batch.is_empty()).then_some(rows)
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use store::StoreResult;
    use tokio::runtime::Handle;

    use super::*;
    use crate::{failure::Failure, tally::Tally};

    /// A request of which only the order matters.
    struct Named(&'static str);

    impl Queued for Named {
        fn name(&self) -> &'static str {
            self.0
        }

        fn rows(&self) -> usize {
            1
        }

        fn bytes(&self) -> usize {
            0
        }

        fn is_background(&self) -> bool {
            self.0.starts_with("page")
        }

        fn runtime(&self) -> Option<&Handle> {
            None
        }

        fn run(&mut self, _: &Connection, _: &mut Tally) -> Result<(), Failure> {
            Ok(())
        }

        fn answer(self: Box<Self>, _: StoreResult<()>) {}
    }

    #[test]
    fn the_background_waits_for_all_else_but_not_for_ever() {
        let (sender, receiver) = mpsc::channel(8);
        let queue = |name| sender.try_send(Box::new(Named(name)) as Box<dyn Queued>).map_err(drop).unwrap();
        let mut batches = Batches::of(receiver);
        let mut next = || {
            let mut batch = Vec::new();
            batches.next(&mut batch);
            batch.iter().map(|request| request.name()).collect::<Vec<_>>()
        };
        for name in ["page 1", "claim", "page 2", "settle"] {
            queue(name);
        }
        assert_eq!(next(), ["claim", "settle"]);
        assert_eq!(next(), ["page 1"]);
        for _ in 0..BATCHES_BEFORE_BACKGROUND_MAX {
            queue("claim");
            assert_eq!(next(), ["claim"]);
        }
        queue("claim");
        assert_eq!(next(), ["claim", "page 2"], "it has waited long enough");
        queue("page 3");
        assert_eq!(next(), ["page 3"], "nothing else is there");
        queue("page 4");
        drop(sender);
        assert_eq!(next(), ["page 4"], "what is queued is finished");
        assert!(next().is_empty());
    }
}
