//! Users, tokens and certificates.

use std::{fs, path::PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{RootCertStore, pki_types::CertificateDer};
use tempfile::TempDir;
use throwaway::{Nats, NatsUser};

use super::rig::*;
use crate::{Options, PublishError};

const ODD_PASSWORD: &str = "p@ss,w%rd:/ #é";

#[test]
fn users_and_tokens_are_let_in() {
    on_both_runtimes(|| async {
        let nats = Nats::builder().user(NatsUser::unlimited("joe", ODD_PASSWORD)).start();
        let parts = Options::from_parts("127.0.0.1", nats.port(), Some("joe"), Some(ODD_PASSWORD)).unwrap();
        let url = as_user(&nats, "joe", "p%40ss%2Cw%25rd%3A%2F%20%23%C3%A9");
        for options in [parts, Options::from_url("NATS_URL", &url).unwrap()] {
            let connection = start_with(options);
            until(|| connection.is_connected()).await;
            assert_eq!(connection.publish(message("login", "")).await, Ok(()));
        }
        let nats = Nats::builder().token("s3cret").start();
        let connection = connect(&nats.url().replace("://", "://s3cret@")).await;
        assert_eq!(connection.publish(message("login", "")).await, Ok(()));
    });
}

#[tokio::test]
async fn a_refused_login_is_explained_without_the_password() {
    let (log, _guard) = Log::capture();
    let nats = Nats::builder().user(NatsUser::unlimited("joe", "right")).start();
    let connection = start(&as_user(&nats, "joe", "hunter2"));
    until(|| log.text().matches("event: client error: nats: authorization violation").count() > 3).await;
    assert!(!connection.is_connected());
    assert_eq!(connection.publish(message("login", "")).await, Err(PublishError::NotConnected));
    // The server may close the connection so fast that its error message is lost.
    let lines = log.ours();
    let refusal = "cannot connect to NATS: the server refuses the login: check the credentials in NATS_URL";
    assert_eq!(lines.iter().filter(|line| line.contains(refusal)).count(), 1, "{lines:#?}");
    assert!(lines.len() <= 2, "{lines:#?}");
    // The password must not appear even where the library logs everything.
    assert!(!log.text().contains("hunter2"));
}

struct Authority {
    directory: TempDir,
    roots: RootCertStore,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(issuer.der().to_vec())).unwrap();
        let authority = Self { directory: tempfile::tempdir().unwrap(), roots };
        fs::write(authority.file("certificate"), certificate.pem()).unwrap();
        fs::write(authority.file("key"), key.serialize_pem()).unwrap();
        authority
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn start_server(&self) -> Nats {
        Nats::builder().tls(self.file("certificate"), self.file("key")).start()
    }
}

#[test]
fn a_server_with_a_trusted_certificate_is_used() {
    on_both_runtimes(|| async {
        let authority = Authority::new();
        let nats = authority.start_server();
        // A server that requires TLS gets it even without `tls://` in the address.
        for url in [nats.url(), nats.url().replace("tls://", "nats://")] {
            let connection = start_with(Options::from_url("NATS_URL", &url).unwrap().trusting(authority.roots.clone()));
            until(|| connection.is_connected()).await;
            assert_eq!(connection.publish(message("login", "")).await, Ok(()));
        }
    });
}

#[tokio::test]
async fn no_other_server_is_talked_to() {
    let (log, _guard) = Log::capture();
    let (authority, other) = (Authority::new(), Authority::new());
    let (secure, plain) = (authority.start_server(), Nats::start());
    let untrusted = Options::from_url("NATS_URL", &secure.url()).unwrap().trusting(other.roots.clone());
    let without_tls = Options::from_url("NATS_URL", &plain.url().replace("nats://", "tls://joe:hunter2@")).unwrap();
    for options in [untrusted, without_tls.trusting(other.roots.clone())] {
        let connection = start_with(options);
        let earlier = log.text().matches("client error: nats: IO error").count();
        until(|| log.text().matches("client error: nats: IO error").count() > earlier + 3).await;
        assert!(!connection.is_connected());
    }
    assert!(!plain.log().contains("hunter2"));
}
