//! How fast a store is by itself, without API and calls: for tests that are ignored, and print it on an idle machine.
//!
//! As the service does it: timers without a key get ids of the shard that the store wants, several batches are under way at once,
//! what is due together lies in all shards, each timer is called once, and that attempt is recorded.

use std::future::Future;

use domain::{Attempt, Clock, Next, SystemClock, TimerId};
use futures_util::{StreamExt, stream};
use store::{Claimed, Settlement};
use tokio::time::Instant;

use crate::{Fixture, Stage, micros, millis, timer};

const BATCH: usize = 500;
const BATCHES_AT_ONCE: usize = 8;
const PAYLOAD_BYTES: usize = 300;
/// Times of neighbours are so many microseconds apart, around and around.
const STRIDE: usize = 7_919;

/// Creates, claims and settles so many timers, and says how many of each a second.
pub async fn measure(fixture: &impl Fixture, name: &str, timers: usize) -> String {
    let stage = Stage::set(fixture).await;
    // Once more: a store may place new timers in the shards that its node held at the last heartbeat.
    stage.live(stage.node).await;
    let created = per_second(timers, (0..timers.div_ceil(BATCH)).map(|number| create(&stage, number, timers))).await;

    let entries = stage.due(SystemClock::default().now()).await;
    assert_eq!(entries.len(), timers, "all of them are due");
    let claims: Vec<_> = entries.chunks(BATCH).map(|entries| stage.claim(entries)).collect();
    let (claimed, claims) = timed(timers, claims).await;
    let claimed: Vec<Claimed> = claimed.into_iter().flatten().collect();
    assert_eq!(claimed.len(), timers, "each of them is claimed");

    let settled = per_second(timers, claimed.chunks(BATCH).map(|batch| settle(&stage, batch))).await;

    let lives = 1.0 / (1.0 / created + 1.0 / claims + 1.0 / settled);
    format!(
        "{name}, {timers} timers, batches of {BATCH}, {BATCHES_AT_ONCE} at once, {} shards, per second: \
         {created:.0} creates, {claims:.0} claims, {settled:.0} settlements, {lives:.0} whole lives",
        stage.store.shards()
    )
}

async fn create(stage: &Stage, batch: usize, timers: usize) {
    let payload = format!("\"{}\"", "x".repeat(PAYLOAD_BYTES));
    let (first, shards, now) = (batch * BATCH, stage.store.shards(), SystemClock::default().now());
    let shard = stage.store.shard_for_new();
    let drafts = (first..timers.min(first + BATCH)).map(|number| {
        let id = shard.map_or_else(|| TimerId::random(now), |shard| TimerId::random_in(now, shard, shards));
        let ago = micros(u32::try_from(number * STRIDE % 1_000_000).unwrap_or_default());
        timer("http://127.0.0.1/").with_id(id).created_at(now).due_at(now.saturating_sub(ago)).payload(&payload)
    });
    stage.create_new(drafts.collect()).await;
}

fn completed(claimed: &Claimed) -> Settlement {
    let at = SystemClock::default().now();
    let attempt = Attempt {
        number: 1,
        started_at: at,
        took: millis(1),
        outcome: "delivered".to_owned(),
        status: Some(200),
        detail: None,
        node: None,
        answer: None,
    };
    Settlement { attempt: Some(attempt), ..claimed.settle(Next::Completed { at }) }
}

async fn settle(stage: &Stage, batch: &[Claimed]) {
    let batch: Vec<Settlement> = batch.iter().map(completed).collect();
    assert!(stage.store.settle(&batch).await.unwrap().iter().all(|counted| *counted), "each of them counts");
}

async fn per_second(timers: usize, work: impl IntoIterator<Item = impl Future<Output = ()>>) -> f64 {
    timed(timers, work).await.1
}

/// Some at a time.
async fn timed<T>(timers: usize, work: impl IntoIterator<Item = impl Future<Output = T>>) -> (Vec<T>, f64) {
    let begun = Instant::now();
    let done = stream::iter(work).buffer_unordered(BATCHES_AT_ONCE).collect().await;
    (done, timers as f64 / begun.elapsed().as_secs_f64())
}
