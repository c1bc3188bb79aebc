//! The server does what the builder says.

use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::json;
use throwaway::{Nats, NatsUser};

use crate::wire::{Client, greeted};

const NOTHING: [&str; 0] = [];

#[test]
fn jetstream_is_there_unless_it_is_turned_off() {
    let without = Nats::builder().jetstream(false).start();
    assert_eq!(Client::connect(&without.url()).info.get("jetstream"), None);
    assert_eq!(Client::connect(&throwaway::nats().url()).info["jetstream"], true);
}

#[test]
fn every_message_goes_to_the_disk_when_asked() {
    let always = |nats: &Nats| nats.monitor("/jsz?config=true").map(|jsz| jsz["config"]["sync_always"] == true);
    assert_eq!(always(&Nats::builder().sync_always(true).start()), Some(true));
    assert_eq!(always(throwaway::nats()), Some(false));
}

#[test]
fn the_largest_message_is_as_large_as_asked() {
    let nats = Nats::builder().max_payload_bytes(8).start();
    let mut client = Client::connect(&nats.url());
    assert_eq!(client.info["max_payload"], 8);
    client.publish("any", "12345678");
    assert_eq!(client.complaints(), NOTHING);
    client.publish("any", "123456789");
    assert_eq!(client.line(), "-ERR 'Maximum Payload Violation'");
}

#[test]
fn users_may_do_what_they_were_allowed_and_nothing_else() {
    let nats = Nats::builder()
        .user(NatsUser::unlimited("boss", "it's \"quoted\" \\ $HOME"))
        .user(NatsUser::limited("sender", "s", &["orders.>", "$JS.API.>"], &["inbox.>"]))
        .user(NatsUser::limited("mute", "m", &[], &["orders.*"]))
        .user(NatsUser::limited("deaf", "d", &["orders.*"], &[]))
        .start();
    let as_user = |user: &str, pass: &str| Client::connect_as(&nats.url(), json!({ "user": user, "pass": pass }));
    let denied = |what: &str, subject: &str| vec![format!("-ERR 'Permissions Violation for {what} to \"{subject}\"'")];

    for (user, pass, publishes, subscribes) in [
        ("boss", "it's \"quoted\" \\ $HOME", true, true),
        ("sender", "s", true, false),
        ("mute", "m", false, true),
        ("deaf", "d", true, false),
    ] {
        let mut client = as_user(user, pass);
        client.publish("orders.new", "");
        assert_eq!(client.complaints() == NOTHING, publishes, "{user} publishes");
        client.send("SUB orders.other 1\r\n");
        assert_eq!(client.complaints() == NOTHING, subscribes, "{user} subscribes");
    }
    let mut sender = as_user("sender", "s");
    sender.publish("invoices.new", "");
    assert_eq!(sender.complaints(), denied("Publish", "invoices.new"));
    sender.send("SUB orders.new 1\r\n");
    assert_eq!(sender.complaints(), denied("Subscription", "orders.new"));
    let created = sender.api("STREAM.CREATE.ORDERS", &json!({ "name": "ORDERS", "subjects": ["orders.>"] }));
    assert_eq!(created["config"]["name"], "ORDERS", "{created}");

    for mut stranger in [as_user("boss", "wrong"), Client::connect(&nats.url())] {
        assert_eq!(stranger.line(), "-ERR 'Authorization Violation'");
    }
}

#[test]
fn only_clients_with_the_token_are_let_in() {
    let nats = Nats::builder().token("open sesame").start();
    let with = |token: &str| Client::connect_as(&nats.url(), json!({ "auth_token": token }));
    assert_eq!(with("open sesame").complaints(), NOTHING);
    assert_eq!(with("open barley").line(), "-ERR 'Authorization Violation'");
}

#[test]
fn a_server_with_a_certificate_speaks_tls_only() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (certificate, key) = (directory.path().join("cert.pem"), directory.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).expect("a file");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("a file");

    let nats = Nats::builder().tls(&certificate, &key).start();

    assert_eq!(nats.url(), format!("tls://127.0.0.1:{}", nats.port()));
    let (stream, info) = greeted(&nats.url());
    assert_eq!(info["tls_required"], true);
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    let mut tls = StreamOwned::new(ClientConnection::new(Arc::new(config), name).expect("a client"), stream);
    tls.write_all(b"CONNECT {\"verbose\":false}\r\nPING\r\n").expect("a handshake");
    let mut lines = BufReader::new(tls).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "PONG"), "no answer under TLS");

    let mut without_tls = Client::connect(&nats.url());
    without_tls.send("PING\r\n");
    assert_ne!(without_tls.line(), "PONG", "a client was let in without TLS");
}

#[test]
#[should_panic(expected = "nats-server ended while starting")]
fn a_description_the_server_refuses_fails_the_test_with_its_log() {
    drop(Nats::builder().tls("/no/such/certificate", "/no/such/key").start());
}
