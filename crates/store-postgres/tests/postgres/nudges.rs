//! Notifications between processes, and what may come in their way.

use std::time::Duration;

use domain::Destination;
use store::{DueEntry, MembershipStore, Store, StoreError};
use store_conformance::{NOW, timer};
use tokio::time::timeout;

use crate::{open, outages::behind_a_wire};

const TIMEOUT: Duration = Duration::from_millis(100);
const PROMPTLY: Duration = Duration::from_secs(10);

fn entry(number: u64) -> DueEntry {
    DueEntry { at: NOW, id: timer("http://a.example/").numbered(number).id(), destination: Destination(number) }
}

/// Says it until it is heard, and nothing else is.
async fn heard(speaker: &impl Store, listener: &impl Store, entry: DueEntry) -> Result<(), StoreError> {
    let said = async {
        loop {
            speaker.nudge(&[entry]).await?;
            if let Ok(heard) = timeout(TIMEOUT, listener.nudged()).await
                && heard? == [entry]
            {
                return Ok(());
            }
        }
    };
    timeout(PROMPTLY, said).await.expect("it is heard")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_passed_over() {
    let url = throwaway::postgres().create_database();
    let (one, other) = (open(&url).await, open(&url).await);
    heard(&one, &other, entry(1)).await.unwrap();
    for payload in ["", "hello", "AAAA"] {
        let notify = format!("SELECT pg_notify('timer_due_' || 'shard'::regclass::oid, '{payload}')");
        throwaway::postgres().query(&url, &notify);
    }
    heard(&one, &other, entry(2)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_in_another_schema_are_another_matter() {
    let url = throwaway::postgres().create_database();
    throwaway::postgres().query(&url, "CREATE SCHEMA apart");
    let apart = format!("{url}?options[search_path]=apart");
    let (one, other) = (open(&url).await, open(&url).await);
    let (one_apart, other_apart) = (open(&apart).await, open(&apart).await);
    heard(&one, &other, entry(1)).await.unwrap();
    heard(&one_apart, &other_apart, entry(2)).await.unwrap();
    // Both listen by now; a word from elsewhere would come before the last one.
    one_apart.nudge(&[entry(3)]).await.unwrap();
    one.nudge(&[entry(4)]).await.unwrap();
    loop {
        let told = timeout(PROMPTLY, other.nudged()).await.expect("it is heard").unwrap();
        assert!(told == [entry(1)] || told == [entry(4)], "{told:?}");
        if told == [entry(4)] {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_whose_session_was_ended_listens_again() {
    let url = throwaway::postgres().create_database();
    let (one, other) = (open(&url).await, open(&url).await);
    heard(&one, &other, entry(1)).await.unwrap();
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
               WHERE datname = current_database() AND query LIKE 'LISTEN%'";
    assert_eq!(throwaway::postgres().query(&url, end), "1");
    // One call may tell of it; the next ones hear again.
    if heard(&one, &other, entry(2)).await.is_err() {
        heard(&one, &other, entry(2)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_be_reached_is_an_error_not_a_wait() {
    let (_direct, store, wire) = behind_a_wire(b"no statement says this").await;
    wire.set_silent(true);
    let waited = timeout(PROMPTLY, store.nudged()).await.expect("it ends");
    assert!(matches!(waited, Err(StoreError::Unavailable(_))), "{waited:?}");
}

/// The session that went silent never answers again, not even to be ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_listener_whose_wire_went_silent_listens_again_over_another() {
    let (direct, store, wire) = behind_a_wire(b"no statement says this").await;
    heard(&direct, &store, entry(1)).await.unwrap();
    wire.set_silent(true);
    // What was said before may still come.
    while timeout(2 * PROMPTLY, store.nudged()).await.expect("the silence is noticed").is_ok() {}
    wire.set_silent(false);
    heard(&direct, &store, entry(2)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_store_is_not_waited_for() {
    let url = throwaway::postgres().create_database();
    let store = std::sync::Arc::new(open(&url).await);
    let other = open(&url).await;
    heard(&other, &*store, entry(1)).await.unwrap();
    let waiting = tokio::spawn({
        let store = std::sync::Arc::clone(&store);
        async move {
            loop {
                // What was said before may still come.
                if let Err(error) = store.nudged().await {
                    return error;
                }
            }
        }
    });
    store.close().await;
    let error = timeout(PROMPTLY, waiting).await.expect("it ends").unwrap();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
}
