//! Servers that are away, hang, or come back.

use std::{io::Write, time::Duration};

use throwaway::{Nats, free_port};
use tokio::time::{Instant, timeout};

use super::rig::*;
use crate::{CONFIRMED_WITHIN, Connection, PublishError};

const AT_ONCE: Duration = Duration::from_secs(1);
const SLACK: Duration = Duration::from_secs(2);

async fn publish(connection: &Connection) -> Result<(), PublishError> {
    connection.publish(message("outage.core", "")).await
}

async fn store(connection: &Connection) -> Result<(), PublishError> {
    connection.publish_to_stream(message("outage.stream", ""), "1").await.map(drop)
}

#[test]
fn without_a_server_publishing_fails_at_once() {
    on_both_runtimes(|| async {
        let connection = start(&format!("nats://127.0.0.1:{}", free_port()));
        connection.client().await;
        let started = Instant::now();
        for _ in 0..100 {
            assert_eq!(publish(&connection).await, Err(PublishError::NotConnected));
            assert_eq!(store(&connection).await, Err(PublishError::NotConnected));
        }
        assert!(!connection.is_connected());
        assert!(started.elapsed() < AT_ONCE);
    });
}

#[test]
fn right_after_the_start_the_first_attempt_to_connect_is_waited_for() {
    on_both_runtimes(|| async {
        let nats = throwaway::nats();
        for _ in 0..20 {
            let connection = start(&nats.url());
            assert_eq!(publish(&connection).await, Ok(()));
        }
        let no_stream = Err(PublishError::NoStream { subject: "outage.stream".to_owned() });
        assert_eq!(store(&start(&nats.url())).await, no_stream);
    });
}

#[test]
fn a_server_that_comes_later_is_found() {
    on_both_runtimes(|| async {
        let nats = Nats::start();
        nats.stop_immediate();
        let connection = start(&nats.url());
        connection.client().await;
        assert_eq!(publish(&connection).await, Err(PublishError::NotConnected));
        nats.start_again();
        until(|| connection.is_connected()).await;
        assert_eq!(publish(&connection).await, Ok(()));
    });
}

#[test]
fn a_server_that_comes_back_is_found_again() {
    on_both_runtimes(|| async {
        let nats = Nats::start();
        let connection = connect(&nats.url()).await;
        for _ in 0..3 {
            assert_eq!(publish(&connection).await, Ok(()));
            nats.stop_immediate();
            until(|| !connection.is_connected()).await;
            assert_eq!(publish(&connection).await, Err(PublishError::NotConnected));
            nats.start_again();
            until(|| connection.is_connected()).await;
        }
        assert_eq!(publish(&connection).await, Ok(()));
    });
}

#[test]
fn what_was_refused_while_the_server_was_away_is_not_sent_later() {
    on_both_runtimes(|| async {
        let nats = Nats::start();
        let connection = connect(&nats.url()).await;
        assert_eq!(publish(&connection).await, Ok(()));
        nats.stop_immediate();
        until(|| !connection.is_connected()).await;
        for _ in 0..100 {
            assert_eq!(publish(&connection).await, Err(PublishError::NotConnected));
        }
        nats.start_again();
        let mut subscriber = subscribe(&witness(&nats.url()).await, "outage.>").await;
        until(|| connection.is_connected()).await;
        connection.publish(message("outage.end", "")).await.unwrap();
        assert_eq!(next(&mut subscriber).await.subject.as_str(), "outage.end");
    });
}

#[test]
fn a_server_that_stands_still_confirms_nothing_and_is_used_again_when_it_goes_on() {
    on_both_runtimes(|| async {
        let nats = Nats::start();
        let connection = connect(&nats.url()).await;
        assert_eq!(publish(&connection).await, Ok(()));
        nats.pause();
        let started = Instant::now();
        let (core, stream) = tokio::join!(publish(&connection), store(&connection));
        assert_eq!((core, stream), (Err(PublishError::TimedOut), Err(PublishError::TimedOut)));
        assert_eq!(publish(&connection).await, Err(PublishError::TimedOut));
        let elapsed = started.elapsed();
        assert!(elapsed >= 2 * CONFIRMED_WITHIN && elapsed < 2 * CONFIRMED_WITHIN + SLACK, "{elapsed:?}");

        nats.resume();
        assert_eq!(timeout(AT_ONCE, publish(&connection)).await, Ok(Ok(())));
        assert_eq!(connection.client().await.statistics().connects.load(std::sync::atomic::Ordering::SeqCst), 1);
    });
}

