//! Published messages arrive.

use std::collections::HashSet;

use bytes::Bytes;
use futures_util::{StreamExt, future::join_all, stream};
use throwaway::Nats;

use super::rig::*;
use crate::{Outgoing, PublishError};

#[test]
fn a_message_arrives_as_it_was() {
    on_both_runtimes(|| async {
        let nats = throwaway::nats();
        let mut subscriber = subscribe(&witness(&nats.url()).await, "arrival.exact").await;
        let payload = Bytes::from_static(b"{\"a\":1.10,  \"b\":\"\xc3\xa9\\u00e9\"}\r\n\0\xff");
        let headers = [("X-Timer-Id", "7"), ("x-timer-id", "lower"), ("X-Odd", "tab\there: and, \"more\" %")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let sent = Outgoing { subject: "arrival.exact".to_owned(), headers: headers.clone(), payload: payload.clone() };
        connect(&nats.url()).await.publish(sent).await.unwrap();

        let received = next(&mut subscriber).await;
        assert_eq!((received.payload, received.reply), (payload, None));
        let received = received.headers.unwrap();
        assert_eq!(received.len(), headers.len());
        for (name, value) in headers {
            assert_eq!(received.get(name.as_str()).unwrap().as_str(), value);
        }
    });
}

#[test]
fn ten_thousand_all_arrive() {
    on_both_runtimes(|| async {
        let nats = throwaway::nats();
        let mut subscriber = subscribe(&witness(&nats.url()).await, "arrival.burst").await;
        let connection = connect(&nats.url()).await;
        let started = tokio::time::Instant::now();
        // A publish has a time limit, which 10,000 at once would exceed on a slow machine.
        let all = (0..10_000).map(|number| connection.publish(message("arrival.burst", number.to_string())));
        stream::iter(all).buffer_unordered(2_000).for_each(async |confirmed| confirmed.unwrap()).await;
        println!("10,000 publishes confirmed in {:?}", started.elapsed());
        let mut missing: HashSet<_> = (0..10_000).map(|number| number.to_string()).collect();
        while !missing.is_empty() {
            let received = next(&mut subscriber).await;
            assert!(missing.remove(str::from_utf8(&received.payload).unwrap()), "one came twice");
        }
    });
}

#[test]
fn one_that_cannot_be_sent_does_not_disturb_other_messages() {
    on_both_runtimes(|| async {
        let nats = Nats::builder().max_payload_bytes(1000).start();
        let mut subscriber = subscribe(&witness(&nats.url()).await, ">").await;
        let connection = connect(&nats.url()).await;
        let with_header =
            Outgoing { headers: vec![("a".to_owned(), "b".to_owned())], ..message("arrival.large", vec![b'x'; 983]) };
        let malformed = Outgoing { headers: vec![("a".to_owned(), "b\r\nc".to_owned())], ..message("arrival.bad", "") };
        let messages = vec![
            message("arrival.one", "1"),
            message("arrival.large", vec![b'x'; 1001]),
            message("arrival.two", "2"),
            with_header,
            malformed,
            message("arrival.three", vec![b'x'; 1000]),
        ];
        let verdicts = join_all(messages.into_iter().map(|message| connection.publish(message))).await;
        assert_eq!(
            verdicts,
            [
                Ok(()),
                Err(PublishError::TooLarge { bytes: 1001, max: 1000 }),
                Ok(()),
                Err(PublishError::TooLarge { bytes: 1001, max: 1000 }),
                Err(PublishError::Malformed("a header's value has a line break")),
                Ok(()),
            ]
        );
        for subject in ["arrival.one", "arrival.two", "arrival.three"] {
            let received = loop {
                let received = next(&mut subscriber).await;
                if !received.subject.starts_with("_INBOX") {
                    break received;
                }
            };
            assert_eq!(received.subject.as_str(), subject);
        }
    });
}

#[test]
fn a_publish_that_stops_waiting_does_not_disturb_other_publishes() {
    on_both_runtimes(|| async {
        let nats = throwaway::nats();
        let connection = connect(&nats.url()).await;
        for _ in 0..20 {
            let publishes: Vec<_> = (0..100)
                .map(|_| {
                    let connection = connection.clone();
                    tokio::spawn(async move { connection.publish(message("arrival.dropped", "x")).await })
                })
                .collect();
            tokio::task::yield_now().await;
            publishes.iter().step_by(2).for_each(|publish| publish.abort());
            for publish in publishes.into_iter().skip(1).step_by(2) {
                assert_eq!(publish.await.unwrap(), Ok(()));
            }
        }
    });
}

#[test]
fn large_messages_go_in_rounds_of_their_own() {
    on_both_runtimes(|| async {
        let nats = throwaway::nats();
        let mut subscriber = subscribe(&witness(&nats.url()).await, "arrival.fat").await;
        let connection = connect(&nats.url()).await;
        let all = (0..100).map(|_| connection.publish(message("arrival.fat", vec![b'x'; 300 * 1024])));
        assert!(join_all(all).await.iter().all(Result::is_ok));
        for _ in 0..100 {
            assert_eq!(next(&mut subscriber).await.payload.len(), 300 * 1024);
        }
    });
}

#[test]
fn the_connection_ends_with_its_last_handle() {
    on_both_runtimes(|| async {
        let nats = throwaway::nats();
        let (connection, driver) = crate::connection(crate::Options::from_url("NATS_URL", &nats.url()).unwrap(), "test");
        let driver = tokio::spawn(driver);
        until(|| connection.is_connected()).await;
        drop(connection);
        tokio::time::timeout(TIMEOUT, driver).await.unwrap().unwrap();
    });
}

#[test]
fn without_its_driver_there_is_no_connection() {
    on_both_runtimes(|| async {
        let nats = throwaway::nats();
        let (connection, driver) = crate::connection(crate::Options::from_url("NATS_URL", &nats.url()).unwrap(), "test");
        let driver = tokio::spawn(driver);
        until(|| connection.is_connected()).await;
        assert_eq!(connection.publish(message("arrival.none", "")).await, Ok(()));
        driver.abort();
        until(|| !connection.is_connected()).await;
        assert_eq!(connection.publish(message("arrival.none", "")).await, Err(PublishError::NotConnected));
        let stored = connection.publish_to_stream(message("arrival.none", ""), "1").await;
        assert_eq!(stored, Err(PublishError::NotConnected));
    });
}
