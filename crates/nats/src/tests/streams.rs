//! What streams confirm.

use async_nats::jetstream::{
    self,
    stream::{Config, DiscardPolicy, Stream},
};
use bytes::Bytes;
use futures_util::{StreamExt, future::join_all};
use throwaway::{Nats, NatsUser};
use tokio::time::Instant;

use super::rig::*;
use crate::{CONFIRMED_WITHIN, Outgoing, PublishError, Stored};

async fn create(nats: &Nats, name: &str, config: Config) -> Stream {
    let subjects = vec![format!("{name}.>")];
    let config = Config { name: name.to_owned(), subjects, ..config };
    jetstream::new(witness(&nats.url()).await).get_or_create_stream(config).await.unwrap()
}

#[test]
fn a_stored_message_is_in_the_stream_as_it_was() {
    on_both_runtimes(|| async {
        let nats = throwaway::nats();
        let stream = create(nats, "exact", Config::default()).await;
        let connection = connect(&nats.url()).await;
        let payload = Bytes::from_static(b"{\"a\": 1.10}\r\n\0\xff");
        let headers = vec![("X-Timer-Id".to_owned(), "7".to_owned())];
        let sent = Outgoing { subject: "exact.a".to_owned(), headers, payload: payload.clone() };
        let id = connection.client().await.new_inbox();
        let first = connection.publish_to_stream(sent.clone(), &id).await.unwrap();
        assert_eq!((first.stream.as_str(), first.duplicate), ("exact", false));
        let again = connection.publish_to_stream(sent, &id).await.unwrap();
        assert_eq!(again, Stored { duplicate: true, ..first.clone() });

        let stored = stream.get_raw_message(first.sequence).await.unwrap();
        assert_eq!((stored.subject.as_str(), stored.payload), ("exact.a", payload));
        assert_eq!(stored.headers.get("X-Timer-Id").unwrap().as_str(), "7");
        assert_eq!(stored.headers.get("Nats-Msg-Id").unwrap().as_str(), id);
    });
}

#[test]
fn a_burst_is_stored_completely() {
    on_both_runtimes(|| async {
        let nats = Nats::start();
        let mut stream = create(&nats, "burst", Config::default()).await;
        let connection = connect(&nats.url()).await;
        let started = Instant::now();
        let all = (0..10_000).map(|number| {
            let connection = &connection;
            async move { connection.publish_to_stream(message("burst.a", ""), &number.to_string()).await }
        });
        futures_util::stream::iter(all).buffer_unordered(2_000).for_each(async |stored| drop(stored.unwrap())).await;
        println!("10,000 stored in {:?}", started.elapsed());
        assert_eq!(stream.info().await.unwrap().state.messages, 10_000);
    });
}

#[test]
fn without_a_stream_nothing_is_confirmed() {
    on_both_runtimes(|| async {
        let nats = throwaway::nats();
        let connection = connect(&nats.url()).await;
        let started = Instant::now();
        let verdict = connection.publish_to_stream(message("no.stream", ""), "1").await;
        assert_eq!(verdict, Err(PublishError::NoStream { subject: "no.stream".to_owned() }));
        assert!(started.elapsed() < CONFIRMED_WITHIN / 2);

        let plain = Nats::builder().jetstream(false).start();
        let verdict = connect(&plain.url()).await.publish_to_stream(message("no.stream", ""), "1").await;
        assert_eq!(verdict, Err(PublishError::NoStream { subject: "no.stream".to_owned() }));
    });
}

#[test]
fn a_full_stream_says_so() {
    on_both_runtimes(|| async {
        let nats = Nats::start();
        create(&nats, "full", Config { max_messages: 1, discard: DiscardPolicy::New, ..Config::default() }).await;
        let connection = connect(&nats.url()).await;
        connection.publish_to_stream(message("full.a", ""), "1").await.unwrap();
        let verdict = connection.publish_to_stream(message("full.a", ""), "2").await;
        let Err(PublishError::Refused(words)) = verdict else { panic!("{verdict:?}") };
        assert!(words.starts_with("maximum messages exceeded"), "{words}");
    });
}

#[test]
fn a_message_that_is_too_large_or_not_allowed_is_not_stored() {
    on_both_runtimes(|| async {
        let admin = NatsUser::unlimited("admin", "secret");
        let timer = limited("timer", &["limit.a"], &["_INBOX.>"]);
        let nats = Nats::builder().max_payload_bytes(1000).user(admin).user(timer).start();
        let admin = jetstream::new(witness(&as_user(&nats, "admin", "secret")).await);
        let config = Config { name: "limit".to_owned(), subjects: vec!["limit.>".to_owned()], ..Config::default() };
        let mut stream = admin.create_stream(config).await.unwrap();
        let connection = connect(&as_user(&nats, "timer", "secret")).await;

        let started = Instant::now();
        let large = connection.publish_to_stream(message("limit.a", vec![b'x'; 1000]), "1").await;
        let bytes = 1000 + "NATS/1.0\r\nNats-Msg-Id: 1\r\n\r\n".len();
        assert_eq!(large, Err(PublishError::TooLarge { bytes, max: 1000 }));
        let denied = connection.publish_to_stream(message("limit.b", ""), "2").await;
        assert_eq!(denied, Err(PublishError::Denied { subject: "limit.b".to_owned() }));
        assert!(started.elapsed() < CONFIRMED_WITHIN / 2);
        // Only the permission to subscribe to the inbox is needed.
        connection.publish_to_stream(message("limit.a", ""), "3").await.unwrap();
        assert_eq!(stream.info().await.unwrap().state.messages, 1);
    });
}

#[test]
fn an_answer_of_another_subscriber_is_no_confirmation() {
    on_both_runtimes(|| async {
        let nats = throwaway::nats();
        let other = witness(&nats.url()).await;
        let mut requests = subscribe(&other, "no.stream.either").await;
        let connection = connect(&nats.url()).await;
        let answering = async {
            for answer in ["", "+OK", "{}", r#"{"stream":"X"}"#, r#"{"seq":1}"#, "\u{1}"] {
                let reply = requests.next().await.unwrap().reply.unwrap();
                other.publish(reply, answer.into()).await.unwrap();
            }
        };
        let publishing = async {
            for _ in 0..6 {
                let verdict = connection.publish_to_stream(message("no.stream.either", ""), "1").await;
                assert_eq!(verdict, Err(PublishError::Refused("the answer did not come from a stream".to_owned())));
            }
        };
        tokio::join!(answering, publishing);
    });
}

#[test]
fn an_answer_that_never_comes_is_forgotten() {
    on_both_runtimes(|| async {
        let nats = throwaway::nats();
        let _silent = subscribe(&witness(&nats.url()).await, "no.answer").await;
        let connection = connect(&nats.url()).await;
        let all = (0..2000).map(|_| connection.publish_to_stream(message("no.answer", ""), "1"));
        let started = Instant::now();
        assert!(join_all(all).await.iter().all(|verdict| *verdict == Err(PublishError::TimedOut)));
        assert!(started.elapsed() < 2 * CONFIRMED_WITHIN);
        until(|| connection.expected() == 0).await;
    });
}
