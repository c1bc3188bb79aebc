//! The address that was checked is the address that is dialled.
//!
//! All addresses here lead to this machine, so that a broken guard would be seen and would reach no other machine.

use std::{
    net::Ipv4Addr,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use super::*;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const OK_AND_CLOSE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

fn addrs(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn public(allow: &str) -> Egress {
    Egress::parse("public", allow).unwrap()
}

#[tokio::test]
async fn a_literal_address_that_is_closed_is_not_dialled() {
    let mut receiver = Receiver::answering(OK).await;
    let port = receiver.addr.port();
    let deliverer = guarded(public(""), SystemNames);
    for host in ["127.0.0.1", "127.1", "0x7f000001", "[::ffff:127.0.0.1]"] {
        for scheme in ["http", "https"] {
            let timer = timers::http(&format!("{scheme}://{host}:{port}/"), "");
            let failure = failure(deliverer.attempt(&timer, 1, Prepared::default()).await.outcome);
            assert_eq!(failure.kind, FailureKind::Egress, "{host}");
            for part in ["127.0.0.1", "loopback 127.0.0.0/8", "EGRESS=public"] {
                assert!(failure.message.contains(part), "{}", failure.message);
            }
        }
    }
    assert_eq!(receiver.connections().await, 0);
}

#[tokio::test]
async fn some_addresses_are_closed_without_any_setting() {
    let mut receiver = Receiver::answering(OK).await;
    for host in ["0.0.0.0", "0", "[::ffff:0.0.0.0]", "unspecified.example"] {
        let deliverer = guarded(Egress::default(), Fake(|_: &str| Ok(addrs(&["0.0.0.0"]))));
        let timer = timers::http(&format!("http://{host}:{}/", receiver.addr.port()), "");
        let failure = failure(deliverer.attempt(&timer, 1, Prepared::default()).await.outcome);
        assert_eq!(failure.kind, FailureKind::Egress, "{host}");
        assert!(failure.message.contains("unspecified 0.0.0.0/32, EGRESS=private"), "{}", failure.message);
    }
    assert_eq!(receiver.connections().await, 0);
}

#[tokio::test]
async fn a_name_is_as_good_as_its_worst_address() {
    let mut receiver = Receiver::answering(OK_AND_CLOSE).await;
    let url = format!("http://hooks.example:{}/", receiver.addr.port());
    for (found, is_open) in [
        (&["127.0.0.1"][..], true),
        (&["127.0.0.2"], false),
        (&["127.0.0.1", "127.0.0.2"], false),
        (&["127.0.0.2", "127.0.0.1"], false),
        (&["127.0.0.1", "::1"], false),
        (&["127.0.0.1", "::ffff:127.0.0.2"], false),
    ] {
        let deliverer = guarded(public("127.0.0.1"), Fake(move |_: &str| Ok(addrs(found))));
        let outcome = deliverer.attempt(&timers::http(&url, ""), 1, Prepared::default()).await.outcome;
        if is_open {
            assert_eq!(outcome, Outcome::Delivered);
        } else {
            assert_eq!(failure(outcome).kind, FailureKind::Egress, "{found:?}");
        }
        assert_eq!(receiver.connections().await, usize::from(is_open), "{found:?}");
    }
}

#[tokio::test]
async fn a_name_that_changes_its_meaning_never_reaches_the_closed_address() {
    const CALLS: usize = 999;
    let mut open = Receiver::answering(OK_AND_CLOSE).await;
    let closed_addr = (Ipv4Addr::new(127, 0, 0, 2), open.addr.port()).into();
    let mut closed = Receiver::at(closed_addr, |_, _| async {}).await;
    let lookups = AtomicUsize::new(0);
    // A call looks the name up twice: what the last lookup finds is dialled, or not.
    let names = Fake(move |_: &str| {
        let addr = if lookups.fetch_add(1, Ordering::SeqCst).is_multiple_of(3) { "127.0.0.2" } else { "127.0.0.1" };
        Ok(addrs(&[addr]))
    });
    // Nothing is kept, so that every connection looks the name up.
    let deliverer = looking_up(public("127.0.0.1"), Lookups::kept_for(Duration::ZERO, names));
    let timer = timers::http(&format!("http://rebind.example:{}/", open.addr.port()), "");
    let mut delivered = 0;
    for _ in 0..CALLS {
        match deliverer.attempt(&timer, 1, Prepared::default()).await.outcome {
            Outcome::Delivered => delivered += 1,
            other => assert_eq!(failure(other).kind, FailureKind::Egress),
        }
    }
    assert_eq!((delivered, open.connections().await, closed.connections().await), (CALLS / 3 * 2, CALLS / 3 * 2, 0));
}

#[tokio::test]
async fn a_host_that_was_opened_is_open_at_its_port_only() {
    let mut receiver = Receiver::answering(OK).await;
    let port = receiver.addr.port();
    let names = || Fake(|_: &str| Ok(addrs(&["127.0.0.1"])));
    for (allow, is_open) in [
        (format!("hooks.internal:{port}"), true),
        ("hooks.internal".to_owned(), true),
        (format!("hooks.internal:{}", port ^ 1), false),
    ] {
        let timer = timers::http(&format!("http://hooks.internal:{port}/"), "");
        let outcome = guarded(public(&allow), names()).attempt(&timer, 1, Prepared::default()).await.outcome;
        assert_eq!(outcome == Outcome::Delivered, is_open, "{allow} {outcome:?}");
        assert_eq!(receiver.connections().await, usize::from(is_open), "{allow}");
    }
}

#[tokio::test]
async fn a_name_without_address_is_a_failure_of_its_own() {
    for (found, reason) in [
        (Ok(Vec::new()), "host name has no address (POST http://nowhere.example/)"),
        (Err("no such name"), "host name not resolved: no such name (POST http://nowhere.example/)"),
    ] {
        let names = Fake(move |_: &str| found.clone().map_err(io::Error::other));
        let failure = failure(
            guarded(Egress::default(), names)
                .attempt(&timers::http("http://nowhere.example/", ""), 1, Prepared::default())
                .await
                .outcome,
        );
        assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Dns, reason));
    }
}

#[tokio::test]
async fn the_names_of_this_machine_are_known() {
    let mut receiver = Receiver::answering(OK).await;
    let timer = timers::http(&format!("http://localhost:{}/", receiver.addr.port()), "");
    assert_eq!(deliverer().attempt(&timer, 1, Prepared::default()).await.outcome, Outcome::Delivered);
    assert_eq!(receiver.heard().await.header("host"), Some(format!("localhost:{}", receiver.addr.port()).as_str()));
}
