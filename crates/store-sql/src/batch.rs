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
    /// A batch is closed once it has this many items, or items of so many bytes; the last order may bring it above.
    pub items_max: usize,
    pub bytes_max: usize,
    /// So many items are worth a batch beside another one.
    pub items_worthwhile: usize,
    /// Fewer wait no longer than this for the other one.
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
    weigh: fn(&Item) -> usize,
    limits: BatchLimits,
}

impl<Item: Send + 'static, Answer: Send + 'static> Batcher<Item, Answer> {
    /// `weigh` tells the bytes of an item; `work` answers each item, in the order of the batch.
    pub fn start<Work, Working>(limits: BatchLimits, weigh: fn(&Item) -> usize, work: Work) -> Self
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
        Self { orders, flow, weigh, limits }
    }

    /// Has the items done, and answers each. Once they are queued they are done even if the caller goes away.
    pub async fn submit(&self, items: Vec<Item>) -> Vec<StoreResult<Answer>> {
        let count = items.len();
        let (answer, answered) = oneshot::channel();
        let order = Order { bytes: items.iter().map(self.weigh).sum(), items, since: Instant::now(), answer };
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
mod tests {
    use super::*;

    fn limits(workers: usize) -> BatchLimits {
        BatchLimits {
            workers,
            items_max: 4,
            bytes_max: 1_000,
            items_worthwhile: 1,
            linger_max: Duration::from_millis(2),
            orders_queued_max: 100,
            wait_max: Duration::from_secs(3),
        }
    }

    /// A batcher whose work says how large its batch was, once a permit lets it.
    fn sizes(limits: BatchLimits, gate: &Arc<tokio::sync::Semaphore>) -> Arc<Batcher<u32, (u32, usize)>> {
        let gate = Arc::clone(gate);
        Arc::new(Batcher::start(
            limits,
            |item| *item as usize,
            move |batch: Vec<u32>| {
                let gate = Arc::clone(&gate);
                async move {
                    gate.acquire().await.unwrap().forget();
                    let size = batch.len();
                    batch.into_iter().map(|item| Ok((item, size))).collect()
                }
            },
        ))
    }

    async fn submitted(batcher: &Arc<Batcher<u32, (u32, usize)>>, items: Vec<u32>) -> Vec<(u32, usize)> {
        batcher.submit(items).await.into_iter().map(Result::unwrap).collect()
    }

    #[tokio::test]
    async fn what_arrives_during_a_batch_makes_up_the_next_ones() {
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let batcher = sizes(limits(1), &gate);
        let submit = |item| {
            let batcher = Arc::clone(&batcher);
            tokio::spawn(async move { submitted(&batcher, vec![item]).await })
        };
        let queued = || batcher.orders.max_capacity() - batcher.orders.capacity();
        let mut waiting = vec![submit(0)];
        // The first is on its way once it was queued and is no longer.
        tokio::task::yield_now().await;
        while queued() > 0 {
            tokio::task::yield_now().await;
        }
        waiting.extend((1..7).map(submit));
        while queued() < 6 {
            tokio::task::yield_now().await;
        }
        gate.add_permits(10);
        let mut answers = Vec::new();
        for task in waiting {
            answers.extend(task.await.unwrap());
        }
        assert_eq!(answers, [(0, 1), (1, 4), (2, 4), (3, 4), (4, 4), (5, 2), (6, 2)]);
    }

    #[tokio::test]
    async fn two_batches_are_served_at_the_same_time() {
        let (begun, mut beginnings) = mpsc::channel(10);
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let batcher = Arc::new(Batcher::start(limits(2), |_| 1, {
            let gate = Arc::clone(&gate);
            move |batch: Vec<u32>| {
                let (begun, gate) = (begun.clone(), Arc::clone(&gate));
                async move {
                    begun.send(batch[0]).await.unwrap();
                    gate.acquire().await.unwrap().forget();
                    batch.into_iter().map(Ok).collect::<Vec<_>>()
                }
            }
        }));
        let mut waiting = Vec::new();
        for item in [1, 2] {
            let batcher = Arc::clone(&batcher);
            waiting.push(tokio::spawn(async move { batcher.submit(vec![item]).await }));
            // Neither can end before both have begun.
            let begun = timeout(Duration::from_secs(20), beginnings.recv()).await.expect("a free worker takes it at once");
            assert_eq!(begun, Some(item));
        }
        gate.add_permits(2);
        for task in waiting {
            assert!(task.await.unwrap()[0].is_ok());
        }
    }

    /// Begins with an order that is held up at the gate, then queues one order for each of `items`.
    async fn beside_a_batch(
        limits: BatchLimits,
        items: &[u32],
        then: impl AsyncFnOnce(&tokio::sync::Semaphore),
    ) -> Vec<(u32, usize)> {
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let batcher = sizes(limits, &gate);
        let submit = |item| {
            let batcher = Arc::clone(&batcher);
            tokio::spawn(async move { submitted(&batcher, vec![item]).await })
        };
        let first = submit(0);
        while batcher.flow.batches_under_way.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        let waiting: Vec<_> = items.iter().copied().map(submit).collect();
        while batcher.flow.items_queued.load(Ordering::Relaxed) < items.len() {
            if batcher.flow.batches_under_way.load(Ordering::Relaxed) > 1 {
                break;
            }
            tokio::task::yield_now().await;
        }
        then(&gate).await;
        let mut answers = Vec::new();
        for task in waiting.into_iter().chain([first]) {
            answers.extend(task.await.unwrap());
        }
        answers
    }

    #[tokio::test]
    async fn few_orders_wait_for_the_batch_that_is_being_written() {
        let limits = BatchLimits { items_worthwhile: 4, linger_max: Duration::from_secs(3_600), ..limits(2) };
        // One permit lets the first batch go, and with its end the next one begins.
        let answers = beside_a_batch(limits, &[1, 2, 3], async |gate| gate.add_permits(2)).await;
        assert_eq!(answers, [(1, 3), (2, 3), (3, 3), (0, 1)]);
    }

    #[tokio::test]
    async fn many_orders_do_not_wait() {
        let limits = BatchLimits { items_worthwhile: 4, linger_max: Duration::from_secs(3_600), ..limits(2) };
        // Both batches are at the gate before either passes.
        let answers = beside_a_batch(limits, &[1, 2, 3, 4], async |gate| {
            tokio::task::yield_now().await;
            gate.add_permits(2);
        });
        assert_eq!(answers.await, [(1, 4), (2, 4), (3, 4), (4, 4), (0, 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_order_waits_for_long_for_a_batch_that_hangs() {
        let limits = BatchLimits { items_worthwhile: 4, ..limits(2) };
        let answers = beside_a_batch(limits, &[1, 2], async |gate| {
            tokio::time::sleep(limits.linger_max * 2).await;
            // Only one may pass, and it is one of those that came later.
            gate.add_permits(2);
        });
        assert_eq!(answers.await, [(1, 2), (2, 2), (0, 1)]);
    }

    #[tokio::test]
    async fn a_batch_is_closed_by_its_bytes() {
        let limits = BatchLimits { items_worthwhile: 100, linger_max: Duration::from_secs(3_600), ..limits(1) };
        let answers = beside_a_batch(limits, &[600, 601, 602], async |gate| gate.add_permits(3)).await;
        assert_eq!(answers, [(600, 2), (601, 2), (602, 1), (0, 1)]);
    }

    #[tokio::test]
    async fn answers_find_the_order_they_belong_to() {
        let gate = Arc::new(tokio::sync::Semaphore::new(10));
        let batcher = sizes(limits(2), &gate);
        let (first, second, none) =
            tokio::join!(submitted(&batcher, vec![1, 2]), submitted(&batcher, vec![3]), submitted(&batcher, Vec::new()),);
        let items = |answers: Vec<(u32, usize)>| answers.into_iter().map(|(item, _)| item).collect::<Vec<_>>();
        assert_eq!((items(first), items(second), items(none)), (vec![1, 2], vec![3], vec![]));
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_that_waited_too_long_is_turned_away_undone() {
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let batcher = sizes(limits(1), &gate);
        let first = tokio::spawn({
            let batcher = Arc::clone(&batcher);
            async move { submitted(&batcher, vec![1]).await }
        });
        tokio::task::yield_now().await;
        let late = tokio::spawn({
            let batcher = Arc::clone(&batcher);
            async move { batcher.submit(vec![2]).await }
        });
        tokio::task::yield_now().await;
        tokio::time::advance(Duration::from_secs(4)).await;
        gate.add_permits(2);
        assert_eq!(first.await.unwrap(), [(1, 1)]);
        let refused = late.await.unwrap();
        assert!(matches!(refused.as_slice(), [Err(StoreError::Unavailable(_))]), "{refused:?}");
    }

    #[tokio::test]
    async fn a_caller_that_goes_away_before_the_queue_takes_it_leaves_nothing_behind() {
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let batcher = sizes(BatchLimits { orders_queued_max: 1, ..limits(1) }, &gate);
        let submit = |item| {
            let batcher = Arc::clone(&batcher);
            tokio::spawn(async move { submitted(&batcher, vec![item]).await })
        };
        let written = submit(1);
        while batcher.flow.batches_under_way.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        let queued = submit(2);
        while batcher.orders.capacity() > 0 {
            tokio::task::yield_now().await;
        }
        tokio::select! {
            biased;
            _ = batcher.submit(vec![3, 4]) => panic!("the queue is full"),
            () = std::future::ready(()) => {}
        }
        assert_eq!(batcher.flow.items_queued.load(Ordering::Relaxed), 1);
        gate.add_permits(2);
        assert_eq!((written.await.unwrap(), queued.await.unwrap()), (vec![(1, 1)], vec![(2, 1)]));
    }

    #[tokio::test]
    async fn an_order_is_done_even_if_its_caller_goes_away() {
        let (done, mut seen) = mpsc::channel(1);
        let batcher = Batcher::start(
            limits(1),
            |_| 1,
            move |batch: Vec<u32>| {
                let done = done.clone();
                async move {
                    done.send(batch.len()).await.unwrap();
                    batch.into_iter().map(Ok).collect::<Vec<_>>()
                }
            },
        );
        tokio::select! {
            biased;
            _ = batcher.submit(vec![1]) => panic!("nothing was written yet"),
            () = std::future::ready(()) => {}
        }
        assert_eq!(seen.recv().await, Some(1));
    }
}
