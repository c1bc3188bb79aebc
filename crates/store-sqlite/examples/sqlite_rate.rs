//! A rough figure of what this store does on this machine:
//! `cargo run --release -p store-sqlite --example sqlite_rate -- [timers] [pending before]`.

use std::{sync::Arc, time::Duration};

use domain::{
    Asked, Callback, CallbackUrl, Clock, Definition, Delivery, Headers, HttpCallback, JsonText, Namespace, NewTimer, Next,
    OnConflict, Protocol, Shard, Span, SystemClock, TimerId, Timestamp, limits,
};
use store::{Claim, ClaimToken, Claimed, DueEntry, Member, NodeId, ShardCursor, Store, Tenure};
use store_sqlite::SqliteStore;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const BATCH: usize = 1000;
const CALLERS: usize = 256;
const HEARTBEATS: usize = 1000;

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
        let phase = Phase::start(clock.as_ref());
        for first in (0..before).step_by(BATCH) {
            store.create((first..before.min(first + BATCH)).map(make).collect::<Result<_, _>>()?).await?;
        }
        phase.end("creates before, in batches of 1,000", before);
    }

    let (singles, batches) = (count / 2, count - count / 2);
    let commits = store.commits();
    let phase = Phase::start(clock.as_ref());
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        let (store, clock) = (Arc::clone(&store), Arc::clone(&clock));
        callers.spawn(async move {
            for number in (caller..singles).step_by(CALLERS) {
                store.create(vec![new_timer(clock.now(), number)?]).await?;
            }
            Ok::<(), Failure>(())
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended??;
    }
    phase.end(&format!("creates, {CALLERS} callers, one by one"), singles);
    say(&format!("  in {} commits", store.commits() - commits));
    let phase = Phase::start(clock.as_ref());
    for first in (0..batches).step_by(BATCH) {
        store.create((first..batches.min(first + BATCH)).map(make).collect::<Result<_, _>>()?).await?;
    }
    phase.end("creates, one caller, in batches of 1,000", batches);

    let member = Member::new(NodeId(1));
    let (commits, phase) = (store.commits(), Phase::start(clock.as_ref()));
    for _ in 0..HEARTBEATS {
        store.heartbeat(&member, Span::from_secs(600)).await?;
    }
    phase.end("heartbeats, one after the other", HEARTBEATS);
    say(&format!("  in {} commits", store.commits() - commits));
    let tenures = store.acquire(member.node, &[Shard(0)]).await?;
    let phase = Phase::start(clock.as_ref());
    let mut entries = store.due(&[ShardCursor { shard: Shard(0), after: None }], Timestamp::MAX, usize::MAX).await?;
    phase.end("due entries read", entries.len());
    entries.truncate(count);
    deliver(&store, clock.as_ref(), &tenures, &entries).await?;

    for at_a_time in [1, 64] {
        let batch: Vec<NewTimer> = (0..200 * at_a_time).map(make).collect::<Result<_, _>>()?;
        let phase = Phase::start(clock.as_ref());
        for part in batch.chunks(at_a_time) {
            store.create(part.to_vec()).await?;
        }
        phase.end(&format!("calls of {at_a_time}, one after the other"), 200);
    }
    Ok(())
}

async fn deliver(store: &SqliteStore, clock: &dyn Clock, tenures: &[Tenure], entries: &[DueEntry]) -> Result<(), Failure> {
    let both = Phase::start(clock);
    let phase = Phase::start(clock);
    let mut claimed: Vec<Claimed> = Vec::new();
    for (number, batch) in (1..).zip(entries.chunks(BATCH)) {
        let claim = Claim { token: ClaimToken(number), tenures: tenures.to_vec(), lease: Span::from_secs(60) };
        claimed.extend(store.claim(&claim, batch).await?);
    }
    phase.end("claims, in batches of 1,000", claimed.len());
    let phase = Phase::start(clock);
    let mut settled = 0;
    for batch in claimed.chunks(BATCH) {
        let batch: Vec<_> = batch.iter().map(|claimed| claimed.settle(Next::Completed { at: clock.now() })).collect();
        settled += store.settle(&batch).await?.into_iter().filter(|counted| *counted).count();
    }
    phase.end("settlements, in batches of 1,000", settled);
    both.end("claim + settle", settled);
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

/// One thing that is measured: by the clock, and by what the writer's thread spent on it, which foreign load does not
/// change.
struct Phase<'a> {
    clock: &'a dyn Clock,
    started: Duration,
    spent: Duration,
}

impl<'a> Phase<'a> {
    fn start(clock: &'a dyn Clock) -> Self {
        Self { clock, started: clock.steady(), spent: writer_cpu() }
    }

    fn end(self, what: &str, count: usize) {
        let took = self.clock.steady() - self.started;
        let spent = writer_cpu().saturating_sub(self.spent);
        let rate = count as f64 / took.as_secs_f64();
        let each = spent.as_secs_f64() * 1e6 / count as f64;
        say(&format!("{what}: {count} in {} ms, {rate:.0} a second, {each:.1} us of the writer each", took.as_millis()));
    }
}

/// The time that the writer's thread has had a core; Linux says so.
fn writer_cpu() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let of_writer = |task: std::fs::DirEntry| {
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        let times = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        (name.trim() == "sqlite-writer").then(|| times.split(' ').next()?.parse::<u64>().ok())?
    };
    Duration::from_nanos(tasks.filter_map(of_writer).sum())
}

#[expect(clippy::print_stdout, reason = "this program is its output")]
fn say(line: &str) {
    println!("{line}");
}
