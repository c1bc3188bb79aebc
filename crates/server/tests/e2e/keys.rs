//! Issued API keys, as a person issues, lists and revokes them; and what becomes of them when processes die or are several.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use throwaway::Postgres;
use tokio::time::Instant;

use crate::rig::{
    API_KEY, Backend, Client, Receiver, Service, beside_others, blocking, callback_to, eventually, for_each_store, timer,
    tolerated,
};

const SOON: Duration = Duration::from_secs(15);
const KEYS_BELIEVED: Duration = Duration::from_secs(1);
/// A second is promised. The rest is for a request on the way and a busy machine.
const NOTICED_WITHIN: Duration = Duration::from_millis(1_500);
const CRASHES: usize = 5;
const KEYS_AT_ONCE: usize = 4;

for_each_store!(
    a_person_issues_lists_and_revokes_keys,
    a_key_that_was_shown_survives_a_crash,
    what_opens_something_is_written_down_nowhere,
);

/// `timer keys …` for this service.
fn keys(backend: &Backend, port: u16, arguments: &[&str]) -> Command {
    let mut command = timer(backend.home());
    command.arg("keys").args(arguments).env("API_KEY", API_KEY).env("PORT", port.to_string());
    command
}

/// How a program ended, and what it said.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn run(mut command: Command) -> Said {
    let output = blocking(|| command.output()).expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Said { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A key that opens this namespace, issued on the command line.
fn issue(backend: &Backend, port: u16, namespace: &str) -> String {
    let said = run(keys(backend, port, &["create", namespace, "--namespace", namespace]));
    assert_eq!(said.code, Some(0), "{said:?}");
    said.stdout.trim_end().to_owned()
}

/// The id that a key carries, as lists show it.
fn id_of(key: &str) -> String {
    let id = key.split('_').nth(1).expect("an id in the key");
    format!("{}-{}-{}-{}-{}", &id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..])
}

/// What only the holder may know.
fn secret_of(key: &str) -> &str {
    key.rsplit('_').next().expect("a secret in the key")
}

async fn status(client: &Client, key: &str) -> u16 {
    client.with_key(key).get("/timers?namespace=acme").await.status
}

