//! A queue inside one thread, from which batches are taken.

use std::{cell::RefCell, collections::VecDeque};

use tokio::sync::Notify;

/// What waits is bounded by who waits for it: open connections, or timers that are claimed.
#[derive(Debug)]
pub struct Queue<T> {
    items: RefCell<VecDeque<T>>,
    added: Notify,
}

impl<T> Queue<T> {
    pub fn new() -> Self {
        Self { items: RefCell::new(VecDeque::new()), added: Notify::new() }
    }

    pub fn len(&self) -> usize {
        self.items.borrow().len()
    }

    pub fn push(&self, item: T) {
        self.items.borrow_mut().push_back(item);
        self.added.notify_one();
    }

    /// Waits for an item.
    pub async fn pop(&self) -> T {
        loop {
            let item = self.items.borrow_mut().pop_front();
            if let Some(item) = item {
                return item;
            }
            self.added.notified().await;
        }
    }

    /// Waits for an item, and takes with it what else is there, until all of it weighs `most`.
    pub async fn batch(&self, most: usize, weigh: impl Fn(&T) -> usize) -> Vec<T> {
        let first = self.pop().await;
        // Whatever can be read from a socket now gets into the same batch.
        tokio::task::yield_now().await;
        let mut weight = weigh(&first);
        let mut batch = vec![first];
        let mut items = self.items.borrow_mut();
        while let Some(item) = items.front() {
            weight += weigh(item);
            if weight > most {
                // For another task that waits for a batch: this one had all notifications.
                self.added.notify_one();
                break;
            }
            batch.extend(items.pop_front());
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_batch_has_what_is_there_up_to_its_weight_but_never_nothing() {
        let queue = Queue::new();
        for weight in [9, 2, 1, 4] {
            queue.push(weight);
        }
        for batch in [vec![9], vec![2, 1], vec![4]] {
            assert_eq!(queue.batch(5, |weight| *weight).await, batch);
        }
        assert_eq!(queue.len(), 0);
    }
}
