//! What the machine is short of is not charged to timers.

use std::{net::TcpStream, time::Duration};

use futures_util::{StreamExt, stream};
use serde_json::json;

use crate::rig::{Backend, Client, Receiver, Service, callback_to, for_each_store, instant, now};

const TIMERS: usize = 200;
const OPEN_FILES_MAX: u64 = 256;
/// With those that calls want these are more than may be open; alone they leave some for calls.
const IDLE: usize = 150;

/// Enough to register them all on a busy machine, and to take the files away, before the first is due.
const LEAD_MICROS: i64 = 6_000_000;

for_each_store!(
    timers_that_are_due_while_no_file_can_be_opened_wait_and_are_called_once,
    with_few_open_files_and_idle_connections_every_timer_is_called,
);

/// Registers timers that are never tried again, due in a moment.
async fn register(client: &Client, url: &str) -> Vec<String> {
    let at = instant(now() + LEAD_MICROS);
    let timer = json!({"execute_at": at, "delivery": "at_most_once", "callback": callback_to(url, &json!(null))});
    stream::iter(0..TIMERS).map(|_| client.create(&timer)).buffer_unordered(4).collect().await
}

async fn timers_that_are_due_while_no_file_can_be_opened_wait_and_are_called_once(backend: Backend) {
    let receiver = Receiver::counting();
    let service = Service::start(&backend).await;
    let client = service.client();
    let timers = register(&client, &receiver.url("/")).await;
    service.allow_open_files(Some(0));
    service.wait_for_log("this machine is short of descriptors").await;
    service.allow_open_files(None);
    client.wait_until_finished(Duration::from_secs(20)).await;
    assert_eq!((client.count("completed").await, client.count("failed").await), (TIMERS as u64, 0));
    assert_eq!((receiver.count(), client.timer(&timers[0]).await["attempt"].as_u64()), (TIMERS, Some(1)));
    let metrics = client.get("/metrics").await.text;
    assert!(metrics.contains(r#"timer_not_attempted_total{reason="descriptors"}"#), "{metrics}");
}

async fn with_few_open_files_and_idle_connections_every_timer_is_called(backend: Backend) {
    let receiver = Receiver::counting();
    let service = Service::start_with_open_files(&backend, OPEN_FILES_MAX, &[("MIN_DELAY", "0s")]).await;
    assert!(service.log().contains("the limit of open files allows 96 calls at once"), "{}", service.log());
    let client = service.client();
    register(&client, &receiver.url("/")).await;
    let idle: Vec<TcpStream> = (0..IDLE).filter_map(|_| TcpStream::connect(("127.0.0.1", service.port())).ok()).collect();
    receiver.wait_for(TIMERS, Duration::from_secs(40)).await;
    drop(idle);
    client.wait_until_finished(Duration::from_secs(20)).await;
    assert_eq!((client.count("completed").await, client.count("failed").await), (TIMERS as u64, 0));
}
