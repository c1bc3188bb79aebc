//! Natural batching: what arrives while a batch is being written makes up the next one.
//!
//! ```text
//!   submit ──▶ bounded queue ──▶ worker: takes all that is there ──▶ work(batch) ──▶ answers
//!                            └─▶ worker: the same, while the first one writes and there is enough to do
//! ```
//!
//! This is group commit. Alone, an order is written at once. Beside a batch that is being written, the next one lingers: until
//! many have come together, or the other one is done, and never for long.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use store::{StoreError, StoreResult};
use tokio::{
    sync::{Mutex, Notify, mpsc, oneshot},
    time::{Instant, timeout},
};

#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    pub workers: usize,
    /// The number of items, and of bytes of items, from which a batch is closed; the last order may bring it above.
    pub items_max: usize,
    pub bytes_max: usize,
    /// The number of queued items from which a second batch is started beside one under way.
    pub items_worthwhile: usize,
    /// The maximum time for which fewer items wait for the batch under way.
    pub linger_max: Duration,
    pub orders_queued_max: usize,
    /// An order that waited longer is turned away instead of being written late.
    pub wait_max: Duration,
}

/// What is queued and what is being done at the moment.
#[derive(Debug, Default)]
struct Flow {
    items_queued: AtomicUsize,
    batches_under_way: AtomicUsize,
    /// One of the two has changed in favour of the batch that waits.
    changed: Notify,
}

impl Flow {
    fn enter(&self, items: usize, worthwhile: usize) -> Entered<'_> {
        let before = self.items_queued.fetch_add(items, Ordering::Relaxed);
        if before < worthwhile && before + items >= worthwhile {
            self.changed.notify_one();
        }
        Entered { flow: self, items }
    }

    fn end(&self) {
        self.batches_under_way.fetch_sub(1, Ordering::Relaxed);
        self.changed.notify_one();
    }

    /// Completes when no batch is under way, or enough items are queued for another one beside it.
    async fn wait_for_batch(&self, worthwhile: usize) {
        while self.batches_under_way.load(Ordering::Relaxed) > 0 && self.items_queued.load(Ordering::Relaxed) < worthwhile {
            self.changed.notified().await;
        }
    }
}

/// Items that count as queued before the queue has taken them in. The worker that takes them counts them out again; where the
/// queue does not take them, this does.
struct Entered<'a> {
    flow: &'a Flow,
    items: usize,
}

impl Entered<'_> {
    fn are_queued(mut self) {
        self.items = 0;
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.flow.items_queued.fetch_sub(self.items, Ordering::Relaxed);
    }
}

/// One caller's items, to be answered together.
struct Order<Item, Answer> {
    items: Vec<Item>,
    bytes: usize,
    since: Instant,
    answer: oneshot::Sender<Vec<StoreResult<Answer>>>,
}

/// The way in. The workers end when the last one is dropped.
#[derive(Debug)]
pub struct Batcher<Item, Answer> {
    orders: mpsc::Sender<Order<Item, Answer>>,
    flow: Arc<Flow>,
    bytes_of: fn(&Item) -> usize,
    limits: BatchLimits,
}

impl<Item: Send + 'static, Answer: Send + 'static> Batcher<Item, Answer> {
    /// `bytes_of` tells the bytes of an item; `work` answers each item, in the order of the batch.
    pub fn start<Work, Working>(limits: BatchLimits, bytes_of: fn(&Item) -> usize, work: Work) -> Self
    where
        Work: Fn(Vec<Item>) -> Working + Send + Sync + 'static,
        Working: Future<Output = Vec<StoreResult<Answer>>> + Send,
    {
        let (orders, queue) = mpsc::channel(limits.orders_queued_max);
        let (queue, work, flow) = (Arc::new(Mutex::new(queue)), Arc::new(work), Arc::new(Flow::default()));
        for _ in 0..limits.workers {
            let (queue, work, flow) = (Arc::clone(&queue), Arc::clone(&work), Arc::clone(&flow));
            tokio::spawn(async move {
                loop {
                    // A statement of its own: the queue is free for the next worker before this one begins to serve.
                    let gathered = gather(&mut *queue.lock().await, &flow, &limits).await;
                    let Some(batch) = gathered else { return };
                    serve(batch, &*work).await;
                    flow.end();
                }
            });
        }
        Self { orders, flow, bytes_of, limits }
    }

    /// Has the items done, and answers each. Once they are queued they are done even if the caller goes away.
    pub async fn submit(&self, items: Vec<Item>) -> Vec<StoreResult<Answer>> {
        let count = items.len();
        let (answer, answered) = oneshot::channel();
        let order = Order { bytes: items.iter().map(self.bytes_of).sum(), items, since: Instant::now(), answer };
        // First: the worker that takes it counts it out again.
        let entered = self.flow.enter(count, self.limits.items_worthwhile);
        let sent = match self.orders.try_send(order) {
            Err(mpsc::error::TrySendError::Full(order)) => {
                timeout(self.limits.wait_max, self.orders.send(order)).await.is_ok_and(|sent| sent.is_ok())
            }
            sent => sent.is_ok(),
        };
        if !sent {
            return refused(count, || StoreError::Unavailable("too much is waiting to be written".into()));
        }
        entered.are_queued();
        match answered.await {
            Ok(answers) => answers,
            Err(_) => refused(count, || StoreError::Unknown("the task that was to write it ended".into())),
        }
    }
}

/// Waits for an order and takes what else is there. `None` when there will be no more.
async fn gather<Item, Answer>(
    queue: &mut mpsc::Receiver<Order<Item, Answer>>,
    flow: &Flow,
    limits: &BatchLimits,
) -> Option<Vec<Order<Item, Answer>>> {
    let mut next = queue.recv().await?;
    // A batch that is still small by then is written as it is.
    drop(timeout(limits.linger_max, flow.wait_for_batch(limits.items_worthwhile)).await);
    flow.batches_under_way.fetch_add(1, Ordering::Relaxed);
    let mut batch = Vec::new();
    let (mut items, mut bytes) = (0, 0);
    loop {
        flow.items_queued.fetch_sub(next.items.len(), Ordering::Relaxed);
        if next.since.elapsed() > limits.wait_max {
            let count = next.items.len();
            drop(next.answer.send(refused(count, || StoreError::Unavailable("it waited too long to be written".into()))));
        } else {
            items += next.items.len();
            bytes += next.bytes;
            batch.push(next);
        }
        if items >= limits.items_max || bytes >= limits.bytes_max {
            return Some(batch);
        }
        match queue.try_recv() {
            Ok(order) => next = order,
            Err(_) => return Some(batch),
        }
    }
}

async fn serve<Item, Answer, Working>(mut batch: Vec<Order<Item, Answer>>, work: &(impl Fn(Vec<Item>) -> Working + Sync))
where
    Working: Future<Output = Vec<StoreResult<Answer>>>,
{
    let counts: Vec<usize> = batch.iter().map(|order| order.items.len()).collect();
    let items: Vec<Item> = batch.iter_mut().flat_map(|order| std::mem::take(&mut order.items)).collect();
    if items.is_empty() {
        return batch.into_iter().for_each(|order| drop(order.answer.send(Vec::new())));
    }
    let mut answers = work(items).await.into_iter();
    for (order, count) in batch.into_iter().zip(counts) {
        // A caller who went away has no use for the answer.
        drop(order.answer.send(answers.by_ref().take(count).collect()));
    }
}

fn refused<Answer>(count: usize, error: impl Fn() -> StoreError) -> Vec<StoreResult<Answer>> {
    (0..count).map(|_| Err(error())).collect()
}

#[cfg(test)]
mod tests;
