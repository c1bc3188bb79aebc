//! What one timer costs the machine, in this process and in PostgreSQL, on a server that is there already:
//! `DATABASE_URL=postgres://… cargo run --release -p store-postgres --example postgres_speed -- [timers] [phase …]`.
//!
//! The database keeps what it has: fill it first to see the cost beside many pending timers.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement, run by hand")]

use std::{fs, sync::Arc};

use domain::{Clock, NewTimer, Next, Shard, Span, SystemClock, TimerId, Timestamp};
use futures_util::{StreamExt, stream};
use sqlx::{Connection, PgConnection};
use store::{
    Claim, ClaimToken, Claimed, DueEntry, DueStore, Filter, ListQuery, Member, MembershipStore, NodeId, OnLocked, Order,
    Settlement, ShardCursor, ShardLease, Sharded, Sort, TimerStore,
};
use store_conformance::{NOW, timer};
use store_postgres::{PostgresOptions, PostgresStore};

const LEASE: Span = Span::from_secs(36_000);
/// Due times lie within this many microseconds.
const SPREAD_MICROS: u64 = 600_000_000;

fn new_timer(clock: &SystemClock, number: u64) -> NewTimer {
    let payload = format!(r#"{{"number":{number},"padding":"{}"}}"#, "x".repeat(480));
    // Spread as a hash would, so that neighbours in time are no neighbours in order of creation.
    let spread = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % SPREAD_MICROS;
    let now = clock.now();
    let due = NOW.saturating_add(Span::from_micros(u32::try_from(spread).unwrap()));
    timer("http://a.example/hook").with_id(TimerId::random(now)).payload(&payload).due_at(due).created_at(now).build()
}

fn entry(new: &NewTimer) -> DueEntry {
    DueEntry { at: new.execute_at, id: new.definition.id, destination: new.definition.destination() }
}

struct Speed {
    clock: SystemClock,
    store: Arc<PostgresStore>,
    session: PgConnection,
    postmaster: u32,
    shard_leases: Vec<ShardLease>,
    token: i64,
}

/// Processor time in ticks of 10 ms, from the fields after the name in `/proc/<pid>/stat`.
fn ticks(pid: &str, with_children: bool) -> Option<(u64, String)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat[stat.rfind(')')? + 2..].split(' ').collect();
    let sum = |range: std::ops::Range<usize>| fields[range].iter().filter_map(|field| field.parse::<u64>().ok()).sum::<u64>();
    Some((sum(11..if with_children { 15 } else { 13 }), fields[1].to_owned()))
}

impl Speed {
    fn cpu(&self) -> (u64, u64) {
        let postmaster = self.postmaster.to_string();
        let mut postgres = ticks(&postmaster, true).map_or(0, |(ticks, _)| ticks);
        for process in fs::read_dir("/proc").unwrap().flatten() {
            let name = process.file_name().into_string().unwrap();
            if name.bytes().all(|byte| byte.is_ascii_digit())
                && let Some((ticks, parent)) = ticks(&name, false)
                && parent == postmaster
            {
                postgres += ticks;
            }
        }
        (ticks("self", false).unwrap().0, postgres)
    }

    async fn wal(&mut self) -> (f64, i64, i64) {
        let sql = "SELECT (pg_current_wal_insert_lsn() - '0/0')::float8, n_tup_upd, n_tup_hot_upd
                   FROM pg_stat_user_tables WHERE relname = 'due'";
        sqlx::query_as(sql).fetch_one(&mut self.session).await.unwrap()
    }

