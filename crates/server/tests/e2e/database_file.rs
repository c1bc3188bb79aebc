//! What may happen to the file of an SQLite database while a service uses it.

use std::{path::Path, time::Duration};

use serde_json::json;

use crate::rig::{API_KEY, Backend, Client, Service, beside_others, callback_to, eventually, timer};

const NOTICED_WITHIN: Duration = Duration::from_secs(1);

/// Starts a service on this file, which is expected to refuse it in one sentence.
fn refusal(home: &Path, database: &Path) -> String {
    let output = timer(home)
        .arg("serve")
        .env("TIMER_DB_PATH", database)
        .env("API_KEY", API_KEY)
        .env("BIND", "127.0.0.1")
        .env("PORT", throwaway::free_port().to_string())
        .env("RUST_LOG", "error")
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    said
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_is_refused_by_every_name_of_the_file() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let database = backend.sqlite_file().expect("a file");
    let mut service = Service::start(&backend).await;
    let [link, moved] = ["link.db", "moved.db"].map(|name| backend.home().join(name));

    std::fs::hard_link(&database, &link).expect("a hard link");
    let sentence = crate::rig::blocking(|| refusal(backend.home(), &link));
    assert!(sentence.contains("another timer process is using"), "{sentence}");
    std::fs::remove_file(&link).expect("the link can be removed");

    std::fs::rename(&database, &moved).expect("the file can be renamed");
    let sentence = crate::rig::blocking(|| refusal(backend.home(), &moved));
    assert!(sentence.contains("another timer process is using"), "{sentence}");
    std::fs::rename(&moved, &database).expect("the file can be renamed");
    service.wait_until_healthy().await;
    service.stop().await;
}

async fn create(client: &Client) -> u16 {
    let timer = json!({"delay": "1d", "callback": callback_to("http://127.0.0.1:9/", &json!(1))});
    client.try_create(&timer).await.expect("an answer").status
}

async fn is_noticed(service: &Service) {
    let client = service.client();
    let health = eventually("/healthz is 500", NOTICED_WITHIN, async || {
        let health = client.get("/healthz").await;
        (health.status == 500).then_some(health)
    })
    .await;
    assert_eq!(health.json()["data"]["status"], "degraded", "{}", health.text);
    assert_eq!(health.json()["data"]["storage"], "the database file was deleted or replaced while the service uses it");
    assert_eq!(create(&client).await, 503);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_file_that_is_deleted_or_replaced_is_noticed_and_nothing_is_acknowledged_any_more() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let database = backend.sqlite_file().expect("a file");
    let moved = backend.home().join("moved.db");
    let mut service = Service::start(&backend).await;
    let client = service.client();
    assert_eq!(create(&client).await, 201);

    std::fs::rename(&database, &moved).expect("the file can be renamed");
    is_noticed(&service).await;
    assert_eq!(service.log().matches("was deleted or replaced while the service uses it;").count(), 1, "it is logged once");

    std::fs::rename(&moved, &database).expect("the file can be put back");
    service.wait_until_healthy().await;
    assert_eq!(create(&client).await, 201);

    std::fs::copy(&database, &moved).expect("the file can be copied");
    std::fs::rename(&moved, &database).expect("the file can be replaced");
    is_noticed(&service).await;
    service.kill();
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_that_is_copied_over_the_file_in_use_is_noticed_and_is_not_written_to() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let database = backend.sqlite_file().expect("a file");
    let copy = backend.home().join("copy.db");
    let mut service = Service::start(&backend).await;
    let client = service.client();
    assert_eq!(create(&client).await, 201);
    crate::rig::blocking(|| store_sqlite::backup(&database, &copy)).expect("a backup");
    assert_eq!(create(&client).await, 201);

    std::fs::copy(&copy, &database).expect("the file can be overwritten");
    is_noticed(&service).await;
    service.stop().await;
    let bytes = |path: &Path| std::fs::read(path).expect("a file");
    assert!(bytes(&database) == bytes(&copy), "the log was laid over the backup");
    let sentence = crate::rig::blocking(|| refusal(backend.home(), &database));
    assert!(sentence.contains("do not belong together"), "{sentence}");
}
