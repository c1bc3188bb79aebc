//! What this store does on this machine, through the contract and nothing else:
//! `cargo run --release -p store-sqlite --example sqlite_speed -- [--timers n] [--pending n] [--file path]`.
//!
//! A file that is named is kept: filling in millions takes minutes, and is done only as far as there are too few.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use domain::{
    Callback, CallbackUrl, Clock, Definition, Delivery, Endpoint, HttpEndpoint, JsonText, Namespace, NewTimer, Next, OnConflict,
    Options, RequestedTime, Shard, Span, Status, SystemClock, TimerId, Timestamp, limits,
};
use store::{
    Claim, ClaimToken, Claimed, DueEntry, DueStore, Filter, ListQuery, Member, MembershipStore, NodeId, OnLocked, Order,
    ShardCursor, ShardLease, Sort, TimerStore,
};
use store_sqlite::SqliteStore;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const FILL_BATCH: usize = 1000;
const DUE_PAGE: usize = 16_384;
const DAY: u64 = 24 * HOUR;
/// What is created to be measured is due at one instant, somewhere in the minute after it, or over a day.
const INSTANT: u64 = 600 * SECOND;
const MINUTE: u64 = 660 * SECOND;
const HOUR: u64 = 3600 * SECOND;
const SECOND: u64 = 1_000_000;

struct Wanted {
    timers: usize,
    pending: usize,
    file: Option<PathBuf>,
}

fn wanted() -> Result<Wanted, Failure> {
    let mut wanted = Wanted { timers: 20_000, pending: 0, file: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--timers" => wanted.timers = value.parse()?,
            "--pending" => wanted.pending = value.parse()?,
            "--file" => wanted.file = Some(value.into()),
            _ => return Err(format!("{word} is not known").into()),
        }
    }
    Ok(wanted)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let wanted = wanted()?;
    let directory = tempfile::tempdir_in(".")?;
    let path = wanted.file.unwrap_or_else(|| directory.path().join("timers.db"));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let phase = Phase::start(clock.as_ref());
    let store = Arc::new(SqliteStore::open(&path, Arc::clone(&clock))?);
    let first_page = store.due(&[ShardCursor { shard: Shard(0), after: None }], Timestamp::MAX, DUE_PAGE).await?;
    phase.end("opened, and the first due page read", first_page.len());

    let there = store.count(&Filter { status: vec![Status::Pending], ..Filter::default() }, store::SEARCH_BUDGET).await?.timers;
    let missing = wanted.pending.saturating_sub(usize::try_from(there)?);
    if missing > 0 {
        let phase = Phase::start(clock.as_ref());
        for first in (0..missing).step_by(FILL_BATCH) {
            let one = |number| new_timer(clock.now(), number, HOUR + spread(number, DAY));
            store.create((first..missing.min(first + FILL_BATCH)).map(one).collect::<Result<_, _>>()?).await?;
        }
        phase.end("creates over 24 h, in batches of 1,000", missing);
    }

    for callers in [1, 25, 64, 256, 1024] {
        let timers = if callers == 1 { wanted.timers / 20 } else { wanted.timers };
        create(&store, &clock, callers, timers, "at one instant", |_| INSTANT).await?;
    }
    create(&store, &clock, 256, wanted.timers, "in one minute", |number| MINUTE + spread(number, 60 * SECOND)).await?;
    create(&store, &clock, 256, wanted.timers, "over 24 h", |number| HOUR + spread(number, DAY)).await?;
    look(&store, clock.as_ref()).await?;

    let member = Member::new(NodeId(1));
    store.heartbeat(&member, Span::from_secs(600)).await?;
    let shard_leases = store.acquire(member.node, &[Shard(0)]).await?;
    let entries = due(&store, clock.as_ref(), 6 * wanted.timers).await?;
    let mut parts = entries.chunks(wanted.timers);
    for batch in [64, 256, 1000, 256, 256, 256] {
        deliver(&store, clock.as_ref(), &shard_leases, parts.next().unwrap_or_default(), batch).await?;
    }
    let phase = Phase::start(clock.as_ref());
    let expired = store.expired_claims(&shard_leases, 1000).await?;
    phase.end("looked for expired claims", expired.len());
    drop(store);
    let bytes = std::fs::metadata(&path)?.len();
    say(&format!("{} MiB on disk, {} MiB resident at most", bytes >> 20, resident_max_mib()));
    Ok(())
}

