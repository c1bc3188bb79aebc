//! A session that stops in the middle of a change holds a row, and only calls that want that very row may notice.

use std::{sync::Arc, time::Duration};

use domain::{NewTimer, OnConflict, TimerId};
use sqlx::{Connection, Executor, PgConnection};
use store::{Claim, Created, DueStore, OnLocked, TimerStore};
use store_conformance::timer;
use tokio::time::timeout;

use crate::{acquire_all, claim, everything_due, open};

/// Much shorter than a session may wait for a row.
const PROMPTLY: Duration = Duration::from_secs(2);

/// A session that has locked a timer's row, and says nothing more.
pub struct Holder(PgConnection);

impl Holder {
    pub async fn of(url: &str, id: TimerId) -> Self {
        let mut session = PgConnection::connect(url).await.unwrap();
        session.execute("BEGIN").await.unwrap();
        let locked = sqlx::query("UPDATE due SET attempt = attempt WHERE id = $1").bind(id.as_uuid()).execute(&mut session).await;
        assert_eq!(locked.unwrap().rows_affected(), 1);
        Self(session)
    }

    /// Goes on with the change.
    pub async fn execute(&mut self, change: &'static str) {
        self.0.execute(change).await.unwrap();
    }

    /// Until another session waits for the row.
    pub async fn is_waited_for(&mut self) {
        let waiting = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid)";
        while !sqlx::query_scalar::<_, bool>(waiting).fetch_one(&mut self.0).await.unwrap() {
            tokio::task::yield_now().await;
        }
    }

    pub async fn commit(mut self) {
        self.0.execute("COMMIT").await.unwrap();
    }
}

fn numbered(number: u64) -> NewTimer {
    timer("http://a.example/").numbered(number).build()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_held_keeps_none_of_its_neighbours_from_firing() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    store.create((0..40).map(numbered).collect()).await.unwrap();
    let shard_leases = acquire_all(&store).await;
    let due = everything_due(&store).await;
    let holder = Holder::of(&url, due[20].id).await;

    for call in ["the first call", "the same call again"] {
        let claimed = timeout(PROMPTLY, store.claim(&claim(7, &shard_leases), &due)).await.expect(call).unwrap();
        assert_eq!(claimed.len(), 39, "{call}");
        assert!(claimed.iter().all(|claimed| claimed.attempt == 1 && claimed.entry.id != due[20].id), "{call}");
    }

    holder.commit().await;
    // What a look at the store finds afterwards.
    let left = everything_due(&store).await;
    assert_eq!(left, [due[20]]);
    let claimed = store.claim(&claim(8, &shard_leases), &left).await.unwrap();
    assert_eq!(claimed.iter().map(|claimed| (claimed.entry, claimed.attempt)).collect::<Vec<_>>(), [(due[20], 1)]);
}

/// The first call hangs between its write and its commit. A client that repeats it must not be told that it got nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_is_repeated_does_not_pass_over_what_its_first_call_holds() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    store.create((0..3).map(numbered).collect()).await.unwrap();
    let shard_leases = acquire_all(&store).await;
    let due = everything_due(&store).await;
    let mut first_call = Holder::of(&url, due[0].id).await;
    first_call
        .execute(
            "UPDATE due SET claim = 7, epoch = 1, attempt = 1, lease_until = 9000000000000000 WHERE id IN (SELECT id FROM due)",
        )
        .await;
    let repeated = Claim { on_locked: OnLocked::Fail, ..claim(7, &shard_leases) };

    let in_doubt = store.claim(&repeated, &due).await;
    assert!(in_doubt.is_err(), "{in_doubt:?}");

    first_call.commit().await;
    let claimed = store.claim(&repeated, &due).await.unwrap();
    assert!(claimed.len() == 3 && claimed.iter().all(|claimed| claimed.attempt == 1), "{claimed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn replacements_that_wait_for_a_row_hold_up_no_other_create() {
    let url = throwaway::postgres().create_database();
    let store = Arc::new(open(&url).await);
    store.create((0..4).map(numbered).collect()).await.unwrap();
    let mut holders = Vec::new();
    for number in 0..4 {
        holders.push(Holder::of(&url, numbered(number).definition.id).await);
    }
    let replacement = |number: u64| timer("http://b.example/").numbered(number).on_conflict(OnConflict::Replace).build();
    let replacing: Vec<_> = (0..4)
        .map(|number| {
            let (store, new) = (Arc::clone(&store), replacement(number));
            tokio::spawn(async move { store.create(vec![new]).await })
        })
        .collect();
    // As many as may wait at the same time.
    futures_util::future::select_all(holders.iter_mut().map(|holder| Box::pin(holder.is_waited_for()))).await;

    let others = async {
        for number in 100..120 {
            let created = store.create(vec![numbered(number)]).await.unwrap();
            assert!(matches!(created[..], [Created::Created(_)]), "{created:?}");
            assert!(store.get(numbered(number).definition.id).await.unwrap().is_some());
        }
        // A client that only asks what is there is answered as well.
        let again = store.create(vec![numbered(100)]).await.unwrap();
        assert!(matches!(again[..], [Created::Existing(_)]), "{again:?}");
    };
    timeout(PROMPTLY, others).await.expect("creates go on");

    for holder in holders {
        holder.commit().await;
    }
    for create in replacing {
        let replaced = create.await.unwrap();
        assert!(matches!(replaced.as_deref(), Ok([Created::Replaced(timer)]) if timer.revision == 2), "{replaced:?}");
    }
}