async fn a_person_issues_lists_and_revokes_keys(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let (client, port) = (service.client(), service.port());
    let none = run(keys(&backend, port, &["list"]));
    assert_eq!((none.code, none.stdout.as_str(), none.stderr.lines().count()), (Some(0), "", 1), "{none:?}");

    let made = run(keys(&backend, port, &["create", "billing service", "--namespace", "acme", "--namespace", "bolt"]));
    let key = made.stdout.trim_end();
    assert_eq!((made.code, made.stdout.lines().count()), (Some(0), 1), "{made:?}");
    assert!(key.starts_with("tk_") && key.len() == 100, "{made:?}");
    let sentence = format!("Key {} opens acme, bolt, to read and write. It is shown this once: keep it.\n", id_of(key));
    assert_eq!(made.stderr, sentence);
    let reader = run(keys(&backend, port, &["create", "watcher", "--all-namespaces", "--read-only"]));
    let reader_key = reader.stdout.trim_end();
    let sentence = format!("Key {} opens all namespaces, to read. It is shown this once: keep it.\n", id_of(reader_key));
    assert_eq!((reader.code, reader.stderr), (Some(0), sentence));

    let (holder, watcher) = (client.with_key(key), client.with_key(reader_key));
    let acme = json!({"delay": "1h", "namespace": "acme", "callback": callback_to("http://127.0.0.1:1/", &json!(1))});
    let id = holder.create(&acme).await;
    assert_eq!(watcher.timer(&id).await["namespace"], "acme");
    let refused = watcher.try_cancel(&id).await.expect("an answer");
    assert_eq!((refused.status, refused.message().as_str()), (403, "this key may only read"));

    let listed = run(keys(&backend, port, &["list"]));
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""), "{listed:?}");
    let rows: Vec<Vec<&str>> =
        listed.stdout.lines().map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()).collect();
    assert_eq!(rows[0], ["ID", "NAME", "NAMESPACES", "RIGHTS", "CREATED", "LAST USED", "REVOKED"], "{listed:?}");
    let (first, second) = (id_of(key), id_of(reader_key));
    assert_eq!((&rows[1][..4], rows[1][6]), ([&first, "billing service", "acme, bolt", "write"].as_slice(), "-"), "{listed:?}");
    assert_eq!((&rows[2][..4], rows[2][6]), ([&second, "watcher", "all namespaces", "read"].as_slice(), "-"), "{listed:?}");

    assert!(rows[1..3].iter().all(|row| row[5].starts_with("20")), "both were used: {listed:?}");

    let revoked = run(keys(&backend, port, &["revoke", &first]));
    assert_eq!((revoked.code, revoked.stdout, revoked.stderr), (Some(0), String::new(), format!("Key {first} is revoked.\n")));
    assert_eq!((status(&client, key).await, status(&client, reader_key).await), (401, 200));
    assert_eq!(run(keys(&backend, port, &["revoke", &first])).code, Some(0), "again is no error");
    let json = run(keys(&backend, port, &["list", "--json"]));
    let json: Value = serde_json::from_str(&json.stdout).unwrap_or_else(|error| panic!("{error}: {json:?}"));
    assert_eq!((&json[0]["id"], &json[1]["id"], &json[1]["revoked_at"]), (&json!(first), &json!(second), &Value::Null));
    assert!(json[0]["revoked_at"].is_string() && json[0].get("key").is_none(), "{json}");

    // Its timers stay, and so does the administrator.
    assert_eq!(client.timer(&id).await["status"], "pending");
    service.stop().await;
    service.start_again().await;
    assert_eq!((status(&client, key).await, status(&client, reader_key).await, status(&client, API_KEY).await), (401, 200, 200));
    service.stop().await;
}

/// What can go wrong for a person, each in one sentence: 2 when the command must be changed first, else 1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_cannot_work_says_why_in_one_sentence() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let mut service = Service::start(&backend).await;
    let (port, stranger) = (service.port(), Receiver::start());
    let (holder, closed_port) = (issue(&backend, port, "acme"), throwaway::free_port().to_string());
    let unknown = "01890a5d-ac96-774b-bcce-b302099a8057";
    let (list, no_address) = (["list"].as_slice(), "TIMER_URL must be a URL");
    let elsewhere = stranger.url("");
    for (arguments, settings, code, sentence) in [
        (list, ("API_KEY", ""), 2, "API_KEY is required: the one that the service was started with."),
        (list, ("API_KEY", "two\nlines"), 2, "API_KEY must be fit for a header."),
        (list, ("API_KEY", "wrong-0123456789abcdef0123456789abcdef"), 1, "the service refused it: unauthorized."),
        (list, ("API_KEY", holder.as_str()), 1, "the service refused it: this takes the administrator's key."),
        (list, ("PORT", closed_port.as_str()), 1, "cannot be asked: Connection refused"),
        (list, ("PORT", "eighty"), 2, "PORT must be a number"),
        (list, ("TIMER_URL", "127.0.0.1:8080"), 2, no_address),
        (list, ("TIMER_URL", "ftp://127.0.0.1"), 2, no_address),
        (list, ("TIMER_URL", "not a url"), 2, no_address),
        (list, ("TIMER_URL", "http://ada:Tr0ub4dor@127.0.0.1:1"), 2, no_address),
        (list, ("TIMER_URL", elsewhere.as_str()), 1, "is no timer service."),
        (&["revoke", "billing"], ("", ""), 2, "id must be a UUID."),
        (&["revoke", unknown], ("", ""), 1, "the service refused it: key not found."),
        (&["create", "", "--namespace", "acme"], ("", ""), 1, "name must have 1 to 100 printable characters."),
        (&["create", "k", "--namespace", ""], ("", ""), 1, "the service refused it: namespaces must"),
    ] {
        let mut command = keys(&backend, port, arguments);
        if !settings.0.is_empty() {
            command.env(settings.0, settings.1);
        }
        let said = run(command);
        assert_eq!((said.code, said.stdout.as_str(), said.stderr.lines().count()), (Some(code), "", 1), "{settings:?} {said:?}");
        assert!(said.stderr.starts_with("timer: ") && said.stderr.contains(sentence), "{settings:?} {said:?}");
        assert!(!said.stderr.contains("Tr0ub4dor") && !said.stderr.contains(API_KEY), "{said:?}");
    }
    for arguments in
        [["create", "k"].as_slice(), &["create", "k", "--namespace", "a", "--all-namespaces"], &["create"], &["revoke"]]
    {
        let said = run(keys(&backend, port, arguments));
        assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""), "{said:?}");
        assert!(said.stderr.contains("Usage:"), "{said:?}");
    }
    let listed = service.client().get("/keys").await.json();
    assert_eq!(listed["data"]["keys"].as_array().map(Vec::len), Some(1), "{listed}");
    let by_url = run({
        let mut command = keys(&backend, 1, list);
        command.env("TIMER_URL", format!("http://127.0.0.1:{port}/"));
        command
    });
    assert!(by_url.code == Some(0) && by_url.stdout.contains("acme"), "TIMER_URL wins over PORT: {by_url:?}");
    service.stop().await;
}

