//! Servers that stop, answers that get lost, wires that go dead.

use std::time::Duration;

use domain::{NewTimer, Next, Span, TimerId};
use store::{Changed, Created, DueStore, HealthStore, MembershipStore, NodeId, StoreError, TimerStore};
use store_conformance::{NOW, timer};
use store_postgres::PostgresStore;
use tokio::time::timeout;

use crate::{acquire_all, claim, everything_due, open, proxy::Proxy};

/// Longer than any call may take.
const TIMEOUT: Duration = Duration::from_secs(20);

fn port_of(url: &str) -> u16 {
    url.rsplit_once(':').unwrap().1.split('/').next().unwrap().parse().unwrap()
}

fn plain(number: u64) -> NewTimer {
    timer("http://a.example/").numbered(number).build()
}

/// Asks until the store answers again; it must, by itself.
async fn recovered(store: &PostgresStore) {
    timeout(TIMEOUT, async { while store.ping().await.is_err() {} }).await.expect("the store works again");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_fail_while_the_server_is_down_and_work_again_afterwards() {
    let postgres = throwaway::Postgres::start();
    let store = open(&postgres.create_database()).await;
    store.create(vec![plain(1)]).await.unwrap();
    let shard_leases = acquire_all(&store).await;
    let due = everything_due(&store).await;

    postgres.stop_immediate();
    let read = timeout(TIMEOUT, store.get(plain(1).definition.id)).await.expect("a call ends");
    assert!(matches!(read, Err(StoreError::Unavailable(_))), "a read changes nothing: {read:?}");
    let written = timeout(TIMEOUT, store.create(vec![plain(2)])).await.expect("a call ends");
    assert!(matches!(written, Err(StoreError::Unavailable(_))), "the dead session was noticed by the read: {written:?}");
    // This bulkhead has not noticed yet: it may have to say that it does not know.
    let claimed = timeout(TIMEOUT, store.claim(&claim(7, &shard_leases), &due)).await.expect("a call ends");
    assert!(matches!(claimed, Err(StoreError::Unavailable(_) | StoreError::Unknown(_))), "{claimed:?}");
    let again = timeout(TIMEOUT, store.claim(&claim(7, &shard_leases), &due)).await.expect("a call ends");
    assert!(matches!(again, Err(StoreError::Unavailable(_))), "{again:?}");

    postgres.start_again();
    recovered(&store).await;
    let created = store.create(vec![plain(2)]).await.unwrap();
    assert!(matches!(created[..], [Created::Created(_)]), "{created:?}");
    let claimed = store.claim(&claim(7, &shard_leases), &due).await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].attempt, 1);
}

/// All the sessions of a pool come back, whatever became of the calls that held them.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_under_load_costs_no_session() {
    let postgres = throwaway::Postgres::start();
    let url = postgres.create_database();
    let store = std::sync::Arc::new(open(&url).await);
    let load: Vec<_> = (0..32_u64)
        .map(|bulkhead| {
            let store = std::sync::Arc::clone(&store);
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                for number in 0..400 {
                    let new = plain(bulkhead << 16 | number);
                    let id = new.definition.id;
                    if store.create(vec![new]).await.is_ok() {
                        acknowledged.push(id);
                    }
                    drop(store.get(id).await);
                    if acknowledged.len() > 10 && acknowledged.len() as u64 <= number {
                        break;
                    }
                }
                acknowledged
            })
        })
        .collect();
    while postgres.query(&url, "SELECT count(*) > 300 FROM definition") != "t" {
        tokio::task::yield_now().await;
    }
    postgres.stop_immediate();
    postgres.start_again();
    recovered(&store).await;
    for bulkhead in load {
        for id in timeout(TIMEOUT, bulkhead).await.expect("calls end").unwrap() {
            assert!(store.get(id).await.unwrap().is_some(), "{id} was acknowledged");
        }
    }
    // More at once than there are sessions: each must find one.
    let gets = (0..100).map(|number| store.get(plain(number).definition.id));
    for got in futures_util::future::join_all(gets).await {
        got.unwrap();
    }
}

/// A store that speaks to its database directly, and another that does so through the proxy.
pub async fn behind_a_wire(marker: &'static [u8]) -> (PostgresStore, PostgresStore, Proxy) {
    let url = throwaway::postgres().create_database();
    let direct = open(&url).await;
    let port = port_of(&url);
    let proxy = Proxy::start(port, marker).await;
    let behind = open(&url.replace(&format!(":{port}/"), &format!(":{}/", proxy.port))).await;
    (direct, behind, proxy)
}