#[test]
fn a_server_that_dies_during_a_publish_ends_the_wait() {
    on_both_runtimes(|| async {
        let nats = Nats::start();
        for is_to_stream in [false, true] {
            let connection = connect(&nats.url()).await;
            assert_eq!(publish(&connection).await, Ok(()));
            nats.pause();
            let publishing = async { if is_to_stream { store(&connection).await } else { publish(&connection).await } };
            let killing = async {
                // The publish has to be on its way first, which cannot be observed.
                tokio::time::sleep(Duration::from_millis(300)).await;
                nats.stop_immediate();
                Instant::now()
            };
            let (verdict, killed) = tokio::join!(publishing, killing);
            assert_eq!(verdict, Err(PublishError::Lost));
            assert!(killed.elapsed() < AT_ONCE);
            nats.start_again();
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answers_again_is_given_up() {
    let nats = Nats::start();
    let connection = connect(&nats.url()).await;
    nats.pause();
    let started = Instant::now();
    until(|| !connection.is_connected()).await;
    println!("given up after {:?}", started.elapsed());
    assert_eq!(publish(&connection).await, Err(PublishError::NotConnected));
    nats.resume();
    until(|| connection.is_connected()).await;
    assert_eq!(publish(&connection).await, Ok(()));
}

#[test]
fn one_of_several_servers_is_enough() {
    on_both_runtimes(|| async {
        let servers = [Nats::start(), Nats::start()];
        let connection = connect(&format!("{},{}", servers[0].url(), servers[1].url())).await;
        assert_eq!(connection.place(), format!("127.0.0.1:{}, 127.0.0.1:{}", servers[0].port(), servers[1].port()));
        for round in 0..4 {
            assert_eq!(publish(&connection).await, Ok(()));
            let used = usize::from(connection.client().await.server_info().port == servers[1].port());
            servers[used].stop_immediate();
            // Another server is up, so no publish may fail with "not connected".
            let (core, stream) = tokio::join!(publish(&connection), store(&connection));
            assert!(matches!(core, Ok(()) | Err(PublishError::Lost)), "{core:?}");
            assert!(matches!(stream, Err(PublishError::NoStream { .. } | PublishError::Lost)), "{stream:?}");
            let other = servers[1 - used].port();
            let client = connection.client().await;
            until(|| connection.is_connected() && client.server_info().port == other).await;
            assert_eq!(publish(&connection).await, Ok(()), "{round}");
            servers[used].start_again();
        }
    });
}

#[tokio::test]
async fn changes_are_logged_once_each() {
    let (log, _guard) = Log::capture();
    let nats = Nats::start();
    let connection = connect(&nats.url()).await;
    nats.stop_immediate();
    // Several attempts to connect fail meanwhile.
    until(|| log.text().matches("connection attempt failed").count() > 6).await;
    nats.start_again();
    until(|| connection.is_connected() && log.ours().len() > 3).await;
    assert_eq!(publish(&connection).await, Ok(()));
    let expected =
        ["connected to NATS", "connection to NATS lost: connecting again", "cannot connect to NATS: it cannot be reached"];
    let lines = log.ours();
    assert_eq!(lines.len(), 4, "{lines:#?}");
    for (line, words) in lines.iter().zip(expected.into_iter().chain(["connected to NATS"])) {
        assert!(line.contains(words) && line.contains(&connection.place().to_owned()), "{line}");
    }
}

/// The library panics over such a message, and its client ends.
#[test]
fn a_message_that_ends_the_client_costs_a_new_one() {
    on_both_runtimes(|| async {
        let nats = Nats::start();
        let connection = start(&nats.url());
        assert_eq!(publish(&connection).await, Ok(()));
        let client = connection.client().await;
        let _open = client.subscribe("malformed").await.unwrap();
        client.flush().await.unwrap();
        let mut raw = std::net::TcpStream::connect(("127.0.0.1", nats.port())).unwrap();
        let headers = "NATS/1.0\r\nA: b\rc\r\n\r\n";
        let publish_malformed = format!("HPUB malformed {0} {0}\r\n{headers}\r\n", headers.len());
        raw.write_all(b"CONNECT {\"headers\":true}\r\n").unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while client.publish("x", "".into()).await.is_ok() {
            assert!(Instant::now() < deadline, "the client lives: is the test still needed?");
            // More than once: the server may not know of the subscription yet.
            raw.write_all(publish_malformed.as_bytes()).unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        while publish(&connection).await.is_err() {
            assert!(Instant::now() < deadline, "no other client was started");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(connection.is_connected());
    });
}
