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