/// Makes each session of the bulkhead know the statement, so that the next time it is said at once.
async fn warm_up(store: &PostgresStore) {
    for round in 0..20 {
        let creates = (0..8).map(|number| store.create(vec![plain(1_000_000 + round * 8 + number)]));
        for created in futures_util::future::join_all(creates).await {
            created.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_whose_answer_is_lost_is_unknown_and_there() {
    let (direct, behind, proxy) = behind_a_wire(b"the-answer-gets-lost").await;
    warm_up(&behind).await;
    let new = timer("http://a.example/the-answer-gets-lost").build();
    let id = new.definition.id;
    let mut written = timeout(TIMEOUT, behind.create(vec![new.clone()])).await.expect("a call ends");
    // A session that has to prepare the statement first says the marker only afterwards, so the cut always meets the statement.
    assert!(matches!(written, Err(StoreError::Unknown(_))), "{written:?}");
    assert_eq!(proxy.cuts(), 1);
    let found = direct.get(id).await.unwrap();
    assert!(found.is_some(), "the server had taken it");
    // Reading it back is registering it again.
    written = direct.create(vec![new]).await;
    assert!(matches!(written.as_deref(), Ok([Created::Existing(_)])), "{written:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_answer_is_lost_is_read_back_with_its_token() {
    // The token in the binary form in which it is sent.
    const TOKEN: i64 = 0x5eed_1234_5678_9abc;
    const MARKER: &[u8] = &TOKEN.to_be_bytes();
    let (direct, behind, proxy) = behind_a_wire(MARKER).await;
    direct.create(vec![plain(1)]).await.unwrap();
    let shard_leases = acquire_all(&direct).await;
    let due = everything_due(&direct).await;

    let lost = timeout(TIMEOUT, behind.claim(&claim(TOKEN, &shard_leases), &due)).await.expect("a call ends");
    assert!(matches!(lost, Err(StoreError::Unknown(_))), "{lost:?}");
    assert_eq!(proxy.cuts(), 1);

    let read_back = direct.claim(&claim(TOKEN, &shard_leases), &due).await.unwrap();
    assert_eq!(read_back.len(), 1);
    assert_eq!(read_back[0].attempt, 1, "the attempt counts once");
    assert!(direct.claim(&claim(TOKEN + 1, &shard_leases), &due).await.unwrap().is_empty(), "it was claimed");
    let settled = direct.settle(&[read_back[0].settle(Next::Completed { at: NOW })]).await.unwrap();
    assert_eq!(settled, [true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_cancel_whose_answer_is_lost_is_unknown_and_done() {
    // The last bytes of an id in the binary form in which it is sent.
    const NUMBER: u64 = 0x5eed_1234_5678;
    const MARKER: &[u8] = &[0x5e, 0xed, 0x12, 0x34, 0x56, 0x78];
    let (direct, behind, proxy) = behind_a_wire(MARKER).await;
    let numbers = [1, NUMBER, 2];
    direct.create(numbers.into_iter().map(plain).collect()).await.unwrap();
    let ids = numbers.map(|number| plain(number).definition.id);

    let lost = timeout(TIMEOUT, behind.cancel_all(&ids, NOW)).await.expect("a call ends");
    assert!(matches!(lost, Err(StoreError::Unknown(_))), "{lost:?}");
    assert_eq!(proxy.cuts(), 1);
    for id in ids {
        assert_eq!(direct.get(id).await.unwrap().unwrap().status, domain::Status::Canceled);
    }
    assert_eq!(direct.cancel_all(&ids, NOW).await.unwrap(), [false; 3], "they are canceled once");
}

/// The half-open link: nothing comes, nothing ends. Calls end all the same, and once the wire is whole again, so do all sessions.
#[tokio::test(flavor = "multi_thread")]
async fn a_wire_that_goes_dead_costs_no_more_than_the_deadline() {
    let (_direct, behind, proxy) = behind_a_wire(b"never said").await;
    warm_up(&behind).await;
    let ids: Vec<TimerId> = (0..10).map(|number| plain(number).definition.id).collect();
    proxy.set_silent(true);
    let calls = futures_util::future::join_all(ids.iter().map(|id| behind.get(*id)));
    for answer in timeout(TIMEOUT, calls).await.expect("calls end") {
        assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    }
    let written = timeout(TIMEOUT, behind.cancel(ids[0], None, NOW)).await.expect("a call ends");
    assert!(written.is_err(), "{written:?}");
    proxy.set_silent(false);
    recovered(&behind).await;
    let calls = (0..100).map(|number| behind.get(plain(number).definition.id));
    for answer in timeout(TIMEOUT, futures_util::future::join_all(calls)).await.expect("calls end") {
        answer.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_are_ended_by_the_server_are_replaced() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    store.create(vec![plain(1)]).await.unwrap();
    let end_all = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
    for number in 2..20 {
        throwaway::postgres().query(&url, end_all);
        // The first call may meet a dead session, and says so; then the store works again.
        let created = store.create(vec![plain(number)]).await;
        assert!(matches!(created, Ok(_) | Err(StoreError::Unknown(_) | StoreError::Unavailable(_))), "{created:?}");
        recovered(&store).await;
        store.create(vec![plain(number)]).await.unwrap();
    }
}

/// A caller who goes away in the middle leaves nothing open behind: no transaction, no lock.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_goes_away_leaves_no_open_transaction() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    let created = store.create((0..50).map(plain).collect()).await.unwrap();
    let mut given_up = 0;
    for round in 0..400_u64 {
        let timer = created[usize::try_from(round % 50).unwrap()].timer();
        // Leaves earlier or later on the way; the runtime's own timers are too coarse for that.
        let leave = async {
            for _ in 0..round * 4 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            _ = store.update(timer, NOW) => {}
            () = leave => given_up += 1,
        }
    }
    assert!(given_up > 20, "{given_up} of 400 updates were given up");
    // Whatever was under way ends by itself, well within a second.
    let open_ones = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'";
    timeout(Duration::from_secs(1), async {
        while throwaway::postgres().query(&url, open_ones) != "0" {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("no transaction stays open");
    for created in &created {
        let met = store.get(created.timer().id()).await.unwrap().unwrap();
        let updated = store.update(&met, NOW).await.unwrap();
        assert!(matches!(updated, Changed::Done(_)), "{updated:?}");
    }
}

#[tokio::test]
async fn a_database_that_may_not_be_written_says_so() {
    let url = throwaway::postgres().create_database();
    open(&url).await;
    let store = open(&format!("{url}?options[default_transaction_read_only]=on")).await;
    let refused = store.create(vec![plain(1)]).await;
    assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
    let refused = store.heartbeat(&store::Member::new(NodeId(1)), Span::from_secs(1)).await;
    assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
    assert!(store.get(plain(1).definition.id).await.unwrap().is_none(), "reading goes on");
}
