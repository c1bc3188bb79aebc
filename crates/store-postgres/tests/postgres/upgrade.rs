//! Databases that an earlier version set up.

use std::time::Duration;

use domain::{Attempt, Namespace, Next, Shard, Status, TimerId};
use sqlx::{Connection, Executor, PgConnection};
use store::{Changed, ClaimToken, DueEntry, Epoch, Filter, Settlement, Store, Tenure};
use store_conformance::{NOW, ahead, millis, secs, timer};
use tokio::time::timeout;

use crate::{acquire_all, claim, everything_due, open};

/// Much shorter than anybody waits for a lock.
const PROMPTLY: Duration = Duration::from_secs(2);

/// A database of the first version, with a timer in each status.
fn of_version_1() -> String {
    let url = throwaway::postgres().create_database();
    throwaway::postgres().query(&url, include_str!("../../migrations/0001_timers.sql"));
    throwaway::postgres().query(&url, include_str!("version_1.sql"));
    url
}

fn numbered(number: u64) -> TimerId {
    timer("http://a.example/").numbered(number).id()
}

#[tokio::test]
async fn a_database_of_version_1_is_carried_over_by_however_many_start_at_once() {
    let url = of_version_1();
    let mut opened = futures_util::future::join_all((0..8).map(|_| open(&url))).await;
    assert_eq!(throwaway::postgres().query(&url, "SELECT version FROM timer_migration ORDER BY version"), "1\n2");
    let store = opened.remove(0);
    let expected = [
        (1, Status::Pending, 0),
        (2, Status::Pending, 1),
        (3, Status::Executing, 1),
        (4, Status::Completed, 1),
        (5, Status::Failed, 3),
        (6, Status::Canceled, 0),
    ];
    for (number, status, attempt) in expected {
        let timer = store.get(numbered(number)).await.unwrap().unwrap();
        assert_eq!((timer.status, timer.attempt, timer.revision), (status, attempt, 1), "{number}");
        assert_eq!(store.attempts(numbered(number)).await.unwrap(), [], "{number}");
    }
    assert_eq!(store.keys().await.unwrap(), []);
}

#[tokio::test]
async fn timers_of_version_1_live_on() {
    let store = open(&of_version_1()).await;

    // Claimed by the version before, settled by this one.
    let attempt =
        Attempt { number: 1, started_at: NOW, took: millis(5), outcome: "timeout".to_owned(), status: None, detail: None };
    let settlement = Settlement {
        entry: DueEntry {
            at: NOW,
            id: numbered(3),
            destination: timer("http://a.example/").build().definition.callback.destination(),
        },
        tenure: Tenure { shard: Shard(3), epoch: Epoch(1) },
        token: ClaimToken(77),
        next: Next::Failed { at: NOW, error: "timeout".to_owned() },
        attempt: Some(attempt.clone()),
    };
    assert_eq!(store.settle(&[settlement]).await.unwrap(), [true]);
    assert_eq!(store.attempts(numbered(3)).await.unwrap(), [attempt]);

    let reopened = store.reopen(numbered(5), ahead(secs(1))).await.unwrap();
    assert!(matches!(&reopened, Changed::Done(timer) if timer.revision == 2 && timer.status == Status::Pending), "{reopened:?}");
    let all: Vec<_> = (1..=6).map(numbered).collect();
    assert_eq!(store.cancel_all(&all[1..], NOW).await.unwrap(), [true, false, false, true, false]);

    let filter = Filter {
        status: Some(Status::Pending),
        namespace: Some(Namespace::parse("tenant").unwrap()),
        key_prefix: Some("order-".to_owned()),
    };
    let keyed = store.matching(&filter, None, 10).await.unwrap();
    assert_eq!(keyed.len(), 1);
    let tenures = acquire_all(&store).await;
    let mut due: Vec<_> = everything_due(&store).await;
    due.sort_unstable();
    assert_eq!(due.iter().map(|entry| entry.id).collect::<Vec<_>>(), [numbered(1), keyed[0].id]);
    assert_eq!(store.claim(&claim(7, &tenures), &due).await.unwrap().len(), 2);
    assert_eq!(store.purge(ahead(secs(60)), 10).await.unwrap(), 5);
    assert_eq!(store.attempts(numbered(3)).await.unwrap(), []);
}

/// Nodes of the version before go on while this one starts: neither may wait for the other.
#[tokio::test]
async fn a_migration_waits_for_nobody_who_uses_the_tables() {
    let url = of_version_1();
    let mut earlier = PgConnection::connect(&url).await.unwrap();
    earlier
        .execute(
            "BEGIN; UPDATE definition SET revision = 2; UPDATE due SET attempt = 1; UPDATE outcome SET attempt = 2;
             UPDATE shard SET epoch = 2",
        )
        .await
        .unwrap();
    let store = timeout(PROMPTLY, open(&url)).await.expect("a migration goes through");
    earlier.execute("COMMIT").await.unwrap();
    assert_eq!(store.get(numbered(1)).await.unwrap().unwrap().revision, 2);
}