    async fn measure<T>(&mut self, what: &str, count: usize, work: impl AsyncFnOnce(&PostgresStore) -> T) -> T {
        let wal = self.wal().await;
        let (own, postgres) = self.cpu();
        let before = self.clock.monotonic();
        let answer = work(&self.store).await;
        let took = (self.clock.monotonic() - before).as_secs_f64();
        let (own, postgres) = (self.cpu().0 - own, self.cpu().1 - postgres);
        let after = self.wal().await;
        let each = |ticks: u64| ticks as f64 * 10_000.0 / count as f64;
        println!(
            "{what:<28} {:>8.0} /s  {:>6.1} us = own {:>5.1} + pg {:>5.1}   wal {:>6.0} B  hot {}/{}",
            count as f64 / took,
            each(own + postgres),
            each(own),
            each(postgres),
            (after.0 - wal.0) / count as f64,
            after.2 - wal.2,
            after.1 - wal.1
        );
        answer
    }

    async fn create(&mut self, count: usize, size: usize, callers: usize) -> Vec<DueEntry> {
        let clock = &self.clock;
        let timers: Vec<NewTimer> = (0..count).map(|number| new_timer(clock, number as u64)).collect();
        let entries = timers.iter().map(entry).collect();
        let mut timers = timers.into_iter();
        let batches: Vec<Vec<NewTimer>> = (0..count / size).map(|_| timers.by_ref().take(size).collect()).collect();
        let name = format!("create {size} x {callers}");
        self.measure(&name, count, async |store| {
            let mut batches = batches.into_iter();
            let queues: Vec<Vec<_>> = (0..callers).map(|_| batches.by_ref().take(count / size / callers).collect()).collect();
            let store = &store;
            stream::iter(queues)
                .for_each_concurrent(None, |queue| async move {
                    for batch in queue {
                        drop(store.create(batch).await.unwrap());
                    }
                })
                .await;
        })
        .await;
        entries
    }

    async fn claim(&mut self, entries: &[DueEntry], size: usize, at_once: usize) -> Vec<Claimed> {
        let (shard_leases, first) = (self.shard_leases.clone(), self.token);
        self.token += entries.len() as i64;
        let claimed = self
            .measure(&format!("claim {size} x {at_once}"), entries.len(), async |store| {
                stream::iter(entries.chunks(size).zip(first..))
                    .map(|(entries, token)| {
                        let claim = Claim {
                            token: ClaimToken(token),
                            shard_leases: shard_leases.clone(),
                            lease: LEASE,
                            on_locked: OnLocked::Skip,
                        };
                        async move { store.claim(&claim, entries).await.unwrap() }
                    })
                    .buffer_unordered(at_once)
                    .concat()
                    .await
            })
            .await;
        assert_eq!(claimed.len(), entries.len());
        claimed
    }

    async fn settle(&mut self, claimed: &[Claimed], size: usize, at_once: usize) {
        self.measure(&format!("settle {size} x {at_once}"), claimed.len(), async |store| {
            stream::iter(claimed.chunks(size))
                .for_each_concurrent(at_once, |batch| async move {
                    let settlements: Vec<Settlement> =
                        batch.iter().map(|claimed| claimed.settle(Next::Completed { at: NOW })).collect();
                    assert!(store.settle(&settlements).await.unwrap().into_iter().all(|counted| counted));
                })
                .await;
        })
        .await;
    }

    /// Everything that is due in the spread, read in pages as the scheduler does.
    async fn due(&mut self, until: Timestamp, limit: usize) -> Vec<DueEntry> {
        let shards = self.store.shards();
        let from: Vec<_> = (0..shards).map(|shard| ShardCursor { shard: Shard(shard), after: None }).collect();
        let started = self.clock.monotonic();
        let all = self
            .measure("due, all of it", 1, async |store| {
                let (mut all, mut from) = (Vec::new(), from);
                while !from.is_empty() {
                    let page = store.due(&from, until, limit).await.unwrap();
                    from = from
                        .into_iter()
                        .filter_map(|cursor| {
                            let of_shard: Vec<_> = page.iter().filter(|entry| entry.id.shard(shards) == cursor.shard).collect();
                            let last = of_shard.last().filter(|_| of_shard.len() == limit)?;
                            Some(ShardCursor { shard: cursor.shard, after: Some((last.at, last.id)) })
                        })
                        .collect();
                    all.extend(page);
                }
                all
            })
            .await;
        println!("due in pages of {limit}: {} in {:?}", all.len(), self.clock.monotonic() - started);
        all
    }
}

