//! How the NATS server is named, what is shown of the connection, and that passwords are shown nowhere.

use std::{path::PathBuf, time::Duration};

use async_nats::{ConnectOptions, jetstream::stream};
use serde_json::json;
use tempfile::TempDir;
use throwaway::{Nats, NatsUser};

use crate::rig::{
    API_KEY, Backend, Bus, COMMANDS, Client, EVENTS, Service, beside_others, blocking, eventually, now, stored_at, timer,
    told_to, with_commands,
};

const SOON: Duration = Duration::from_secs(10);
const USER: &str = "timer";
/// Every character that means something in an address or a configuration file.
const PASSWORD: &str = r#"p@:/?#%&"'\ $x{}[]=+,;é"#;
const PASSWORD_ENCODED: &str = "p%40%3A%2F%3F%23%25%26%22%27%5C%20%24x%7B%7D%5B%5D%3D%2B%2C%3B%C3%A9";
const WRONG: &str = "Tr0ub4dor";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_named_in_parts_or_as_one_address_whatever_its_password() {
    let _machine = beside_others().await;
    let nats = blocking(|| Nats::builder().user(NatsUser::unlimited(USER, PASSWORD)).start());
    let guarded = blocking(|| Nats::builder().token("t0ken-of-the-house").start());
    let as_user = ConnectOptions::with_user_and_password(USER.to_owned(), PASSWORD.to_owned());
    let bus = Bus::connect_as(&nats.url(), as_user).await;
    let port = nats.port().to_string();
    let parts = vec![("NATS_HOST", "127.0.0.1"), ("NATS_PORT", port.as_str()), ("NATS_USER", USER), ("NATS_PASSWORD", PASSWORD)];
    let url = format!("nats://{USER}:{PASSWORD_ENCODED}@127.0.0.1:{port}");
    let with_token = format!("nats://t0ken-of-the-house@127.0.0.1:{}", guarded.port());
    // The first of several need not be there.
    let several = format!("nats://{USER}:{PASSWORD_ENCODED}@127.0.0.1:{},{url}", throwaway::free_port());
    let settings = [
        parts,
        vec![("NATS_URL", url.as_str())],
        vec![("TIMER_BROKER_URL", url.as_str())],
        vec![("NATS_URL", several.as_str())],
        vec![("NATS_URL", with_token.as_str())],
    ];
    for (n, settings) in settings.iter().enumerate() {
        let topic = format!("named.{n}");
        let listener = bus.listen(&topic).await;
        let backend = Backend::sqlite();
        let mut service = Service::start_with(&backend, &[&[("MIN_DELAY", "0s")], settings.as_slice()].concat()).await;
        let client = service.client();
        client.wait_for_health("nats", "connected").await;
        let id = client.create(&json!({"delay": "1ms", "callback": told_to(&topic, &json!(n))})).await;
        client.wait_for_status(&id, "completed").await;
        if !settings.iter().any(|(_, value)| *value == with_token) {
            listener.wait_for(1, SOON).await;
        }
        let log = service.log();
        for secret in [PASSWORD, PASSWORD_ENCODED, "t0ken-of-the-house"] {
            assert!(!log.contains(secret), "a secret stands in the log\n{log}");
        }
        service.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_keeps_no_service_from_starting_and_is_shown_nowhere() {
    let _machine = beside_others().await;
    let nats = blocking(|| Nats::builder().user(NatsUser::unlimited(USER, PASSWORD)).start());
    let port = nats.port().to_string();
    let url = format!("nats://{USER}:{WRONG}@127.0.0.1:{port}");
    let token = format!("nats://{WRONG}@127.0.0.1:{port}");
    for server in [
        vec![("NATS_URL", url.as_str())],
        vec![("NATS_URL", token.as_str())],
        vec![("NATS_HOST", "127.0.0.1"), ("NATS_PORT", port.as_str()), ("NATS_USER", USER), ("NATS_PASSWORD", WRONG)],
    ] {
        let backend = Backend::sqlite();
        // The library of the connection is silent unless it is named.
        let talkative = [("RUST_LOG", "trace,async_nats=trace"), ("MIN_DELAY", "0s"), ("TIMER_BROKER", "nats")];
        let mut service = Service::start_with(&backend, &[&talkative, server.as_slice()].concat()).await;
        let client = service.client();
        eventually("the server has turned it away", SOON, async || {
            nats.log().to_lowercase().contains("authentication error").then_some(())
        })
        .await;
        let id = client.create(&json!({"delay": "1ms", "callback": told_to("a", &json!(1))})).await;
        let timer = client.wait_for_status(&id, "failed").await;
        let health = client.get("/healthz").await;
        let metrics = client.get("/metrics").await;

        assert_eq!((health.status, health.message().as_str()), (200, "healthy"));
        assert_eq!(health.json()["data"]["nats"], "disconnected", "{}", health.text);
        assert_eq!(health.json()["data"]["broker"], "disconnected", "{}", health.text);
        assert!(metrics.text.contains(r#"timer_nats_connected{connection="callbacks"} 0"#), "{}", metrics.text);
        assert!(timer["last_error"].as_str().is_some_and(|error| error.contains("not connected")), "{timer}");
        service.wait_for_log("authorization").await;
        service.stop().await;
        let log = service.log();
        assert!(log.contains("TRACE write operation: CONNECT"), "the library has not told what it sends");
        for said in [log, health.text, metrics.text, timer.to_string()] {
            assert!(!said.contains(WRONG), "the password stands in {said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_and_metrics_follow_the_connection() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let nats = blocking(Nats::start);
    let mut service = Service::start_with_commands(&backend, &nats.url()).await;
    let client = service.client();
    assert_connected(&client, true).await;
    for _ in 0..3 {
        blocking(|| nats.stop_immediate());
        assert_connected(&client, false).await;
        blocking(|| nats.start_again());
        assert_connected(&client, true).await;
    }
    service.stop().await;
}

async fn assert_connected(client: &Client, is_connected: bool) {
    for (item, connection) in [("nats", "callbacks"), ("broker", "broker")] {
        client.wait_for_health(item, if is_connected { "connected" } else { "disconnected" }).await;
        let metric = format!(r#"timer_nats_connected{{connection="{connection}"}}"#);
        let expected = if is_connected { 1.0 } else { 0.0 };
        eventually(&format!("{metric} is {expected}"), SOON, async || {
            (client.metric(&metric).await == Some(expected)).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_starts_before_its_server_and_connects_when_it_comes() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let nats = blocking(Nats::start);
    blocking(|| nats.stop_immediate());
    let mut service = Service::start_with(&backend, &with_commands(&nats.url())).await;
    let client = service.client();
    client.wait_for_health("nats", "disconnected").await;
    client.wait_for_health("broker", "disconnected").await;
    blocking(|| nats.start_again());
    let bus = Bus::to_commands(&nats.url()).await;
    bus.schedule("acme", "early", now()).await;
    bus.events().wait_for_event_of("early", SOON).await;
    client.wait_for_health("nats", "connected").await;
    service.stop().await;
}

#[tokio::test]
async fn a_broker_without_a_server_is_refused_in_one_sentence() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let key = ("API_KEY", API_KEY);
    for (settings, words) in [
        (vec![key, ("TIMER_BROKER", "nats")], "TIMER_BROKER is nats, but no NATS server is named"),
        (vec![key, ("TIMER_BROKER", "kafka"), ("NATS_URL", "nats://127.0.0.1:1")], "TIMER_BROKER must be nats or off"),
        (vec![key, ("NATS_URL", "nats://timer:Tr0ub4dor@")], "NATS_URL"),
        (vec![key, ("NATS_URL", "http://timer:Tr0ub4dor@127.0.0.1")], "NATS_URL"),
        (vec![key, ("NATS_URL", "nats://timer:Tr0ub4dor@127.0.0.1:port")], "NATS_URL"),
        (vec![key, ("NATS_HOST", "127.0.0.1"), ("NATS_PORT", "x")], "NATS_PORT"),
        (vec![key, ("NATS_HOST", "127.0.0.1"), ("NATS_PASSWORD", WRONG)], "NATS_USER"),
        (vec![key, ("NATS_PASSWORD", WRONG)], "NATS_PASSWORD is set, but NATS_HOST is not"),
        (vec![key, ("NATS_URL", "nats://127.0.0.1"), ("NATS_HOST", "127.0.0.1")], "NATS_HOST"),
    ] {
        let output = timer(backend.home()).arg("serve").envs(settings.iter().copied()).output().expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{settings:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{settings:?}: {said}");
        assert!(said.contains(words) && said.trim_end().ends_with('.'), "{settings:?}: {said}");
        assert!(!said.contains(WRONG), "{settings:?}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_encrypted_server_is_used_if_it_can_be_trusted() {
    let _machine = beside_others().await;
    let certificate = Certificate::make();
    let nats = blocking(|| Nats::builder().tls(&certificate.public, &certificate.key).start());
    let options = ConnectOptions::new().require_tls(true).add_root_certificates(certificate.public.clone());
    let listener = Bus::connect_as(&nats.url(), options).await.listen("sealed").await;
    let (url, trusted) = (nats.url(), certificate.public.display().to_string());
    let usual = [("MIN_DELAY", "0s"), ("NATS_URL", url.as_str())];

    let backend = Backend::sqlite();
    let mut service = Service::start_with(&backend, &[usual.as_slice(), &[("SSL_CERT_FILE", &trusted)]].concat()).await;
    let client = service.client();
    client.wait_for_health("nats", "connected").await;
    let id = client.create(&json!({"delay": "1ms", "callback": told_to("sealed", &json!(1))})).await;
    client.wait_for_status(&id, "completed").await;
    listener.wait_for(1, SOON).await;
    service.stop().await;

    let backend = Backend::sqlite();
    let mut service = Service::start_with(&backend, &usual).await;
    let client = service.client();
    service.wait_for_log("certificate").await;
    client.wait_for_health("nats", "disconnected").await;
    let id = client.create(&json!({"delay": "1ms", "callback": told_to("sealed", &json!(2))})).await;
    let timer = client.wait_for_status(&id, "failed").await;
    assert!(timer["last_error"].as_str().is_some_and(|error| error.contains("not connected")), "{timer}");
    service.stop().await;
    assert_eq!(listener.count(), 1, "nothing went to a server that is not trusted");
}

/// `tls://` is a promise: a server that does not encrypt is no server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_asks_for_encryption_is_never_used_without() {
    let _machine = beside_others().await;
    let nats = throwaway::nats();
    let listener = Bus::connect(&nats.url()).await.listen("open").await;
    let backend = Backend::sqlite();
    let url = nats.url().replace("nats://", "tls://");
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s"), ("NATS_URL", &url)]).await;
    let client = service.client();
    let id = client.create(&json!({"delay": "1ms", "callback": told_to("open", &json!(1))})).await;
    client.wait_for_status(&id, "failed").await;
    client.wait_for_health("nats", "disconnected").await;
    assert_eq!(listener.count(), 0);
    service.stop().await;
}

struct Certificate {
    public: PathBuf,
    key: PathBuf,
    _home: TempDir,
}

impl Certificate {
    fn make() -> Self {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let home = tempfile::tempdir().expect("a temporary directory");
        let (public, key) = (home.path().join("cert.pem"), home.path().join("key.pem"));
        std::fs::write(&public, made.cert.pem()).expect("a file");
        std::fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
        Self { public, key, _home: home }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_exist_are_left_alone_and_dangerous_settings_are_named() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let nats = blocking(Nats::start);
    let bus = Bus::connect(&nats.url()).await;
    bus.make_stream_as(stream::Config {
        name: EVENTS.to_owned(),
        subjects: vec!["timer.events.>".to_owned()],
        storage: stream::StorageType::Memory,
        max_age: Duration::from_secs(3600),
        ..stream::Config::default()
    })
    .await;
    let before = bus.stream_config(EVENTS).await;
    let mut service = Service::start_with_commands(&backend, &nats.url()).await;
    bus.wait_for_stream(COMMANDS).await;
    service.wait_for_log(EVENTS).await;
    bus.schedule("acme", "any", now()).await;
    bus.events().wait_for_event_of("any", SOON).await;

    assert_eq!(bus.stream_config(EVENTS).await, before);
    let log = service.log();
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("WARN") && line.contains(EVENTS)).collect();
    assert!(warnings.iter().any(|line| line.contains("storage is not file")), "{warnings:?}");
    let made = bus.stream_config(COMMANDS).await;
    assert_eq!((made.storage, made.max_age), (stream::StorageType::File, Duration::from_secs(30 * 24 * 3600)));
    assert_eq!((made.retention, made.num_replicas), (stream::RetentionPolicy::Limits, 1));
    assert!(!log.lines().any(|line| line.contains("WARN") && line.contains(COMMANDS)), "{log}");
    service.stop().await;
}

/// What the manual says that a user needs is enough.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_with_the_permissions_of_the_manual_can_do_everything() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let publish = ["orders.>", "_INBOX.>", "$JS.API.>", "$JS.ACK.>", "timer.commands.dead", "timer.events.>"];
    let limited = NatsUser::limited(USER, WRONG, &publish, &["_INBOX.>"]);
    let nats = blocking(|| Nats::builder().user(limited).user(NatsUser::unlimited("boss", "b")).start());
    let url = nats.url().replace("nats://", &format!("nats://{USER}:{WRONG}@"));
    let mut service = Service::start_with_commands(&backend, &url).await;
    let bus = Bus::connect_as(&nats.url(), ConnectOptions::with_user_and_password("boss".to_owned(), "b".to_owned())).await;
    bus.wait_for_stream(COMMANDS).await;
    bus.wait_for_stream(EVENTS).await;
    bus.make_stream("ORDERS", "orders.stored", 1).await;
    let client = service.client();

    bus.publish("timer.commands.schedule", "nonsense").await.expect("an acknowledgement");
    bus.schedule("acme", "limited", now()).await;
    bus.events().wait_for_event_of("limited", SOON).await;
    let mut commands = bus.witness(COMMANDS);
    commands.wait_until("a dead letter", SOON, |all| all.iter().any(|message| message.subject == "timer.commands.dead")).await;
    for callback in [told_to("orders.told", &json!(1)), stored_at("orders.stored", &json!(1))] {
        let id = client.create(&json!({"delay": "1ms", "callback": callback})).await;
        client.wait_for_status(&id, "completed").await;
    }
    service.stop().await;
    assert!(!nats.log().contains("Permissions Violation"), "{}", nats.log());
    assert!(!service.log().contains(WRONG));
}