async fn a_key_that_was_shown_survives_a_crash(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let mut shown = Vec::new();
    for round in 0..CRASHES {
        let create = |n: usize| {
            let mut command = keys(&backend, service.port(), &["create", &format!("{round}-{n}"), "--namespace", "acme"]);
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary runs")
        };
        let mut asking: Vec<_> = (0..KEYS_AT_ONCE).map(create).collect();
        // The first has been shown; the others are anywhere.
        let first = blocking(|| asking.remove(0).wait_with_output()).expect("an end");
        service.kill();
        assert!(first.status.success(), "{first:?}");
        for output in
            std::iter::once(first).chain(asking.into_iter().map(|child| blocking(|| child.wait_with_output()).expect("an end")))
        {
            let text = String::from_utf8(output.stdout).expect("text");
            assert_eq!(output.status.success(), !text.is_empty(), "{text}");
            shown.extend(text.lines().map(str::to_owned));
        }
        service.start_again().await;
    }
    let client = service.client();
    assert!(shown.len() >= CRASHES, "{}", shown.len());
    for key in &shown {
        assert_eq!(status(&client, key).await, 200, "a key that was shown is lost");
    }
    // Revoking is no less certain.
    let gone = id_of(&shown[0]);
    assert_eq!(run(keys(&backend, service.port(), &["revoke", &gone])).code, Some(0));
    service.kill();
    service.start_again().await;
    assert_eq!((status(&client, &shown[0]).await, status(&client, &shown[1]).await), (401, 200));
    service.stop().await;
}

