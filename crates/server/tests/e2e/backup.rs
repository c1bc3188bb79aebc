//! `timer backup` and `timer restore`, and what becomes of a backup that is copied over a database by hand.

use std::{path::Path, process::Output};

use serde_json::json;

use crate::rig::{Backend, Client, Service, beside_others, callback_to, timer};

fn run(backend: &Backend, arguments: &[&str]) -> Output {
    timer(backend.home()).args(arguments).env("DATABASE_URL", backend.url()).output().expect("the binary runs")
}

/// The one sentence with which it ended.
fn refused(output: &Output, code: i32) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

async fn create(client: &Client, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for n in 0..count {
        let callback = callback_to("http://127.0.0.1:9/", &json!(n));
        ids.push(client.create(&json!({"delay": "1d", "callback": callback})).await);
    }
    ids
}

fn integrity(file: &Path) -> String {
    let connection = rusqlite::Connection::open(file).expect("a database");
    connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("an answer")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_copied_over_a_crashed_database_is_refused_and_restored_by_the_command() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let database = backend.sqlite_file().expect("a file");
    let copy = backend.home().join("copy.db");
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let kept = create(&client, 60).await;
    let done = run(&backend, &["backup", "copy.db"]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert_eq!(integrity(&copy), "ok");
    let since = create(&client, 60).await;
    let sentence = refused(&run(&backend, &["restore", "--replace", "copy.db"]), 1);
    assert!(sentence.contains("another timer process is using"), "{sentence}");

    service.kill();
    std::fs::copy(&copy, &database).expect("the copy by hand");
    let serve = timer(backend.home())
        .arg("serve")
        .env("DATABASE_URL", backend.url())
        .env("API_KEY", crate::rig::API_KEY)
        .env("BIND", "127.0.0.1")
        .env("PORT", throwaway::free_port().to_string())
        .env("RUST_LOG", "error")
        .output()
        .expect("the binary runs");
    let sentence = refused(&serve, 1);
    assert!(sentence.contains("do not belong together") && sentence.contains("timer restore --replace"), "{sentence}");
    let sentence = refused(&run(&backend, &["restore", "copy.db"]), 1);
    assert!(sentence.contains("--replace"), "{sentence}");

    let done = run(&backend, &["restore", "--replace", "copy.db"]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    service.start_again().await;
    let client = service.client();
    for id in &kept {
        assert_eq!(client.timer(id).await["status"], "pending");
    }
    for id in &since {
        assert_eq!(client.get(&format!("/timers/{id}")).await.status, 404);
    }
    create(&client, 1).await;
    service.stop().await;
    assert_eq!(integrity(&database), "ok");
}

#[tokio::test]
async fn what_cannot_be_backed_up_or_restored_is_refused_in_one_sentence() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    std::fs::write(backend.home().join("text"), "hello").expect("a file");
    for (arguments, code, reason) in [
        (&["backup", "copy.db"], 1, "there is no database at"),
        (&["backup", "text"], 1, "text exists already"),
        (&["restore", "text"], 1, "is not a backup"),
        (&["restore", "missing"], 1, "cannot be read"),
    ] {
        let sentence = refused(&run(&backend, arguments), code);
        assert!(sentence.contains(reason), "{sentence}");
    }
    assert!(!backend.sqlite_file().expect("a file").exists());
    for (command, tool) in [("backup", "pg_dump"), ("restore", "pg_restore")] {
        let output = timer(backend.home()).args([command, "x"]).env("DATABASE_URL", "postgres://127.0.0.1/timer").output();
        let sentence = refused(&output.expect("the binary runs"), 2);
        assert!(sentence.contains(tool), "{sentence}");
    }
}
