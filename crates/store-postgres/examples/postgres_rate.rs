//! How many timers a second go through this store, on a server of its own on this machine:
//! `cargo run --release -p store-postgres --example postgres_rate -- [timers]`.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement, run by hand")]

use std::{sync::Arc, time::Duration};

use domain::{Attempt, Clock, NewTimer, Next, Shard, Span, Status, SystemClock, TimerId};
use futures_util::{StreamExt, stream};
use store::{Claim, ClaimToken, Claimed, DueEntry, Filter, Member, NodeId, Settlement, ShardCursor, Store, Tenure};
use store_conformance::{NOW, timer};
use store_postgres::{PostgresOptions, PostgresStore};

const BATCH: usize = 1_024;
/// As many as a caller asks for at once.
const BULK: usize = 1_000;
/// Due times lie within this many seconds.
const SPREAD_SECONDS: u64 = 3_600;

fn new_timer(number: usize) -> NewTimer {
    let payload = format!(r#"{{"number":{number},"padding":"{}"}}"#, "x".repeat(520));
    // Spread as a hash would, so that neighbours in time are no neighbours in order of creation.
    let seconds = u32::try_from((number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).unwrap();
    let due = Span::from_secs(seconds % u32::try_from(SPREAD_SECONDS).unwrap());
    let now = NOW.saturating_add(Span::from_micros(u32::try_from(number).unwrap()));
    timer("http://a.example/hook").with_id(TimerId::random(now)).payload(&payload).due_in(due).created_at(now).build()
}

const LEASE: Span = Span::from_secs(3_600);
/// How many heartbeats and nudges are measured.
const SIGNS: usize = 1_000;

struct Rates {
    clock: SystemClock,
    url: String,
    store: Arc<PostgresStore>,
}

impl Rates {
    async fn measure<T>(&self, what: &str, count: usize, work: impl Future<Output = T>) -> T {
        let before = self.clock.steady();
        let answer = work.await;
        let took = self.clock.steady() - before;
        println!("{what:<44} {:>9.0} /s   {:>7.1} us each", count as f64 / took.as_secs_f64(), micros(took) / count as f64);
        answer
    }

    async fn create(&self, timers: Vec<Vec<NewTimer>>, callers: usize) {
        stream::iter(timers).for_each_concurrent(callers, |batch| async { drop(self.store.create(batch).await.unwrap()) }).await;
    }

    async fn claim(&self, due: &[DueEntry], tenures: &[Tenure]) -> Vec<Claimed> {
        stream::iter(due.chunks(BATCH).zip(1..))
            .map(|(entries, token)| async move {
                let claim = Claim { token: ClaimToken(token), tenures: tenures.to_vec(), lease: Span::from_secs(600) };
                self.store.claim(&claim, entries).await.unwrap()
            })
            .buffer_unordered(2)
            .concat()
            .await
    }

    async fn settle(&self, claimed: &[Claimed], next: &Next, attempt: Option<&Attempt>) {
        stream::iter(claimed.chunks(BATCH))
            .for_each_concurrent(2, |batch| async move {
                let settled = |claimed: &Claimed| Settlement { attempt: attempt.cloned(), ..claimed.settle(next.clone()) };
                let settlements: Vec<_> = batch.iter().map(settled).collect();
                assert!(self.store.settle(&settlements).await.unwrap().into_iter().all(|counted| counted));
            })
            .await;
    }

    /// What nodes say to one another all the time.
    async fn coordinate(&self, member: &Member) {
        let heartbeats = stream::iter(0..SIGNS).for_each(|_| async { drop(self.store.heartbeat(member, LEASE).await.unwrap()) });
        self.measure("heartbeat, one after the other", SIGNS, heartbeats).await;
        let other = PostgresStore::connect(&PostgresOptions::Url(self.url.clone())).await.unwrap();
        let entry = |number: usize| {
            let NewTimer { definition, execute_at, .. } = new_timer(number);
            DueEntry { at: execute_at, id: definition.id, destination: definition.callback.destination() }
        };
        let entries: Vec<_> = (0..SIGNS).map(entry).collect();
        // The first ones may be said before the other one listens.
        loop {
            self.store.nudge(&entries[..1]).await.unwrap();
            if tokio::time::timeout(Duration::from_millis(100), other.nudged()).await.is_ok() {
                break;
            }
        }
        let nudges = stream::iter(&entries).for_each(|entry| async move { self.store.nudge(&[*entry]).await.unwrap() });
        self.measure("nudge, one after the other", SIGNS, nudges).await;
        while other.nudged().await.unwrap() != entries[SIGNS - 1..] {}
        let other = &other;
        let echoes = stream::iter(&entries).for_each(|entry| async move {
            self.store.nudge(&[*entry]).await.unwrap();
            assert_eq!(other.nudged().await.unwrap(), [*entry]);
        });
        self.measure("nudge and hear it elsewhere", SIGNS, echoes).await;
        other.close().await;
        let looks = stream::iter(0..SIGNS).for_each(|_| async { drop(self.store.cluster().await.unwrap()) });
        self.measure("cluster, one after the other", SIGNS, looks).await;
    }

    /// All pending timers, by id.
    async fn pending(&self) -> Vec<TimerId> {
        let filter = Filter { status: Some(Status::Pending), ..Filter::default() };
        let mut found: Vec<TimerId> = Vec::new();
        loop {
            let page = self.store.matching(&filter, found.last().copied(), BULK).await.unwrap();
            found.extend(page.iter().map(|found| found.id));
            if page.len() < BULK {
                return found;
            }
        }
    }

    async fn due(&self) -> Vec<DueEntry> {
        let from: Vec<_> = (0..self.store.shards()).map(|shard| ShardCursor { shard: Shard(shard), after: None }).collect();
        let mut due = self.store.due(&from, domain::Timestamp::MAX, 1_000_000).await.unwrap();
        due.sort_unstable();
        due
    }
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[tokio::main]
async fn main() {
    let count = std::env::args().nth(1).map_or(100_000, |text| text.parse().unwrap());
    let server = throwaway::Postgres::start();
    let url = server.create_database();
    let store = PostgresStore::connect(&PostgresOptions::Url(url.clone())).await.unwrap();
    store.migrate().await.unwrap();
    let rates = Rates { clock: SystemClock::default(), url: url.clone(), store: Arc::new(store) };
    let shards: Vec<_> = (0..rates.store.shards()).map(Shard).collect();
    let member = Member { name: "host-1.example:8080".to_owned(), ..Member::new(NodeId(1)) };
    rates.store.heartbeat(&member, LEASE).await.unwrap();
    let tenures = rates.store.acquire(member.node, &shards).await.unwrap();
    rates.coordinate(&member).await;

    let mut number = 0;
    let mut prepared = |orders: usize, size: usize| -> Vec<Vec<NewTimer>> {
        let mut order = || {
            (0..size)
                .map(|_| {
                    number += 1;
                    new_timer(number)
                })
                .collect()
        };
        (0..orders).map(|_| order()).collect()
    };
    for callers in [1, 64, 256] {
        let orders = count / if callers == 1 { 20 } else { 2 };
        let timers = prepared(orders, 1);
        rates.measure(&format!("create, one each by {callers} callers"), orders, rates.create(timers, callers)).await;
    }
    let timers = prepared(count / BATCH, BATCH);
    rates.measure("create, 1024 each by 2 callers", count / BATCH * BATCH, rates.create(timers, 2)).await;

    let due = rates.measure("due, everything at once", count, rates.due()).await;
    println!("{:<44} {:>9}", "  pending", due.len());
    let claimed = rates.measure("claim, 1024 each by 2", due.len(), rates.claim(&due, &tenures)).await;
    assert_eq!(claimed.len(), due.len());
    let (some, most) = claimed.split_at(claimed.len() / 4);
    let (remembered, most) = most.split_at(most.len() / 3);
    let later = NOW.saturating_add(Span::from_secs(7_200));
    let retry = Next::Pending { at: later, attempt: 1, error: Some("HTTP 503".to_owned()) };
    let attempt = Attempt {
        number: 1,
        started_at: NOW,
        took: Span::from_millis(12),
        outcome: "status_5xx".to_owned(),
        status: Some(503),
        detail: Some("out of stock".to_owned()),
    };
    rates.measure("settle pending, 1024 each by 2", some.len(), rates.settle(some, &retry, None)).await;
    let settled = rates.settle(remembered, &retry, Some(&attempt));
    rates.measure("settle pending with attempt, 1024 each by 2", remembered.len(), settled).await;
    let completed = Next::Completed { at: NOW };
    rates.measure("settle completed, 1024 each by 2", most.len(), rates.settle(most, &completed, None)).await;
    let ids: Vec<_> = claimed.iter().take(count / 10).map(|claimed| claimed.entry.id).collect();
    let gets = stream::iter(&ids).for_each_concurrent(64, |id| async { drop(rates.store.get(*id).await.unwrap()) });
    rates.measure("get by 64", ids.len(), gets).await;
    let cancels = stream::iter(&ids).for_each_concurrent(64, |id| async { drop(rates.store.cancel(*id, NOW).await.unwrap()) });
    rates.measure("cancel by 64", ids.len(), cancels).await;
    let pending = rates.pending().await;
    rates.measure("find pending, 1000 each by 1", pending.len(), rates.pending()).await;
    let cancels = stream::iter(pending.chunks(BULK)).for_each_concurrent(2, |ids| async {
        assert!(rates.store.cancel_all(ids, NOW).await.unwrap().into_iter().all(|canceled| canceled));
    });
    rates.measure("cancel, 1000 each by 2", pending.len(), cancels).await;
    let purged = rates.measure("purge, 10000 at once", 10_000, rates.store.purge(domain::Timestamp::MAX, 10_000)).await;
    println!("{:<44} {:>9}", "  purged", purged.unwrap());
    let hot = "SELECT n_tup_upd, n_tup_hot_upd, pg_size_pretty(pg_total_relation_size('due')) FROM pg_stat_user_tables
               WHERE relname = 'due'";
    rates.store.close().await;
    println!("updates of due | on their page | size: {}", server.query(&url, hot));
}