async fn create(
    store: &Arc<SqliteStore>,
    clock: &Arc<dyn Clock>,
    callers: usize,
    timers: usize,
    when: &str,
    due_in: impl Fn(usize) -> u64,
) -> Result<(), Failure> {
    let mut shares: Vec<Vec<NewTimer>> = (0..callers).map(|_| Vec::new()).collect();
    let now = clock.now();
    for number in 0..timers {
        // A little later each, as if they came one after the other.
        let now = now.saturating_add(Span::from_micros_clamped(i64::try_from(number)? * 20));
        shares[number % callers].push(new_timer(now, number, due_in(number))?);
    }
    let commits = store.commits();
    let phase = Phase::start(clock.as_ref());
    let mut tasks = tokio::task::JoinSet::new();
    for share in shares {
        let store = Arc::clone(store);
        tasks.spawn(async move {
            for new in share {
                store.create(vec![new]).await?;
            }
            Ok::<(), Failure>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    phase.end(&format!("creates {when}, {callers} callers"), timers);
    say(&format!("    {:.1} a commit", timers as f64 / (store.commits() - commits) as f64));
    Ok(())
}

/// What people look at.
async fn look(store: &SqliteStore, clock: &dyn Clock) -> Result<(), Failure> {
    for status in [None, Some(Status::Pending), Some(Status::Completed), Some(Status::Failed)] {
        for namespace in [None, Some(Namespace::default())] {
            let what = |name: &str| {
                let namespace = namespace.as_ref().map_or("any", Namespace::as_str);
                format!("{name}, status {}, namespace {namespace}", status.map_or("any", Status::as_str))
            };
            let filter = Filter {
                status: status.into_iter().collect(),
                namespaces: namespace.clone().into_iter().collect(),
                ..Filter::default()
            };
            for (name, sort) in [("newest", Sort::CreatedAt), ("by execute time", Sort::ExecuteAt)] {
                let query =
                    ListQuery { filter: filter.clone(), sort, order: Order::Descending, limit: 50, ..ListQuery::default() };
                let phase = Phase::start(clock);
                let page = store.list(&query).await?;
                phase.end(&what(name), page.timers.len());
            }
            let phase = Phase::start(clock);
            let count = store.count(&filter, store::SEARCH_BUDGET).await?;
            phase.end(&what(&format!("count ({} {})", count.timers, if count.is_estimate { "about" } else { "exactly" })), 1);
        }
    }
    Ok(())
}

/// All that is due in the minute of those that were created, page by page.
async fn due(store: &SqliteStore, clock: &dyn Clock, most: usize) -> Result<Vec<DueEntry>, Failure> {
    let phase = Phase::start(clock);
    let mut after = None;
    let mut entries: Vec<DueEntry> = Vec::new();
    let mut pages = 0;
    loop {
        let page = store.due(&[ShardCursor { shard: Shard(0), after }], Timestamp::MAX, DUE_PAGE).await?;
        pages += 1;
        entries.extend(&page);
        if page.len() < DUE_PAGE || entries.len() >= most {
            break;
        }
        after = page.last().map(|last| (last.at, last.id));
    }
    phase.end(&format!("due entries read in {pages} pages"), entries.len());
    entries.truncate(most);
    Ok(entries)
}

async fn deliver(
    store: &SqliteStore,
    clock: &dyn Clock,
    shard_leases: &[ShardLease],
    entries: &[DueEntry],
    batch: usize,
) -> Result<(), Failure> {
    let phase = Phase::start(clock);
    let mut claimed: Vec<Claimed> = Vec::new();
    for (number, entries) in (1..).zip(entries.chunks(batch)) {
        let claim = Claim {
            token: ClaimToken(number),
            shard_leases: shard_leases.to_vec(),
            lease: Span::from_secs(60),
            on_locked: OnLocked::Skip,
        };
        claimed.extend(store.claim(&claim, entries).await?);
    }
    phase.end(&format!("claims, in batches of {batch}"), claimed.len());
    let phase = Phase::start(clock);
    let mut settled = 0;
    for claimed in claimed.chunks(batch) {
        let settlements: Vec<_> = claimed.iter().map(|claimed| claimed.settle(Next::Completed { at: clock.now() })).collect();
        settled += store.settle(&settlements).await?.into_iter().filter(|counted| *counted).count();
    }
    phase.end(&format!("settlements, in batches of {batch}"), settled);
    Ok(())
}

/// Any number below `limit`, the same each time.
fn spread(number: usize, limit: u64) -> u64 {
    ((number as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16) % limit
}

/// With a callback of about 600 bytes.
fn new_timer(now: Timestamp, number: usize, due_in: u64) -> Result<NewTimer, Failure> {
    let payload = format!(r#"{{"order":{number},"note":"{}"}}"#, "x".repeat(450));
    // Counted from the beginning of a minute, so that an instant is one.
    let minute = Timestamp::from_micros(now.minute() * 60_000_000);
    let execute_at = minute.saturating_add(Span::from_micros_clamped(i64::try_from(due_in)?));
    let url = CallbackUrl::parse("http://127.0.0.1:9000/orders/late")?;
    let callback = Callback {
        payload: Some(JsonText::parse("payload", &payload, limits::PAYLOAD_BYTES_MAX)?),
        ..Callback::new(Endpoint::Http(HttpEndpoint::new(url)))
    };
    let definition = Definition {
        id: TimerId::random(now),
        namespace: Namespace::default(),
        key: None,
        asked: RequestedTime::At(execute_at),
        callback,
        metadata: None,
        correlation_id: None,
        retry_policy: None,
        delivery: Delivery::AtLeastOnce,
        group: None,
        options: Options::default(),
    };
    Ok(NewTimer { definition, execute_at, on_conflict: OnConflict::Reject, created_at: now })
}

/// One thing that is measured: by the clock, and by what each kind of thread spent on it, which foreign load hardly changes.
struct Phase<'a> {
    clock: &'a dyn Clock,
    started: Duration,
    spent: BTreeMap<String, u64>,
}

impl<'a> Phase<'a> {
    fn start(clock: &'a dyn Clock) -> Self {
        Self { clock, started: clock.monotonic(), spent: threads() }
    }

    fn end(self, what: &str, count: usize) {
        let took = self.clock.monotonic() - self.started;
        let count = count.max(1);
        let rate = count as f64 / took.as_secs_f64();
        let mut line = format!("{what}: {count} in {:.1} ms, {rate:.0}/s; us each:", took.as_secs_f64() * 1e3);
        for (name, nanos) in threads() {
            let spent = nanos.saturating_sub(self.spent.get(&name).copied().unwrap_or_default());
            let each = spent as f64 / 1e3 / count as f64;
            if each >= 0.05 {
                line.push_str(&format!(" {name} {each:.2}"));
            }
        }
        say(&line);
    }
}

/// How long each kind of thread has had a core, in nanoseconds; Linux says so.
fn threads() -> BTreeMap<String, u64> {
    let mut spent = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let read = |file| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        let name = read("comm")
            .trim()
            .trim_start_matches("sqlite-")
            .trim_end_matches(|c: char| c == '-' || c.is_ascii_digit())
            .to_owned();
        *spent.entry(name).or_default() +=
            read("schedstat").split(' ').next().and_then(|nanos| nanos.parse::<u64>().ok()).unwrap_or(0);
    }
    spent
}

fn resident_max_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() >> 10
}

#[expect(clippy::print_stdout, reason = "this program is its output")]
fn say(line: &str) {
    println!("{line}");
}