async fn what_opens_something_is_written_down_nowhere(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s"), ("RUST_LOG", "trace")]).await;
    let client = service.client();
    let key = issue(&backend, service.port(), "acme");
    let receiver = Receiver::start();
    let timer = json!({"delay": "0s", "namespace": "acme", "callback": callback_to(&receiver.url("/"), &json!(1))});
    let holder = client.with_key(&key);
    let id = holder.create(&timer).await;
    holder.wait_for_status(&id, "completed").await;
    let wrong = format!("{}0", &key[..99]);
    let wrong = if wrong == key { format!("{}1", &key[..99]) } else { wrong };
    assert_eq!(status(&client, &wrong).await, 401);

    let secret = secret_of(&key);
    let raw: Vec<u8> =
        (0..secret.len()).step_by(2).map(|at| u8::from_str_radix(&secret[at..at + 2], 16).expect("two digits")).collect();
    // As text and as bytes, in what is on the disk while the service runs and after it has ended; the id is there, to be found.
    let check = |what: &str, bytes: &[u8]| {
        let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        assert!(!has(secret.as_bytes()) && !has(&raw) && !has(&wrong.as_bytes()[36..]), "the secret of a key stands in {what}");
    };
    let kept = backend.contents();
    assert!(kept.iter().any(|(_, bytes)| bytes.windows(4).any(|window| window == b"acme")), "what is kept was looked at");
    kept.iter().for_each(|(what, bytes)| check(what, bytes));
    service.stop().await;
    backend.contents().iter().for_each(|(what, bytes)| check(what, bytes));
    let log = service.log();
    assert!(log.contains("a key was issued") && log.contains(&id_of(&key)), "{log}");
    check("the log", log.as_bytes());
    let call = &receiver.calls()[0];
    check("the call", format!("{call:?}").as_bytes());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_learns_of_a_key_at_once_and_of_its_end_within_a_second() {
    let _machine = beside_others().await;
    let backend = Backend::postgres();
    let (mut first, mut second) = (Service::start(&backend).await, Service::start(&backend).await);
    let (here, there) = (first.client(), second.client());
    for (from, by, at) in [(first.port(), &here, &there), (second.port(), &there, &here)] {
        // It has looked a moment ago, and knows of none.
        assert_eq!(status(at, "tk_00000000000000000000000000000000_0").await, 401);
        let key = issue(&backend, from, "acme");
        let begun = Instant::now();
        eventually("the key opens something at the other process", SOON, async || (status(at, &key).await == 200).then_some(()))
            .await;
        let known = begun.elapsed();

        // Asked again and again, so that what is known of it is as fresh as can be when it is revoked.
        for _ in 0..20 {
            assert_eq!((status(by, &key).await, status(at, &key).await), (200, 200));
        }
        let revoked = run(keys(&backend, from, &["revoke", &id_of(&key)]));
        let begun = Instant::now();
        assert_eq!((revoked.code, status(by, &key).await), (Some(0), 401), "at once, where it was revoked");
        eventually("the key opens nothing at the other process", SOON, async || (status(at, &key).await == 401).then_some(()))
            .await;
        let gone = begun.elapsed();
        println!("a key of another process: known after {known:?}, gone after {gone:?}");
        assert!(known.max(gone) < tolerated(NOTICED_WITHIN), "known after {known:?}, gone after {gone:?}");
        assert_eq!((status(by, &key).await, status(at, &key).await, status(at, API_KEY).await), (401, 401, 200));
    }
    first.stop().await;
    second.stop().await;
}

/// The service cannot tell whether a key still opens something. It is not said to be wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_database_is_away_a_key_is_neither_right_nor_wrong() {
    let _machine = beside_others().await;
    let postgres = blocking(Postgres::start);
    let backend = Backend::postgres_at(postgres.create_database());
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let key = issue(&backend, service.port(), "acme");
    assert_eq!(status(&client, &key).await, 200);
    blocking(|| postgres.stop_immediate());
    // Until nothing that was known of the keys is believed any more.
    tokio::time::sleep(KEYS_BELIEVED).await;
    for key in [key.as_str(), API_KEY] {
        let answer = client.with_key(key).get("/timers?namespace=acme").await;
        assert_eq!((answer.status, answer.json()["code"].as_i64()), (503, Some(1)), "{}", answer.text);
        assert!(answer.headers.contains_key("retry-after"), "{answer:?}");
    }
    assert_eq!(status(&client, "neither").await, 401, "what has not the shape of a key is wrong without asking");
    let refused = run(keys(&backend, service.port(), &["create", "k", "--namespace", "acme"]));
    assert_eq!((refused.code, refused.stdout.as_str(), refused.stderr.lines().count()), (Some(1), "", 1), "{refused:?}");
    blocking(|| postgres.start_again());
    eventually("the key opens something again", Duration::from_secs(30), async || {
        (status(&client, &key).await == 200).then_some(())
    })
    .await;
    service.stop().await;
}
