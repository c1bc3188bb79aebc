//! Denied messages are told apart from accepted ones.

use std::{
    collections::{HashMap, HashSet},
    process::Command,
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::join_all;
use throwaway::{Nats, NatsUser};
use tokio::time::{Instant, timeout};

use super::rig::*;
use crate::{Connection, PublishError};

const AT_ONCE: Duration = Duration::from_secs(2);

fn server(publish: &[&str], subscribe: &[&str]) -> Nats {
    let admin = NatsUser::unlimited("admin", "secret");
    Nats::builder().user(admin).user(limited("timer", publish, subscribe)).start()
}

async fn connect_as_timer(nats: &Nats) -> Connection {
    connect(&as_user(nats, "timer", "secret")).await
}

fn denied(subject: &str) -> Result<(), PublishError> {
    Err(PublishError::Denied { subject: subject.to_owned() })
}

#[test]
fn a_denied_message_is_never_confirmed_and_never_takes_other_messages_with_it() {
    on_both_runtimes(|| async {
        let nats = server(&["allowed.>", "_INBOX.>"], &["_INBOX.>"]);
        let mut subscriber = subscribe(&witness(&as_user(&nats, "admin", "secret")).await, "allowed.>").await;
        let connection = connect_as_timer(&nats).await;
        let mut rounds = HashMap::<bool, u32>::new();
        for round in 0..100 {
            let subjects =
                (0..100).map(|number| format!("{}.{round}.{number}", ["allowed", "denied"][(number * 7 + round) % 3 % 2]));
            let verdicts = subjects.map(|subject| async {
                let verdict = connection.publish(message(&subject, subject.clone())).await;
                (subject, verdict)
            });
            let mut missing = HashSet::new();
            for (subject, verdict) in join_all(verdicts).await {
                let is_allowed = subject.starts_with("allowed");
                *rounds.entry(is_allowed).or_default() += 1;
                assert_eq!(verdict, if is_allowed { Ok(()) } else { denied(&subject) });
                if is_allowed {
                    missing.insert(subject);
                }
            }
            while !missing.is_empty() {
                assert!(missing.remove(next(&mut subscriber).await.subject.as_str()));
            }
        }
        assert!(rounds[&true] > 2000 && rounds[&false] > 2000, "{rounds:?}");
    });
}

#[test]
fn a_lonely_denied_message_is_never_confirmed() {
    // The smaller the round, the sooner its marker follows the refusal.
    on_both_runtimes(|| async {
        let nats = server(&["allowed.>", "_INBOX.>"], &["_INBOX.>"]);
        let connection = connect_as_timer(&nats).await;
        for number in 0..3000 {
            let subject = format!("denied.{number}");
            assert_eq!(connection.publish(message(&subject, "")).await, denied(&subject));
        }
    });
}

#[test]
fn subjects_that_are_hard_to_quote_are_denied_too() {
    on_both_runtimes(|| async {
        let nats = server(&["allowed.>", "_INBOX.>"], &["_INBOX.>"]);
        let connection = connect_as_timer(&nats).await;
        let long = "x".repeat(255);
        for subject in [r#"a"b"#, r"a\b", r#"\"#, "a'b", "'", r#"'"""'"#, "a%q%sb", "{}", "`~!@#$^&()", &long] {
            assert_eq!(connection.publish(message(subject, "")).await, denied(subject));
            let stored = connection.publish_to_stream(message(subject, ""), "1").await;
            assert_eq!(stored.map(drop), denied(subject));
        }
    });
}

#[test]
fn a_subject_that_the_server_maps_to_a_denied_one_is_not_confirmed() {
    on_both_runtimes(|| async {
        let nats = server(&["allowed.>", "_INBOX.>"], &["_INBOX.>"]);
        change(&nats, |settings| settings["mappings"] = serde_json::json!({ "allowed.mapped": "denied.a" }));
        nats.stop_immediate();
        nats.start_again();
        let connection = connect_as_timer(&nats).await;
        let refused = Err(PublishError::Refused("no permission to publish to denied.a".to_owned()));
        assert_eq!(connection.publish(message("allowed.mapped", "")).await, refused);
        for _ in 0..100 {
            // The messages may share a round or not.
            let (mapped, denied, stored, other) = tokio::join!(
                connection.publish(message("allowed.mapped", "")),
                connection.publish(message("denied.a", "")),
                connection.publish_to_stream(message("denied.a", ""), "1"),
                connection.publish(message("allowed.other", "")),
            );
            assert_eq!(mapped, refused);
            assert!(denied.is_err() && stored.is_err(), "{denied:?} {stored:?}");
            assert!(other.is_ok() || other == refused, "{other:?}");
        }
    });
}

#[test]
fn refusals_of_streams_are_not_held_against_other_messages() {
    on_both_runtimes(|| async {
        let nats = server(&["allowed.>", "_INBOX.>"], &["_INBOX.>"]);
        let connection = connect_as_timer(&nats).await;
        let messages = (0..2000).map(|number| {
            let connection = &connection;
            async move {
                if number % 2 == 0 {
                    let subject = format!("denied.{}", number % 7);
                    let stored = connection.publish_to_stream(message(&subject, ""), "1").await;
                    assert_eq!(stored.map(drop), denied(&subject));
                } else {
                    assert_eq!(connection.publish(message("allowed.a", "")).await, Ok(()));
                }
            }
        });
        join_all(messages).await;
    });
}

#[test]
fn a_flood_of_refusals_hides_none() {
    on_both_runtimes(|| async {
        let nats = server(&["allowed.>", "_INBOX.>"], &["_INBOX.>"]);
        let connection = connect_as_timer(&nats).await;
        let client = connection.client().await;
        let mut counts = [0; 3];
        for round in 0..200 {
            // More than the library buffers, so that it drops some.
            for _ in 0..400 {
                client.publish("flood", Bytes::new()).await.unwrap();
            }
            let subject = format!("{}.{round}", ["allowed", "denied"][round % 2]);
            match connection.publish(message(&subject, "")).await {
                Ok(()) => assert!(subject.starts_with("allowed"), "{subject} was confirmed"),
                Err(PublishError::Denied { .. }) => assert!(subject.starts_with("denied"), "{subject} was denied"),
                Err(PublishError::Unheard | PublishError::Refused(_)) => counts[2] += 1,
                other => panic!("{other:?}"),
            }
            counts[round % 2] += 1;
        }
        println!("of {} allowed and {} denied ones, {} were not told apart", counts[0], counts[1], counts[2]);
        until_ok(&connection, "allowed.after").await;
    });
}

async fn until_ok(connection: &Connection, subject: &str) {
    let publishing = async { while connection.publish(message(subject, "")).await.is_err() {} };
    timeout(TIMEOUT, publishing).await.expect("nothing is confirmed any more");
}

#[test]
fn nothing_is_sent_that_could_not_be_confirmed() {
    on_both_runtimes(|| async {
        let nats = server(&["orders.>"], &["_INBOX.>"]);
        let mut subscriber = subscribe(&witness(&as_user(&nats, "admin", "secret")).await, "orders.>").await;
        let connection = connect_as_timer(&nats).await;
        let started = Instant::now();
        for _ in 0..10 {
            let verdict = connection.publish(message("orders.late", "")).await;
            assert_eq!(verdict, Err(PublishError::Unconfirmable { missing: "publish to" }));
        }
        assert!(started.elapsed() < AT_ONCE);
        // A stream answers by itself. There is none here, so the answer would have to come from another subscriber.
        let storing = connection.publish_to_stream(message("orders.stored", ""), "1").await;
        assert_eq!(storing.map(drop), Err(PublishError::TimedOut));
        assert_eq!(next(&mut subscriber).await.subject.as_str(), "orders.stored");
    });
}

#[test]
fn without_an_inbox_nothing_is_sent_at_all() {
    on_both_runtimes(|| async {
        let nats = server(&[">"], &["orders.>"]);
        let admin = witness(&as_user(&nats, "admin", "secret")).await;
        let mut subscriber = subscribe(&admin, "orders.>").await;
        let connection = connect_as_timer(&nats).await;
        let refused = PublishError::Unconfirmable { missing: "subscribe to" };
        for _ in 0..10 {
            assert_eq!(connection.publish(message("orders.late", "")).await, Err(refused.clone()));
            assert_eq!(connection.publish_to_stream(message("orders.late", ""), "1").await, Err(refused.clone()));
        }
        admin.publish("orders.end", Bytes::new()).await.unwrap();
        assert_eq!(next(&mut subscriber).await.subject.as_str(), "orders.end");
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn permissions_that_come_later_are_noticed() {
    for (publish, subscribe) in [(vec!["orders.>"], vec!["_INBOX.>"]), (vec![">"], vec!["orders.>"])] {
        let nats = server(&publish, &subscribe);
        let connection = connect_as_timer(&nats).await;
        let verdict = connection.publish(message("orders.late", "")).await;
        assert!(matches!(verdict, Err(PublishError::Unconfirmable { .. })), "{verdict:?}");
        allow_everything(&nats);
        until_ok(&connection, "orders.late").await;
        // The connection is the same all along.
        assert_eq!(connection.client().await.statistics().connects.load(std::sync::atomic::Ordering::SeqCst), 1);
    }
}

fn allow_everything(nats: &Nats) {
    change(nats, |settings| {
        settings["authorization"]["users"][1].as_object_mut().unwrap().remove("permissions").unwrap();
    });
}

/// Changes the settings of a running server.
fn change(nats: &Nats, change: impl FnOnce(&mut serde_json::Value)) {
    let file = nats.home().join("nats.conf");
    let mut settings: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    change(&mut settings);
    std::fs::write(&file, settings.to_string()).unwrap();
    let id = std::fs::read_to_string(nats.home().join("pid")).unwrap();
    assert!(Command::new("kill").args(["-HUP", id.trim()]).status().unwrap().success());
}