#[tokio::main]
async fn main() {
    let url = std::env::var("DATABASE_URL").unwrap();
    let count: usize = std::env::args().nth(1).map_or(20_000, |text| text.parse().unwrap());
    let phases: Vec<String> = std::env::args().skip(2).collect();
    let is_wanted = |phase: &str| phases.is_empty() || phases.iter().any(|wanted| wanted == phase);
    let clock = SystemClock::default();
    let started = clock.monotonic();
    let store = Arc::new(PostgresStore::connect(&PostgresOptions::Url(url.clone())).await.unwrap());
    store.migrate().await.unwrap();
    let shards: Vec<_> = (0..store.shards()).map(Shard).collect();
    let member = Member::new(NodeId(1));
    store.heartbeat(&member, LEASE).await.unwrap();
    let shard_leases = store.acquire(member.node, &shards).await.unwrap();
    let from: Vec<_> = shards.iter().map(|shard| ShardCursor { shard: *shard, after: None }).collect();
    let first = store.due(&from, NOW.saturating_add(Span::from_secs(60)), 256).await.unwrap();
    println!("start to first page ({} entries): {:?}", first.len(), clock.monotonic() - started);

    let mut session = PgConnection::connect(&url).await.unwrap();
    let data: String = sqlx::query_scalar("SHOW data_directory").fetch_one(&mut session).await.unwrap();
    let postmaster = fs::read_to_string(format!("{data}/postmaster.pid")).unwrap().lines().next().unwrap().parse().unwrap();
    let token = clock.now().as_micros();
    let mut speed = Speed { clock, store, session, postmaster, shard_leases, token };

    let mut entries = Vec::new();
    for (size, callers) in [(1, 64), (1, 256), (500, 4)] {
        if is_wanted("create") || is_wanted(&format!("c{callers}")) {
            entries.extend(speed.create(count, size, callers).await);
        }
    }
    if is_wanted("claim") {
        entries.sort_unstable();
        let third = entries.len().div_ceil(3);
        for (chunk, size) in entries.chunks(third).zip([64, 256, 1024]) {
            let claimed = speed.claim(chunk, size, 2).await;
            speed.settle(&claimed, size, 2).await;
        }
    }
    if is_wanted("old") {
        // Those that were pending before: created long ago, each on a page of its own.
        let old = speed.due(NOW.saturating_add(Span::from_secs(400)), 256).await;
        let old = &old[..old.len().min(count)];
        let claimed = speed.claim(old, 256, 2).await;
        speed.settle(&claimed, 256, 2).await;
    }
    if is_wanted("count") {
        let clock = &speed.clock;
        let pending = Some(domain::Status::Pending);
        for (namespace, status) in [(None, None), (Some("tenant"), None), (None, pending), (Some("tenant"), pending)] {
            let filter = Filter {
                status: status.into_iter().collect(),
                namespaces: namespace.map(|text| domain::Namespace::parse(text).unwrap()).into_iter().collect(),
                ..Filter::default()
            };
            let started = clock.monotonic();
            let counted = speed.store.count(&filter, store::SEARCH_BUDGET).await;
            println!("count {namespace:?} {status:?}: {counted:?} in {:?}", clock.monotonic() - started);
            for sort in [Sort::CreatedAt, Sort::ExecuteAt] {
                let query =
                    ListQuery { filter: filter.clone(), sort, order: Order::Descending, limit: 50, ..ListQuery::default() };
                let started = clock.monotonic();
                let listed = speed.store.list(&query).await.map(|page| page.timers.len());
                println!("list {namespace:?} {status:?} {sort:?}: {listed:?} in {:?}", clock.monotonic() - started);
            }
        }
    }
    speed.store.close().await;
}
