//! A rough figure of what this store does on this machine:
//! `cargo run --release -p store-sqlite --example rate -- [timers] [pending before]`.

use std::{sync::Arc, time::Duration};

use domain::{
    Asked, Callback, CallbackUrl, Clock, Definition, Delivery, Headers, HttpCallback, JsonText, Namespace, NewTimer, Next,
    OnConflict, Protocol, Shard, Span, SystemClock, TimerId, Timestamp, limits,
};
use store::{Claim, ClaimToken, Claimed, DueEntry, NodeId, ShardCursor, Store, Tenure};
use store_sqlite::SqliteStore;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const BATCH: usize = 1000;
const CALLERS: usize = 256;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut numbers = std::env::args().skip(1).filter_map(|text| text.parse::<usize>().ok());
    let count = numbers.next().unwrap_or(20_000);
    let before = numbers.next().unwrap_or(0);
    let directory = tempfile::tempdir_in(".")?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let store = Arc::new(SqliteStore::open(directory.path().join("timers.db"), Arc::clone(&clock))?);
    let make = |number: usize| new_timer(clock.now(), number);

    if before > 0 {
        let started = clock.steady();
        for first in (0..before).step_by(BATCH) {
            store.create((first..before.min(first + BATCH)).map(make).collect::<Result<_, _>>()?).await?;
        }
        report("creates before, in batches of 1,000", before, clock.steady() - started);
    }

    let timers: Vec<NewTimer> = (0..count).map(make).collect::<Result<_, _>>()?;
    let (singles, batches) = timers.split_at(count / 2);
    let commits = store.commits();
    let started = clock.steady();
    let mut callers = tokio::task::JoinSet::new();
    for part in singles.chunks(singles.len().div_ceil(CALLERS).max(1)) {
        let (store, part) = (Arc::clone(&store), part.to_vec());
        callers.spawn(async move {
            for timer in part {
                store.create(vec![timer]).await?;
            }
            Ok::<(), Failure>(())
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended??;
    }
    report(&format!("creates, {CALLERS} callers, one by one"), singles.len(), clock.steady() - started);
    say(&format!("  in {} commits", store.commits() - commits));
    let started = clock.steady();
    for batch in batches.chunks(BATCH) {
        store.create(batch.to_vec()).await?;
    }
    report("creates, one caller, in batches of 1,000", batches.len(), clock.steady() - started);

    let tenures = store.acquire(NodeId(1), &[Shard(0)], Span::from_secs(600)).await?;
    let started = clock.steady();
    let mut entries = store.due(&[ShardCursor { shard: Shard(0), after: None }], Timestamp::MAX, usize::MAX).await?;
    report("due entries read", entries.len(), clock.steady() - started);
    entries.truncate(count);
    deliver(&store, clock.as_ref(), &tenures, &entries).await?;

    for at_a_time in [1, 64] {
        let batch: Vec<NewTimer> = (0..200 * at_a_time).map(make).collect::<Result<_, _>>()?;
        let started = clock.steady();
        for part in batch.chunks(at_a_time) {
            store.create(part.to_vec()).await?;
        }
        let each = (clock.steady() - started) / 200;
        say(&format!("one create of {at_a_time}, alone: {} us", each.as_micros()));
    }
    Ok(())
}

async fn deliver(store: &SqliteStore, clock: &dyn Clock, tenures: &[Tenure], entries: &[DueEntry]) -> Result<(), Failure> {
    let started = clock.steady();
    let mut claimed: Vec<Claimed> = Vec::new();
    for (number, batch) in (1..).zip(entries.chunks(BATCH)) {
        let claim = Claim { token: ClaimToken(number), tenures: tenures.to_vec(), lease: Span::from_secs(60) };
        claimed.extend(store.claim(&claim, batch).await?);
    }
    let claiming = clock.steady() - started;
    report("claims, in batches of 1,000", claimed.len(), claiming);
    let started = clock.steady();
    let mut settled = 0;
    for batch in claimed.chunks(BATCH) {
        let batch: Vec<_> = batch.iter().map(|claimed| claimed.settle(Next::Completed { at: clock.now() })).collect();
        settled += store.settle(&batch).await?.into_iter().filter(|counted| *counted).count();
    }
    let settling = clock.steady() - started;
    report("settlements, in batches of 1,000", settled, settling);
    report("claim + settle", settled, claiming + settling);
    Ok(())
}

/// Due at some second of the next hour, with a callback of about 600 bytes.
fn new_timer(now: Timestamp, number: usize) -> Result<NewTimer, Failure> {
    let payload = format!(r#"{{"order":{number},"note":"{}"}}"#, "x".repeat(450));
    let seconds = u32::try_from(number.wrapping_mul(2_654_435_761) % 3600)?;
    let execute_at = now.saturating_add(Span::from_secs(seconds));
    let callback = Callback::Http(HttpCallback {
        url: CallbackUrl::parse("http://127.0.0.1:9000/orders/late")?,
        headers: Headers::default(),
        payload: Some(JsonText::parse("payload", &payload, limits::PAYLOAD_BYTES_MAX)?),
        timeout: limits::CALLBACK_TIMEOUT_DEFAULT,
        protocol: Protocol::Webhook,
    });
    let definition = Definition {
        id: TimerId::random(now),
        namespace: Namespace::default(),
        key: None,
        asked: Asked::At(execute_at),
        callback,
        metadata: None,
        correlation_id: None,
        retry_policy: None,
        delivery: Delivery::AtLeastOnce,
    };
    Ok(NewTimer { definition, execute_at, on_conflict: OnConflict::Reject, created_at: now })
}

fn report(what: &str, count: usize, took: Duration) {
    say(&format!("{what}: {count} in {} ms, {:.0} a second", took.as_millis(), count as f64 / took.as_secs_f64()));
}

#[expect(clippy::print_stdout, reason = "this program is its output")]
fn say(line: &str) {
    println!("{line}");
}
