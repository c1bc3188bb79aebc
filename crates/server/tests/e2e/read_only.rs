//! A database that may not be written: to a client the same as a full disk.

use std::time::Duration;

use serde_json::json;

use crate::rig::{Backend, Client, Service, beside_others, blocking, callback_to, eventually};

const WITHIN: Duration = Duration::from_secs(15);

/// Allows or forbids writing to every session from now on; those that are open are ended.
fn allow_writing(backend: &Backend, allow: bool) {
    let read_only = if allow { "off" } else { "on" };
    let sql = format!(
        "BEGIN READ WRITE;
         DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = {read_only}', current_database()); END $$;
         COMMIT;
         SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()"
    );
    blocking(|| backend.execute(&sql));
}

async fn create(client: &Client) -> u16 {
    let timer = json!({"delay": "1d", "callback": callback_to("http://127.0.0.1:9/", &json!(1))});
    client.try_create(&timer).await.expect("an answer").status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_that_may_not_be_written_is_told_by_the_health_until_it_may() {
    let _machine = beside_others().await;
    let backend = Backend::postgres();
    let mut service = Service::start(&backend).await;
    let client = service.client();
    assert_eq!(create(&client).await, 201);

    allow_writing(&backend, false);
    eventually("/healthz tells it", WITHIN, async || {
        assert_ne!(create(&client).await, 201);
        let health = client.get("/healthz").await;
        let storage = health.json()["data"]["storage"].as_str().unwrap_or_default().to_owned();
        (health.status == 500 && storage.starts_with("cannot be written")).then_some(())
    })
    .await;

    allow_writing(&backend, true);
    // By itself: nothing is registered meanwhile.
    service.wait_until_healthy().await;
    assert_eq!(create(&client).await, 201);
    service.stop().await;
}
