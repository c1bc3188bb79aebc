//! Only a receiver that proves who it is gets anything.

use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

use super::{receiver::Heard, *};

const NAME: &str = "hooks.example";

/// A receiver with a certificate of its own making, and the store that trusts it.
async fn receiver() -> (Receiver, RootCertStore) {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let receiver = Receiver::doing(move |stream, ear| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            while let Some(heard) = Heard::read(&mut stream).await {
                ear.send(heard).await.unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            }
        }
    })
    .await;
    (receiver, roots)
}

fn trusting(roots: RootCertStore) -> Deliverer {
    let names = Fake(|_: &str| Ok(vec!["127.0.0.1".parse().unwrap()]));
    Deliverer::with_outside(config(), clock(), Lookups::new(names), roots).unwrap()
}

fn timer(receiver: &Receiver, host: &str) -> domain::Timer {
    timers::http(&format!("https://{host}:{}/", receiver.addr.port()), r#","payload":"secret""#)
}

#[tokio::test]
async fn a_trusted_receiver_is_called_by_name_and_by_address() {
    let (mut receiver, roots) = receiver().await;
    let deliverer = trusting(roots);
    for host in [NAME, "127.0.0.1"] {
        assert_eq!(deliverer.attempt(&timer(&receiver, host), 1, Prepared::default()).await.outcome, Outcome::Delivered);
        assert_eq!(receiver.heard().await.text(), "\"secret\"");
    }
}

#[tokio::test]
async fn a_self_signed_certificate_and_a_wrong_name_are_refused() {
    let (mut receiver, roots) = receiver().await;
    for (roots, host, reason) in [
        (RootCertStore::empty(), NAME, "UnknownIssuer"),
        (super::super::roots::of_this_machine(), NAME, "UnknownIssuer"),
        (roots, "other.example", "not valid for name"),
    ] {
        let failure = failure(trusting(roots).attempt(&timer(&receiver, host), 1, Prepared::default()).await.outcome);
        assert_eq!(failure.kind, FailureKind::Tls);
        assert!(failure.message.starts_with("TLS handshake failed: invalid peer certificate"), "{}", failure.message);
        assert!(failure.message.contains(reason), "{}", failure.message);
    }
    assert_eq!(receiver.connections().await, 3);
    assert!(receiver.has_heard_nothing());
}

#[tokio::test]
async fn a_receiver_that_speaks_no_tls_is_a_failed_handshake() {
    let receiver = Receiver::doing(|mut stream, _| async move {
        let _ = stream.read_u8().await;
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    })
    .await;
    let failure =
        failure(trusting(RootCertStore::empty()).attempt(&timer(&receiver, NAME), 1, Prepared::default()).await.outcome);
    assert_eq!(failure.kind, FailureKind::Tls);
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_hangs_is_left() {
    let receiver = Receiver::doing(|mut stream, _| async move {
        let mut hello = Vec::new();
        let _ = stream.read_to_end(&mut hello).await;
    })
    .await;
    // A callback waits for its own timeout, but for a connection never longer than 5 seconds.
    for (timeout, reason) in [("200ms", "no answer within 200ms"), ("30s", "no connection within 5s")] {
        let url = format!("https://{NAME}:{}/", receiver.addr.port());
        let timer = timers::http(&url, &format!(r#","timeout":"{timeout}""#));
        let failure = failure(trusting(RootCertStore::empty()).attempt(&timer, 1, Prepared::default()).await.outcome);
        assert_eq!(failure.kind, FailureKind::Timeout);
        assert!(failure.message.starts_with(reason), "{}", failure.message);
    }
}

#[test]
fn there_are_always_authorities_to_trust() {
    assert!(!super::super::roots::of_this_machine().is_empty());
}
