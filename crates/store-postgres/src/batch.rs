//! Natural batching: what arrives while a batch is being written makes up the next one.
//!
//! ```text
//!   submit ──▶ bounded queue ──▶ worker: takes all that is there ──▶ work(batch) ──▶ answers
//!                            └─▶ worker: the same, while the first one writes
//! ```
//!
//! Nobody waits for a batch to fill: alone, an order is written at once.

use std::{future::Future, sync::Arc, time::Duration};

use store::{StoreError, StoreResult};
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    time::{Instant, timeout},
};

#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    pub workers: usize,
    /// A batch is closed once it has this many items; the last order may bring it above.
    pub items_max: usize,
    pub orders_queued_max: usize,
    /// An order that waited longer is turned away instead of being written late.
    pub wait_max: Duration,
}

/// One caller's items, to be answered together.
struct Order<Item, Answer> {
    items: Vec<Item>,
    since: Instant,
    answer: oneshot::Sender<Vec<StoreResult<Answer>>>,
}

/// The way in. The workers end when the last one is dropped.
#[derive(Debug)]
pub struct Batcher<Item, Answer> {
    orders: mpsc::Sender<Order<Item, Answer>>,
    wait_max: Duration,
}

impl<Item: Send + 'static, Answer: Send + 'static> Batcher<Item, Answer> {
    /// `work` answers each item, in the order of the batch.
    pub fn start<Work, Working>(limits: BatchLimits, work: Work) -> Self
    where
        Work: Fn(Vec<Item>) -> Working + Send + Sync + 'static,
        Working: Future<Output = Vec<StoreResult<Answer>>> + Send,
    {
        let (orders, queue) = mpsc::channel(limits.orders_queued_max);
        let (queue, work) = (Arc::new(Mutex::new(queue)), Arc::new(work));
        for _ in 0..limits.workers {
            let (queue, work) = (Arc::clone(&queue), Arc::clone(&work));
            tokio::spawn(async move {
                loop {
                    // A statement of its own: the queue is free for the next worker before this one begins to serve.
                    let gathered = gather(&mut *queue.lock().await, &limits).await;
                    let Some(batch) = gathered else { return };
                    serve(batch, &*work).await;
                }
            });
        }
        Self { orders, wait_max: limits.wait_max }
    }

    /// Has the items done, and answers each. Once they are queued they are done even if the caller goes away.
    pub async fn submit(&self, items: Vec<Item>) -> Vec<StoreResult<Answer>> {
        let count = items.len();
        let (answer, answered) = oneshot::channel();
        let order = Order { items, since: Instant::now(), answer };
        if !timeout(self.wait_max, self.orders.send(order)).await.is_ok_and(|sent| sent.is_ok()) {
            return refused(count, || StoreError::Unavailable("too much is waiting to be written".to_owned()));
        }
        match answered.await {
            Ok(answers) => answers,
            Err(_) => refused(count, || StoreError::Unknown("the task that was to write it ended".to_owned())),
        }
    }
}

/// Waits for an order and takes what else is there. `None` when there will be no more.
async fn gather<Item, Answer>(
    queue: &mut mpsc::Receiver<Order<Item, Answer>>,
    limits: &BatchLimits,
) -> Option<Vec<Order<Item, Answer>>> {
    let mut next = queue.recv().await?;
    let mut batch = Vec::new();
    let mut items = 0;
    loop {
        if next.since.elapsed() > limits.wait_max {
            let count = next.items.len();
            drop(next.answer.send(refused(count, || StoreError::Unavailable("it waited too long to be written".to_owned()))));
        } else {
            items += next.items.len();
            batch.push(next);
        }
        if items >= limits.items_max {
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
        BatchLimits { workers, items_max: 4, orders_queued_max: 100, wait_max: Duration::from_secs(3) }
    }

    /// A batcher whose work says how large its batch was, once a permit lets it.
    fn sizes(limits: BatchLimits, gate: &Arc<tokio::sync::Semaphore>) -> Arc<Batcher<u32, (u32, usize)>> {
        let gate = Arc::clone(gate);
        Arc::new(Batcher::start(limits, move |batch: Vec<u32>| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                let size = batch.len();
                batch.into_iter().map(|item| Ok((item, size))).collect()
            }
        }))
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
        let batcher = Arc::new(Batcher::start(limits(2), {
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
    async fn an_order_is_done_even_if_its_caller_goes_away() {
        let (done, mut seen) = mpsc::channel(1);
        let batcher = Batcher::start(limits(1), move |batch: Vec<u32>| {
            let done = done.clone();
            async move {
                done.send(batch.len()).await.unwrap();
                batch.into_iter().map(Ok).collect::<Vec<_>>()
            }
        });
        tokio::select! {
            biased;
            _ = batcher.submit(vec![1]) => panic!("nothing was written yet"),
            () = std::future::ready(()) => {}
        }
        assert_eq!(seen.recv().await, Some(1));
    }
}
