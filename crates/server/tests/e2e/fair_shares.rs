//! What one client does to the API costs no other its answers: searches, slow bodies, and connections.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::rig::{Backend, Client, Service, for_each_store};

for_each_store!(a_key_searches_once_at_a_time);

const METADATA_BYTES: usize = 60_000;
const LARGE_TIMERS: usize = 240;

async fn register_large_metadata(client: &Client, namespace: &str) {
    let padding = "x".repeat(METADATA_BYTES);
    let timer = |n: usize| {
        let callback = json!({"type": "http", "url": "http://127.0.0.1:9/"});
        json!({"delay": "1h", "namespace": namespace, "metadata": {"n": n % 2, "x": padding}, "callback": callback})
    };
    let timers: Vec<Value> = (0..LARGE_TIMERS).map(timer).collect();
    for batch in timers.chunks(120) {
        let answer = client.send("POST", "/timers/batch", Some(&json!({"timers": batch}))).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
}

async fn a_key_searches_once_at_a_time(backend: Backend) {
    let service = Service::start(&backend).await;
    let (searching, other) = (service.client().tenant("searching").await, service.client().tenant("other").await);
    register_large_metadata(&searching, "searching").await;
    let nothing = json!({"metadata": {"n": 7}, "expected_max": 10});
    let search = async |client: &Client| client.send("POST", "/timers/cancel", Some(&nothing)).await;

    let (answers, of_another) = tokio::join!(join_all((0..8).map(|_| search(&searching))), search(&other));
    assert_eq!(of_another.status, 200, "{}", of_another.text);
    let (searched, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
    assert!(!searched.is_empty() && !refused.is_empty(), "{} searched at the same time", searched.len());
    for refusal in refused {
        assert_eq!((refusal.status, &refusal.json()["code"]), (429, &json!(5)), "{}", refusal.text);
        assert_eq!(refusal.headers["retry-after"], "1");
        assert!(refusal.message().starts_with("another bulk cancel with this key is running"), "{}", refusal.message());
    }

    let half = json!({"metadata": {"n": 1}, "expected_max": LARGE_TIMERS});
    let canceled = searching.send("POST", "/timers/cancel", Some(&half)).await;
    assert_eq!(canceled.json()["data"], json!({"matched": LARGE_TIMERS / 2, "canceled": LARGE_TIMERS / 2}), "{}", canceled.text);
}
